"""`exporter verify`: proves that each Mission Control and archive holds exactly what the files hold."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from exporter.cli.command import CommandContext, command, exactly_one, option, session_options
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, table, warning
from exporter.cli.output.text import count, number, plain
from exporter.cli.session_ids import shown_ids, whole_ids

IDS_SHOWN_MAX: Final = 3
_DIFFERENCES: Final = {
    "missing": "missing at the receiver",
    "extra": "not in the file",
    "different": "different content",
}

_HISTORY: Final = {**_DIFFERENCES, "missing": "missing at the sink", "extra": "not in the history"}


@command(usage="(--session ID | --all) [OPTIONS]")
@session_options
@option("--all", "all_", is_flag=True, help="all sessions on this machine")
@option("--repair", is_flag=True, help="send missing events, then compare again")
@option("--source", is_flag=True, help="compare with the history of the CLI server or agent host, asked anew")
@option("--wake", is_flag=True, help="with --source: ask for sessions too that an agent host would load to answer")
def verify(
    context: CommandContext, session: tuple[str, ...], all_: bool, repair: bool, source: bool, wake: bool
) -> int:
    """Compares the event ids of each session file, of what was delivered, and of what each sink holds.

    Sinks that can be asked are Mission Controls and archives. The comparison is by digest; if digests differ, the ids
    are listed. An archive is read completely. Exits with 8 if something differs, otherwise with 5 or 6 if a receiver
    refuses or does not answer, and with 4 if it cannot be asked: then the verdict is "unknown", with what the receiver
    accepted. Quarantined events and sessions deleted at the receiver do not count as differences.

    With --source, what each sink was given of a session without a file is compared with the history of its CLI server
    or agent host; turns that are missing, double or different are named. Sessions that an agent host has not loaded
    are not asked for without --wake. Exits with 8 if something differs, with 4 if a history cannot be asked for.
    Sessions with a file are compared without --source.

    Examples:
    exporter verify --all  # all sessions on this machine
    exporter verify --session 3f2a --repair  # send the missing events of one session
    """
    exactly_one(session=session, all=all_)
    if source and repair:
        raise click.UsageError("--source and --repair cannot be combined")
    if wake and not source:
        raise click.UsageError("--wake needs --source")
    sessions = whole_ids(context, session) if session else None
    if source:
        answer = context.ask({"do": "verify_source", "sessions": sessions, "wake": wake})
        return context.report(answer, lambda view: source_text(answer["sessions"], view))
    answer = context.ask({"do": "verify", "sessions": sessions, "all": all_, "repair": repair})
    return context.report(answer, lambda view: verify_text(answer["sessions"], view))


def verify_text(sessions: Sequence[Mapping[str, Any]], view: TerminalView) -> str:
    """A line per session and sink, the ids that differ, and the verdict over all."""
    if not sessions:
        return "Nothing to compare: no sessions, or no sink that can be asked what it holds (OTLP endpoints cannot)."
    names = shown_ids(sessions, view)
    columns = (
        Column("SESSION", lambda row: names[row["session"]]),
        Column("SINK", "sink"),
        Column("VERDICT", _verdict),
        Column("FILE", lambda row: number(row["file"]), right=True),
        Column("DELIVERED", lambda row: number(row["delivered"]), right=True, spare=1),
        Column("RECEIVER", lambda row: "-" if row.get("receiver") is None else number(row["receiver"]), right=True),
        Column("QUARANTINED", lambda row: warning(row.get("quarantined", 0)), right=True, spare=2),
        Column("DETAIL", "detail", flex=True, spare=3),
    )
    blocks = [table(columns, sessions, view)]
    for row in sessions:
        if lines := list(_differences(row)):
            title = f"{names[row['session']]} at {plain(row['sink'])}"
            blocks.append("\n".join([view.palette.paint(title, "strong"), *lines]))
    return "\n\n".join([*blocks, "\n".join(_totals(sessions, view))])


def source_text(sessions: Sequence[Mapping[str, Any]], view: TerminalView) -> str:
    """A line per session and sink, the turns that differ, and the verdict over all."""
    if not sessions:
        return (
            "Nothing to compare: no session is read from a CLI server or an agent host. "
            "`exporter verify` compares session files."
        )
    rows = [{**row, "equal": row["verdict"] == "equal"} for row in sessions]
    names = shown_ids(rows, view)
    columns = (
        Column("SESSION", lambda row: names[row["session"]]),
        Column("SINK", lambda row: row["sink"] or "-"),
        Column("VERDICT", _verdict),
        Column("HISTORY", lambda row: number(row["history"]), right=True),
        Column("GIVEN", lambda row: number(row["given"]), right=True),
        Column("SOURCE", "source", spare=1),
        Column("DETAIL", "detail", flex=True, spare=2),
    )
    blocks = [table(columns, rows, view)]
    for row in rows:
        if row["turns"]:
            title = f"{names[row['session']]} at {plain(row['sink'])}"
            turns = (f"  {plain(one)}" for one in row["turns"])
            blocks.append("\n".join([view.palette.paint(title, "strong"), *turns, *_differences(row, _HISTORY)]))
    return "\n\n".join([*blocks, "\n".join(_totals(rows, view))])


def _verdict(row: Mapping[str, Any]) -> Cell:
    if row["equal"]:
        return Cell("equal", "good")
    verdict = row.get("verdict", "different")
    return Cell("DIFFERENT", "bad") if verdict == "different" else Cell(verdict, "warn")


def _differences(row: Mapping[str, Any], meanings: Mapping[str, str] = _DIFFERENCES) -> Iterator[str]:
    for key, meaning in meanings.items():
        if ids := row.get(key) or ():
            yield f"  {meaning}: {count(len(ids), 'event')}"
            yield from (f"    {plain(one)}" for one in ids[:IDS_SHOWN_MAX])
            if len(ids) > IDS_SHOWN_MAX:
                yield f"    and {len(ids) - IDS_SHOWN_MAX:,} more (use --json to list all)"


def _totals(sessions: Sequence[Mapping[str, Any]], view: TerminalView) -> Iterator[str]:
    """How many are how, and what is in quarantine, which is at no receiver and is no difference."""
    verdicts = Counter("equal" if row["equal"] else row.get("verdict", "different") for row in sessions)
    compared, wrong, equal = count(len(sessions), "comparison"), verdicts.pop("different", 0), verdicts.pop("equal", 0)
    parts = [f"{number(wrong)} with differences"] if wrong else []
    parts += [f"{number(many)} {plain(verdict)}" for verdict, many in verdicts.items()]
    tone: Tone = "bad" if wrong else "good" if equal == len(sessions) else "warn"
    yield view.palette.paint(f"{compared}: {', '.join(parts)}." if parts else f"{compared}, all equal.", tone)
    if kept := sum(row.get("quarantined") or 0 for row in sessions):
        note = f"{number(kept)} quarantined and therefore not delivered; see `exporter quarantine list`."
        yield view.palette.paint(note, "warn")
