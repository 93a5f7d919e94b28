"""`make faults`: runs every test of the table in one pytest run; prints fault, expected, seen, time, and the peers.

`python -m tests.faults [F8 F9 …] [--write]`; `--write` puts the table into docs/faults.md.
"""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from tests.cli.program import ROOT
from tests.faults import packages
from tests.faults.shippers import SHIPPERS
from tests.faults.table import PEERS, TABLE, Row

KEPT: Final = packages.CACHE / "results.json"
"""How every test ended when it ran last, so that the document can be put together from runs of some rows."""
DOCUMENT: Final = ROOT / "docs" / "faults.md"
BEGIN: Final = "<!-- written by make faults ARGS=--write -->"
END: Final = "<!-- end of what is written -->"
OTHERS: Final = tuple(name for name in SHIPPERS if name != "exporter")
COUNTS: Final = ("lost", "twice", "of", "seconds")


@dataclass(slots=True)
class Ran:
    """One test with one set of parameters, as it ended."""

    outcome: str = "passed"
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict)
    why: str = ""


class Recorder:
    """A plugin of pytest that keeps how every test ended."""

    def __init__(self) -> None:
        self.ran: dict[str, Ran] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        one = self.ran.setdefault(report.nodeid, Ran())
        one.seconds += report.duration
        one.facts.update(report.user_properties)
        if report.outcome == "failed" or (report.outcome == "skipped" and one.outcome == "passed"):
            one.outcome = report.outcome
            one.why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a row showed of one shipper."""

    green: bool
    text: str
    seconds: float = 0.0


def _of(row: Row, ran: dict[str, Ran], shipper: str) -> Iterable[tuple[str, Ran]]:
    """The tests of a row that ran with this shipper; those that know no other one are the exporter's."""
    for name, one in ran.items():
        test, _, parameters = name.partition("[")
        if name in row.tests or test in row.tests:
            of_peers = test.startswith(PEERS)
            if (parameters == f"{shipper}]") if of_peers else shipper == "exporter":
                yield name, one


def ours(row: Row, ran: dict[str, Ran]) -> Seen:
    """What the exporter showed; not green when a test failed, was left out or did not run."""
    found = dict(_of(row, ran, "exporter"))
    absent = [test for test in row.tests if not any(name.partition("[")[0] == test or name == test for name in found)]
    red = [name for name, one in found.items() if one.outcome == "failed"]
    left_out = [f"left out: {one.why}" for one in found.values() if one.outcome == "skipped"]
    texts = _ranges([one.facts for one in found.values()])
    summary = "; ".join(dict.fromkeys([*left_out, *texts])) or f"{len(found)} of {len(found)} tests green"
    problem = [f"RED: {name}" for name in red] + [f"did not run: {test}" for test in absent]
    return Seen(not problem, "; ".join(problem) or summary, sum(one.seconds for one in found.values()))


def peer(row: Row, ran: dict[str, Ran], shipper: str) -> str:
    """What a shipper showed in the tests that run with each: lost, twice, of how many, and facts; else nothing."""
    cells = []
    for name, one in _of(row, ran, shipper):
        if not name.startswith(PEERS):
            continue
        if one.outcome == "passed":
            cells.append(_text(one.facts))
        else:
            cells.append("not here" if one.outcome == "skipped" else "the test broke")
    return "; ".join(cells)


def _ranges(every: list[dict[str, Any]]) -> Iterator[str]:
    """What several tests saw; a number that many of them saw from the least to the most."""
    together: dict[str, list[Any]] = {}
    for facts in every:
        if "of" in facts:
            yield _text(facts)
        else:
            for name, value in facts.items():
                together.setdefault(name, []).append(value)
    for name, values in together.items():
        if all(isinstance(one, int | float) for one in values):
            bounds = (f"{min(values):,}", f"{max(values):,}")
            yield f"{name} {' to '.join(dict.fromkeys(bounds))}"
        else:
            yield f"{name} {', '.join(dict.fromkeys(map(str, values)))}"


