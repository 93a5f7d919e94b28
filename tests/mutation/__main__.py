"""Samples mutants, runs the tests that reach them, and lists what survives with its reason where one is on record."""

import argparse
import json
import sys
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tests.mutation import places
from tests.mutation.places import Mutant
from tests.mutation.trial import Outcome, Trials

ROOT: Final = Path(__file__).parents[2]
KNOWN: Final = Path(__file__).with_name("known.toml")
KEPT: Final = Path(".cache/mutation")


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=600, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", default="", help="mutate only below this path")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree, which is not changed")
    parser.add_argument("--workers", type=int, default=2, help="how many mutants at a time")
    given = parser.parse_args()
    root = given.root.resolve()
    mutants = places.sample(places.places(root), given.count, given.seed, given.only)
    trials = Trials(root, root / KEPT / "reach.json")
    kept = Kept(root / KEPT / "outcomes.jsonl", trials)
    try:
        outcomes = [one for mutant in mutants if (one := kept.of(mutant))]
        there = {one.mutant for one in outcomes}
        for one in trials.outcomes([mutant for mutant in mutants if mutant not in there], given.workers):
            outcomes.append(one)
            kept.add(one)
            told = one.mutant.told((root / one.mutant.place.path).read_bytes())
            print(f"{one.verdict:8} {one.seconds:5.1f} s {told}  {one.by}", file=sys.stderr, flush=True)
        unjudged = trials.unmutated([one for one in outcomes if one.verdict == "killed"])
    finally:
        trials.close()
    outcomes = [replace(one, verdict="unjudged") if one in unjudged else one for one in outcomes]
    return report(root, outcomes, given.seed)


class Kept:
    """The outcomes of former runs. They hold while the mutated file and what judged it stay as they were."""

    def __init__(self, path: Path, trials: Trials) -> None:
        self.path, self.trials = path, trials
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.rows: dict[str, dict[str, Any]] = {row["mutant"]: row for row in rows}

    def of(self, mutant: Mutant) -> Outcome | None:
        row = self.rows.get(_identity(mutant))
        if row is None or row["judged_by"] != self.trials.judged_by(mutant, row["by"]):
            return None
        return Outcome(mutant, row["verdict"], row["by"], row["seconds"], row["tests"])

    def add(self, one: Outcome) -> None:
        row: dict[str, object] = {
            "mutant": _identity(one.mutant),
            "judged_by": self.trials.judged_by(one.mutant, one.by),
        }
        row |= {"verdict": one.verdict, "by": one.by, "seconds": one.seconds, "tests": one.tests}
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def _identity(mutant: Mutant) -> str:
    return repr((mutant.place.path, mutant.place.start, mutant.place.end, mutant.text))


def report(root: Path, outcomes: list[Outcome], seed: int) -> int:
    """Print the table and the survivors, and keep both; 1 when fewer than 85 of a hundred are killed."""
    counted = Counter((one.mutant.package, one.verdict) for one in outcomes)
    print(f"seed {seed}\n{'':10}{'killed':>8}{'timeout':>8}{'survived':>9}{'killed %':>10}")
    for package in [*places.SHARES, ""]:
        killed, late, survived = (
            sum(number for (of, name), number in counted.items() if name == verdict and package in ("", of))
            for verdict in ("killed", "timeout", "survived")
        )
        if killed + late + survived:
            share = 100 * (killed + late) / (killed + late + survived)
            print(f"{package or 'all':10}{killed:8}{late:8}{survived:9}{share:10.1f}")
    print(f"not judged: {sum(one.verdict == 'unjudged' for one in outcomes)}")
    reasons = known()
    lines = []
    for one in outcomes:
        if one.verdict != "killed":
            told = one.mutant.told((root / one.mutant.place.path).read_bytes())
            lines.append(f"{one.verdict}: {told}  {reason(root, one.mutant, reasons) or one.by}".rstrip())
    print("\n".join(sorted(lines)))
    (root / KEPT / f"seed-{seed}.json").write_text(json.dumps({"survivors": sorted(lines)}, indent=1))
    return int(share < 85) if outcomes else 0


def known() -> list[dict[str, str]]:
    rows: list[dict[str, str]] = tomllib.loads(KNOWN.read_text())["survivor"]
    return rows


def reason(root: Path, mutant: Mutant, rows: list[dict[str, str]]) -> str:
    """The reason on record for a mutant at this place: by path, kind, and a part of the line."""
    line = (root / mutant.place.path).read_text().splitlines()[mutant.place.line - 1]
    for row in rows:
        is_there = mutant.place.path.startswith(row["path"]) and row.get("line", "") in line
        if is_there and row.get("kind", mutant.place.kind) == mutant.place.kind:
            return row["reason"]
    return ""


if __name__ == "__main__":
    sys.exit(main())
