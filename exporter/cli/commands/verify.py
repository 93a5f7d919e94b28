"""`exporter verify`: proves that each Mission Control holds exactly what the files hold."""

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, Tone, table
from exporter.cli.output.text import count, number, plain
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import short_ids, whole_ids

IDS_SHOWN_MAX: Final = 3
_COLUMNS = (
    Column("SESSION"),
    Column("SINK"),
    Column("VERDICT"),
    Column("FILE", right=True),
    Column("DELIVERED", right=True, spare=1),
    Column("RECEIVER", right=True),
    Column("QUARANTINED", right=True, spare=2),
    Column("DETAIL", flex=True, spare=3),
)
_DIFFERENCES: Final = {"missing": "missing at the receiver", "extra": "not in the file", "different": "other content"}


def _build(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--session", action="append", metavar="ID", help="this session; may be repeated; any unique beginning will do"
    )
    which.add_argument("--all", action="store_true", help="every session on this machine")
    parser.add_argument("--repair", action="store_true", help="send what is missing, then compare again")


def _run(invocation: CommandContext) -> int:
    args, out = invocation.args, invocation.out
    sessions = whole_ids(invocation, args.session) if args.session else None
    answer = invocation.ask({"do": "verify", "sessions": sessions, "all": args.all, "repair": args.repair})
    out.result(answer, lambda: verify_text(answer["sessions"], width=out.width, palette=out.palette))
    return int(answer.get("exit", 0))


def verify_text(sessions: Sequence[Mapping[str, Any]], *, width: int | None, palette: Palette) -> str:
    """A line per session and sink, the ids that differ, and the verdict over all."""
    if not sessions:
        return "Nothing to compare: no session, or no Mission Control among the sinks."
    names = short_ids(row["session"] for row in sessions) if width else {}
    rows = [
        (
            Cell(names.get(row["session"], row["session"])),
            Cell(plain(row["sink"])),
            _verdict(row),
            Cell(number(row["file"])),
            Cell(number(row["delivered"])),
            Cell("-" if row.get("receiver") is None else number(row["receiver"])),
            Cell(number(row.get("quarantined", 0)), "warn" if row.get("quarantined") else ""),
            Cell(plain(row.get("detail") or "")),
        )
        for row in sessions
    ]
    blocks = [table(_COLUMNS, rows, width=width, palette=palette)]
    blocks += [differences for row in sessions if (differences := _differences(row, names, palette))]
    return "\n\n".join([*blocks, *_totals(sessions, palette)])


def _verdict(row: Mapping[str, Any]) -> Cell:
    if row["equal"]:
        return Cell("equal", "good")
    verdict = row.get("verdict", "different")
    return Cell("DIFFERENT", "bad") if verdict == "different" else Cell(plain(verdict), "warn")


def _totals(sessions: Sequence[Mapping[str, Any]], palette: Palette) -> list[str]:
    """How many are how, and what is in quarantine, which is at no receiver and is no difference."""
    verdicts = Counter("equal" if row["equal"] else row.get("verdict", "different") for row in sessions)
    compared, wrong, equal = count(len(sessions), "comparison"), verdicts.pop("different", 0), verdicts.pop("equal", 0)
    parts = [f"{number(wrong)} with differences"] if wrong else []
    parts += [f"{number(many)} {plain(verdict)}" for verdict, many in verdicts.items()]
    total = f"{compared}: {', '.join(parts)}." if parts else f"{compared}, all equal."
    tone: Tone = "bad" if wrong else "good" if equal == len(sessions) else "warn"
    kept = sum(row.get("quarantined") or 0 for row in sessions)
    note = f"{number(kept)} in quarantine, and so at no receiver: see `exporter quarantine list`."
    return ["\n".join([palette.paint(total, tone), *([palette.paint(note, "warn")] if kept else [])])]


def _differences(row: Mapping[str, Any], names: Mapping[str, str], palette: Palette) -> str:
    lines = []
    for key, meaning in _DIFFERENCES.items():
        ids = row.get(key) or []
        if ids:
            lines.append(f"  {meaning}: {count(len(ids), 'event')}")
            lines += [f"    {plain(one)}" for one in ids[:IDS_SHOWN_MAX]]
            lines += (
                [f"    and {len(ids) - IDS_SHOWN_MAX:,} more (all of them: --json)"] if len(ids) > IDS_SHOWN_MAX else []
            )
    title = f"{names.get(row['session'], row['session'])} at {plain(row['sink'])}"
    return "\n".join([palette.paint(title, "strong"), *lines]) if lines else ""


LEAVES = {
    "verify": Leaf(
        description=(
            "Compares the ids in each session file with what was delivered, and that with what each Mission Control "
            "holds (one digest per session; the ids are named when it differs). Ends with 8 when something "
            "differs, else with 5 or 6 when a receiver refuses or does not answer. What is in quarantine is "
            "counted and is no difference; nor is a session that somebody deleted there."
        ),
        examples=(
            Example("exporter verify --all", "everything on this machine"),
            Example("exporter verify --session 3f2a --repair", "send what is missing from one session"),
        ),
        build=_build,
        run=_run,
    )
}