def _text(facts: dict[str, Any]) -> str:
    parts = []
    if "of" in facts:
        parts.append(f"{facts['lost']:,} lost, {facts['twice']:,} twice of {facts['of']:,}")
        if facts["lost"] == 0 and facts.get("seconds", 0) >= 0.5:
            parts.append(f"{facts['seconds']:.1f} s")
        facts = {name: value for name, value in facts.items() if name not in COUNTS}
    return ", ".join([*parts, *(f"{name} {value}" for name, value in facts.items())])


def show(rows: tuple[Row, ...], ran: dict[str, Ran], console: Console) -> None:
    """Print the table."""
    table = Table(box=box.SIMPLE_HEAD, show_lines=False, padding=(0, 1))
    for heading in ("", "fault", "expected", "seen", "time"):
        table.add_column(heading, justify="right" if heading == "time" else "left", overflow="fold")
    for name in OTHERS:
        table.add_column(name, overflow="fold")
    for row in rows:
        seen = ours(row, ran)
        cells = [peer(row, ran, name) for name in OTHERS]
        style = None if seen.green else "bold red"
        table.add_row(row.name, row.fault, row.expected, seen.text, f"{seen.seconds:.1f} s", *cells, style=style)
    console.print(table)


def markdown(rows: tuple[Row, ...], ran: dict[str, Ran]) -> str:
    """The same for the docs: one table of all rows, one of those with peers."""

    def line(*cells: str) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [line("", "fault", "expected", "seen", "time"), "|---|---|---|---|---|"]
    for row in rows:
        seen = ours(row, ran)
        lines.append(line(row.name, row.fault, row.expected, seen.text, f"{seen.seconds:.0f} s"))
    lines += ["", "## Beside the peers", "", line("", "fault", *SHIPPERS), "|---|---|" + "---|" * len(SHIPPERS)]
    for row in rows:
        if any(test.startswith(PEERS) for test in row.tests):
            lines.append(line(row.name, row.fault, *(peer(row, ran, name) for name in SHIPPERS)))
    return "\n".join(lines)


def write(text: str) -> None:
    """Put the tables into the document, between its marks."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def keep(ran: dict[str, Ran]) -> dict[str, Ran]:
    """Remember these results beside those of earlier runs; returns all of them."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    kept |= {name: asdict(one) for name, one in ran.items()}
    KEPT.write_text(json.dumps(kept, default=str), encoding="utf-8")
    return {name: Ran(**one) for name, one in kept.items()}


def main() -> int:
    """Run, print and judge; 1 when a row is red."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="F8", help="only these rows")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/faults.md; rows that did not run: as last"
    )
    arguments = parser.parse_args()
    chosen = {int(found[1]) for one in arguments.rows if (found := re.fullmatch(r"[Ff]?(\d+)", one))}
    rows = tuple(row for row in TABLE if not chosen or row.number in chosen)
    if chosen - {row.number for row in rows}:
        parser.error("no such row")
    print("Looking for the peers and libfaketime in .cache", file=sys.stderr)
    packages.fetch()
    recorder = Recorder()
    started = time.monotonic()
    tests = list(dict.fromkeys(test for row in rows for test in row.tests))
    pytest.main(["-n", "2", "--dist", "worksteal", "--tb=short", "-rf", *tests], plugins=[recorder])
    console = Console(width=max(Console().width, 200))
    show(rows, recorder.ran, console)
    for name in OTHERS:
        try:
            packages.root(name)
        except packages.MissingError as why:
            console.print(f"{name}: not to be had here ({why})")
        else:
            console.print(f"{name}: {SHIPPERS[name].settings}")
    red = [row.name for row in rows if not ours(row, recorder.ran).green]
    left_out = [row.name for row in rows if ours(row, recorder.ran).text.startswith("left out")]
    green = len(rows) - len(red) - len(left_out)
    console.print(f"{green} of {len(rows)} rows green in {time.monotonic() - started:.0f} s")
    for kind, names in (("red", red), ("left out, at least in part", left_out)):
        if names:
            console.print(f"{kind}: {', '.join(names)}")
    kept = keep(recorder.ran)
    if arguments.write:
        write(markdown(TABLE, kept))
    return 1 if red else 0


if __name__ == "__main__":
    sys.exit(main())
