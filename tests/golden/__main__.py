"""The commands: `write` makes golden outputs, `adopt` opens what another commit left, `compare` says what differs."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.golden import command_line, comparing, deliveries, otlp, pages, state
from tests.golden.captures import TREE, Capture, find_captures
from tests.golden.machine import Work, working
from tests.golden.store import Goldens

CAPTURES: Final = "GOLDEN_CAPTURES"
"""The variable that names further directories with captures, as PATH lists directories."""
STEPS: Final = ("otlp", "deliveries", "pages", "state", "cli")
_FIRST_PORT: Final = 28_400
_SHOWN: Final = 5


def main() -> int:
    """Run a command; 1 when something differs."""
    arguments = _parser().parse_args()
    if arguments.command == "compare":
        return _compare(arguments.before, arguments.after, arguments.group, arguments.show)
    captures = find_captures(arguments.captures or _named_captures())
    with working(arguments.checkout, arguments.work, arguments.port) as work:
        print(f"{len(captures)} captures, checkout {work.checkout}", flush=True)
        if arguments.command == "adopt":
            goldens = Goldens(arguments.directory, fresh=True)
            state.adopt(goldens, work, captures, arguments.saved)
        else:
            goldens = _write(work, captures, arguments.directory, arguments.saved, arguments.only or STEPS)
    for group, count in goldens.counts():
        print(f"{group:14} {count:7,} cases")
    goldens.close()
    return 0


def _write(
    work: Work, captures: Sequence[Capture], directory: Path, saved: Path | None, steps: Sequence[str]
) -> Goldens:
    goldens = Goldens(directory, fresh=True)
    if saved is None and {"state", "cli"}.intersection(steps):
        state.save(work, captures, directory)
    before = saved or directory
    for step in steps:
        begun = time.monotonic()
        match step:
            case "otlp":
                otlp.write_encoded(goldens, work, captures)
                otlp.write_sent(goldens, work, captures)
                otlp.write_followed(goldens, work, captures)
            case "deliveries":
                deliveries.write_deliveries(goldens, work, captures)
            case "pages":
                pages.write_pages(goldens, work, captures)
            case "state":
                state.adopt(goldens, work, captures, before)
            case "cli":
                command_line.write_commands(goldens, work, captures, before)
        print(f"{step:14} {time.monotonic() - begun:7.1f} s", flush=True)
    return goldens


def _compare(before: Path, after: Path, groups: Sequence[str], shown: int) -> int:
    ok = True
    for outcome in comparing.compare(Goldens(before), Goldens(after), comparing.words_of, groups):
        ok = ok and outcome.ok
        words = f" ({outcome.reworded:,} by their words)" if outcome.reworded else ""
        print(
            f"{outcome.group:14} {outcome.equal:7,} equal{words}, {outcome.different:,} different,"
            f" {outcome.missing:,} only before, {outcome.new:,} only after"
        )
        for told in outcome.told[:shown]:
            print(f"  {told}")
    return 0 if ok else 1


def _named_captures() -> list[Path]:
    return [Path(one) for one in os.environ.get(CAPTURES, "").split(os.pathsep) if one]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="make golden outputs of a checkout")
    write.add_argument("directory", type=Path, metavar="DIR", help="where the output goes")
    write.add_argument("--saved", type=Path, help="an output of before, whose state directories are opened")
    write.add_argument("--only", action="append", choices=STEPS, help="this step only; may be repeated")
    adopt = commands.add_parser("adopt", help="open the state directories of an output of before")
    adopt.add_argument("saved", type=Path, metavar="SAVED", help="the output of before")
    adopt.add_argument("directory", type=Path, metavar="DIR", help="where the output goes")
    for command in (write, adopt):
        command.add_argument("--checkout", type=Path, default=TREE, help="the checkout to drive (default: this one)")
        command.add_argument(
            "--captures", type=Path, action="append", help=f"a directory with captures; may be repeated ({CAPTURES})"
        )
        command.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "exporter-golden",
                             help="directory that is emptied and worked in; the same for both sides")  # fmt: skip
        command.add_argument("--port", type=int, default=_FIRST_PORT, help="first of fifty ports on loopback")
    comparison = commands.add_parser("compare", help="compare two outputs; ends with 1 when they differ")
    comparison.add_argument("before", type=Path, metavar="DIR_BEFORE")
    comparison.add_argument("after", type=Path, metavar="DIR_AFTER")
    comparison.add_argument("--group", action="append", default=[], help="this group only; may be repeated")
    comparison.add_argument("--show", type=int, default=_SHOWN, help="how many differences to show per group")
    return parser


if __name__ == "__main__":
    sys.exit(main())
