"""`exporter backfill`: deliver history."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from exporter.cli.command import CommandContext, command, exactly_one, option, session_options
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, table
from exporter.cli.output.text import count, number, plain, size, words
from exporter.cli.session_ids import shown_ids, whole_ids
from exporter.cli.values import When

_STOPPED: Final = ("deleted there", "of another token")
_TONES: Final[dict[str, Tone]] = {"delivered": "good", "refused": "bad", "waiting": "warn"}


@command(usage="(--session ID | --since WHEN | --all) [OPTIONS]")
@session_options
@option("--since", type=When(), help="sessions active since then: 7d, 36h, yesterday or an ISO time")
@option("--all", "all_", is_flag=True, help="all sessions on this machine")
@option("--sink", multiple=True, metavar="NAME", help="deliver to this sink only; can be repeated")
@option("--from-start", is_flag=True, help="ignore what was delivered and send everything again")
@option("--dry-run", is_flag=True, help="show what would be delivered and redacted; send nothing")
def backfill(
    context: CommandContext,
    session: tuple[str, ...],
    since: datetime | None,
    all_: bool,
    sink: tuple[str, ...],
    from_start: bool,
    dry_run: bool,
) -> int:
    """Delivers past sessions. Uses the same marks as the daemon, so nothing is delivered twice.

    If a daemon runs, the daemon does the work. Exits with 6 if a sink does not answer for give_up_seconds (60), and
    with 5 if a sink refuses.

    Examples:
    exporter backfill --since 7d  # sessions of the last week
    exporter backfill --session 3f2a --dry-run  # what would be delivered and redacted
    exporter backfill --all --sink mission_control  # all sessions, to one sink
    exporter backfill --since 30d --sink otel  # traces, metrics and logs of the last month
    """
    exactly_one(session=session, since=since, all=all_)
    answer = context.ask(
        {
            "do": "backfill",
            "sessions": whole_ids(context, session) if session else None,
            "since": since.isoformat() if since else None,
            "all": all_,
            "sinks": list(sink),
            "from_start": from_start,
            "dry_run": dry_run,
        }
    )
    for note in _notes(answer):
        context.out.notice(note)
    return context.report(answer, lambda view: backfill_text(answer["sessions"], view, dry_run=dry_run))


def _notes(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is to be read whole: a table is cut to the terminal."""
    yield from map(plain, answer.get("off", ()))
    rows = answer["sessions"]
    yield from (
        f"{plain(row['session'])} at {plain(row['sink'])}: {plain(row['why'])}"
        for row in rows
        if row["state"] in _STOPPED and row.get("why")
    )
    waiting = {(row["sink"], row["why"]) for row in rows if row["state"] == "waiting" and row.get("why")}
    yield from (f"{plain(sink)}: {plain(why)}" for sink, why in sorted(waiting))


def backfill_text(sessions: Sequence[Mapping[str, Any]], view: TerminalView, *, dry_run: bool) -> str:
    """A line per session and sink, and the sum."""
    if not sessions:
        return "No sessions to deliver."
    names = shown_ids(sessions, view)
    columns = (
        Column("SESSION", lambda row: names[row["session"]]),
        Column("SINK", "sink"),
        Column("EVENTS", lambda row: number(row["events"]), right=True),
        Column("SIZE", lambda row: size(row["bytes"]), right=True),
        Column("REDACTED", lambda row: "" if row.get("masked") is None else number(row["masked"]), right=True),
        Column("STATE", _state, flex=True),
    )
    by_session: dict[str, list[Mapping[str, Any]]] = {}
    for row in sessions:
        by_session.setdefault(row["session"], []).append(row)
    # What is delivered to several sinks counts once.
    events, bytes_, masked = (
        sum(max(row.get(name) or 0 for row in some) for some in by_session.values())
        for name in ("events", "bytes", "masked")
    )
    verb = "would be delivered" if dry_run else "delivered"
    total = f"{count(events, 'event')} ({size(bytes_)}) {verb}, {count(masked, 'secret')} redacted."
    return f"{table(columns, sessions, view)}\n\n{total}"


def _state(row: Mapping[str, Any]) -> Cell:
    state = str(row["state"])
    said = f"{state}: {row['why']}" if row.get("why") else state
    return Cell(words(said), "warn" if row.get("quarantined") else _TONES.get(state, ""))
