"""`exporter backfill`: deliver history."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, Tone, table
from exporter.cli.output.text import count, number, plain, size, words
from exporter.cli.parser import since
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import short_ids, whole_ids

_COLUMNS = (
    Column("SESSION"),
    Column("SINK"),
    Column("EVENTS", right=True),
    Column("SIZE", right=True),
    Column("MASKED", right=True),
    Column("STATE", flex=True),
)
_TONES: dict[str, Tone] = {"delivered": "good", "refused": "bad", "waiting": "warn"}


def _build(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--session", action="append", metavar="ID", help="this session; may be repeated; any unique beginning will do"
    )
    which.add_argument(
        "--since", type=since, metavar="WHEN", help="sessions active since then: 7d, 36h, yesterday, or an ISO time"
    )
    which.add_argument("--all", action="store_true", help="every session on this machine")
    parser.add_argument(
        "--sink", action="append", default=[], metavar="NAME", help="only to this sink; may be repeated"
    )
    parser.add_argument("--from-start", action="store_true", help="forget what was delivered and send everything again")
    parser.add_argument("--dry-run", action="store_true", help="only say what would go, and what would be masked")


def _run(invocation: CommandContext) -> int:
    args, out = invocation.args, invocation.out
    answer = invocation.ask(
        {
            "do": "backfill",
            "sessions": whole_ids(invocation, args.session) if args.session else None,
            "since": args.since.isoformat() if args.since else None,
            "all": args.all,
            "sinks": args.sink,
            "from_start": args.from_start,
            "dry_run": args.dry_run,
        }
    )
    for note in answer.get("notes", ()):
        out.notice(f"History may be dropped there. {plain(note)}.")
    out.result(
        answer, lambda: backfill_text(answer["sessions"], dry_run=args.dry_run, width=out.width, palette=out.palette)
    )
    return int(answer.get("exit", 0))


def backfill_text(sessions: Sequence[Mapping[str, Any]], *, dry_run: bool, width: int | None, palette: Palette) -> str:
    """A line per session and sink, and the sum."""
    if not sessions:
        return "No session to deliver."
    names = short_ids(row["session"] for row in sessions) if width else {}
    rows = [
        (
            Cell(names.get(row["session"], row["session"])),
            Cell(plain(row["sink"])),
            Cell(number(row["events"])),
            Cell(size(row["bytes"])),
            Cell("" if row.get("masked") is None else number(row["masked"])),
            Cell(words(_state(row)), _tone(row)),
        )
        for row in sessions
    ]
    by_session: dict[str, list[Mapping[str, Any]]] = {}
    for row in sessions:
        by_session.setdefault(row["session"], []).append(row)
    # What goes to several sinks counts once.
    events, bytes_, masked = (
        sum(max(row.get(name) or 0 for row in some) for some in by_session.values())
        for name in ("events", "bytes", "masked")
    )
    verb = "would go" if dry_run else "delivered"
    total = f"{count(events, 'event')} ({size(bytes_)}) {verb}, {count(masked, 'secret')} masked."
    return f"{table(_COLUMNS, rows, width=width, palette=palette)}\n\n{total}"


def _tone(row: Mapping[str, Any]) -> Tone:
    return "warn" if row.get("quarantined") else _TONES.get(str(row["state"]), "")


def _state(row: Mapping[str, Any]) -> str:
    return f"{row['state']}: {plain(row['why'])}" if row.get("why") else str(row["state"])


LEAVES = {
    "backfill": Leaf(
        description=(
            "Delivers history: the same marks as the daemon, so nothing arrives twice. Beside a running daemon it is "
            "the daemon that does it. Ends with 6 when a sink does not answer for give_up_seconds (60), with 5 when "
            "one refuses."
        ),
        examples=(
            Example("exporter backfill --since 7d", "the sessions of the last week"),
            Example("exporter backfill --session 3f2a --dry-run", "what would go, and what would be masked"),
            Example("exporter backfill --all --sink mission_control", "everything, to one sink"),
            Example("exporter backfill --since 30d --sink otel", "traces, metrics and logs of the last month"),
        ),
        build=_build,
        run=_run,
    )
}
