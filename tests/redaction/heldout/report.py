"""Measure the engine on the held-out corpus: recall by kind and place, leaks, extra findings, broken promises."""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from redaction.engine import Engine, Redactor
from tests.redaction.heldout import clean
from tests.redaction.heldout.check import Outcome, Survival, excerpt, redacted, survival
from tests.redaction.heldout.corpus import Case, cases
from tests.redaction.heldout.dice import Dice
from tests.redaction.heldout.judged import TRUE
from tests.redaction.heldout.kinds_places import PLACES

KEY = b"k" * 32
MEGABYTE = 1_000_000


@dataclass(slots=True)
class Recall:
    """Lines with a secret: how many, how many of them clean of it, and by what they differ."""

    total: int = 0
    gone: int = 0
    partial: list[tuple[Case, Survival]] = field(default_factory=list)
    missed: list[Case] = field(default_factory=list)
    by: defaultdict[str, Counter[tuple[str, bool]]] = field(default_factory=lambda: defaultdict(Counter))
    wrongs: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """The share of lines that no run of the secret is left in."""
        return self.gone / max(1, self.total)

    def add(self, case: Case, outcome: Outcome) -> None:
        """Count one line."""
        left = survival(case.line, outcome.line, case.parts)
        gone = left.state == "gone"
        self.total += 1
        self.gone += gone
        self.wrongs.update(outcome.wrongs)
        for name in ("kind", "setting", "view", "slot"):
            self.by[name][getattr(case, name), gone] += 1
        one_of_two = left.state == "some" and case.kind in PLACES  # two secrets, of which one was not seen
        if left.state in ("part", "some") and not one_of_two:
            self.partial.append((case, left))
        elif not gone:
            self.missed.append(case)


@dataclass(slots=True)
class Extras:
    """Lines without a secret: their size, what was flagged all the same, and broken promises."""

    size_bytes: int = 0
    found: list[tuple[str, str]] = field(default_factory=list)
    judged_true: int = 0
    wrongs: Counter[str] = field(default_factory=Counter)

    @property
    def per_megabyte(self) -> float:
        """Findings per million bytes."""
        return len(self.found) / max(1, self.size_bytes) * MEGABYTE

    def add(self, line: bytes, outcome: Outcome) -> None:
        """Count one line."""
        self.size_bytes += len(line)
        self.wrongs.update(outcome.wrongs)
        for finding in outcome.findings:
            digest, shown = excerpt(line, finding)
            self.judged_true += digest in TRUE
            if digest not in TRUE:
                self.found.append((finding.rule, f"{digest} {shown}"))
        if outcome.line != line and not outcome.findings and not outcome.wrongs:
            self.found.append(("(none)", "changed without a finding"))


def measure_recall(engine: Redactor, seed: int, per_kind: int) -> Recall:
    """Redact so many lines of every kind."""
    recall = Recall()
    for case in cases(seed, per_kind):
        recall.add(case, redacted(engine, case.line))
    return recall


def measure_extras(engine: Redactor, lines: Iterable[bytes]) -> Extras:
    """Redact lines without secrets."""
    extras = Extras()
    for line in lines:
        extras.add(line, redacted(engine, line))
    return extras


def clean_sessions(seed: int, megabytes: float) -> Iterable[bytes]:
    """Ordinary sessions of this size."""
    return clean.lines(Dice(seed), clean.session_texts, int(megabytes * MEGABYTE))


def source_code(seed: int, megabytes: float) -> Iterable[bytes]:
    """Source code that handles secrets, of this size."""
    return clean.lines(Dice(seed), clean.source_texts, int(megabytes * MEGABYTE))


def print_shares(title: str, counts: Counter[tuple[str, bool]], everything: bool) -> None:
    """A line for each name, the worst first; only what is not perfect unless everything is asked for."""
    rows = []
    for name in {key for key, _ in counts}:
        good, bad = counts[name, True], counts[name, False]
        rows.append((good / (good + bad), good, good + bad, name))
    perfect = sum(row[0] == 1 for row in rows)
    print(f"\nRecall by {title}: {len(rows)}, of which {perfect} without a miss")
    for share, good, total, name in sorted(rows):
        if everything or share < 1:
            print(f"  {share:6.1%}  {good:5d}/{total:<5d} {name}")


def print_recall(recall: Recall, show: int, everything: bool) -> None:
    """The figures about lines with a secret."""
    for title in ("kind", "setting", "view", "slot"):
        print_shares(title, recall.by[title], everything)
    for case, left in recall.partial[:show]:
        print(f"  partial {left.share:4.0%}: {case.kind}, {case.setting}, {case.view}, {case.slot}")
    for case in recall.missed[:show]:
        print(f"  missed: {case.kind}, {case.setting}, {case.view}, {case.slot}")
    print(f"\nrecall {recall.share:.2%} of {recall.total}; partial leaks {len(recall.partial)}; {dict(recall.wrongs)}")


def print_extras(name: str, extras: Extras, show: int) -> None:
    """The figures about lines without a secret, each finding to be judged by a person."""
    print(f"\nExtra findings, {name}: {len(extras.found)} in {extras.size_bytes / MEGABYTE:.1f} MB", end="")
    print(f" = {extras.per_megabyte:.2f} per MB; {extras.judged_true} judged true; {dict(extras.wrongs)}")
    for rule, count in Counter(rule for rule, _ in extras.found).most_common():
        print(f"  {count:5d} {rule}")
    for rule, shown in extras.found[:show]:
        print(f"  {rule}: {shown}")


def main(argv: list[str]) -> int:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mb", type=float, default=5.0, help="size of each of the two clean parts")
    parser.add_argument("--per-kind", type=int, default=24)
    parser.add_argument("--show", type=int, default=60, help="examples of each sort")
    parser.add_argument("--all", action="store_true", help="perfect rows too")
    given = parser.parse_args(argv)
    engine, begin = Engine(key=KEY), time.process_time()
    print(
        f"engine {engine.version}, seed {given.seed}, {given.per_kind} of each kind, {given.mb} MB of each clean part"
    )
    print_recall(measure_recall(engine, given.seed, given.per_kind), given.show, given.all)
    print_extras("ordinary sessions", measure_extras(engine, clean_sessions(given.seed, given.mb)), given.show)
    print_extras("source that handles secrets", measure_extras(engine, source_code(given.seed, given.mb)), given.show)
    print(f"\n{time.process_time() - begin:.0f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
