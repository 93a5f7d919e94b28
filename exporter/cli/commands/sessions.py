"""`exporter sessions`: what is here, one session in detail, and its events."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import click

from exporter.cli.command import CommandContext, command, option, session_argument
from exporter.cli.output.events import EventLines
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, pairs, table, without_repeats
from exporter.cli.output.text import ago, count, moment, number, plain, safe_json, words
from exporter.cli.session_ids import shown_ids, whole_ids
from exporter.cli.values import When

STATES: Final = ("working", "idle", "needs_attention", "ended", "crashed")
_TONES: Final[dict[str, Tone]] = {"working": "good", "needs_attention": "warn", "crashed": "bad", "ended": "dim"}


@command()
@option("--since", type=When(), help="active since then: 7d, 36h, yesterday or an ISO time")
@option("--state", type=click.Choice(STATES), metavar="STATE", help=f"in this state: {', '.join(STATES)}")
def list_sessions(context: CommandContext, since: datetime | None, state: str | None) -> int:
    """Lists the sessions on this machine by last activity, and what is pending at each sink.

    Examples:
    exporter sessions list  # all sessions
    exporter sessions list --since yesterday  # recent sessions
    exporter sessions list --state needs_attention --json  # for scripts
    """
    answer = context.ask({"do": "sessions"})
    names = shown_ids(answer["sessions"], context.out.view, key="id")
    shown = select(answer["sessions"], since=since, state=state)
    return context.report({**answer, "sessions": shown}, lambda view: sessions_text(shown, names, view))


@command()
@session_argument
def show(context: CommandContext, session: str) -> int:
    """Shows one session: title, model, tokens, and what each sink has received.

    Examples:
    exporter sessions show 3f2a  # any unique prefix of the id
    """
    [session_id] = whole_ids(context, [session])
    answer = context.ask({"do": "session", "session": session_id})
    return context.report(answer, lambda view: session_text(answer, view))


@command()
@session_argument
@option("-f", "--follow", is_flag=True, help="keep printing new events until Ctrl-C")
def tail(context: CommandContext, session: str, follow: bool) -> int:
    """Prints the events of a session with secrets redacted: one readable line each, or JSON lines with --json.

    Examples:
    exporter sessions tail 3f2a  # all events so far
    exporter sessions tail 3f2a -f  # and new events as they come
    exporter sessions tail 3f2a --json  # the events as they are delivered
    """
    [session_id] = whole_ids(context, [session])
    asyncio.run(_tail(context, session_id, follow=follow))
    return 0


async def _tail(context: CommandContext, session_id: str, *, follow: bool) -> None:
    settings, out = context.load(sessions=True).settings, context.out
    from exporter import app

    lines = EventLines(out.view)
    async for event in app.tail(settings, session_id, follow=follow):
        if out.as_json:
            text = safe_json(event.rstrip(b"\n").decode("utf-8", "surrogateescape"))
            out.write_bytes(text.encode("utf-8", "surrogateescape") + b"\n")
        else:
            out.write(lines.text(event))


def select(
    sessions: Sequence[Mapping[str, Any]], *, since: datetime | None, state: str | None
) -> list[Mapping[str, Any]]:
    """Those in the state and active since the time, the latest activity first."""

    def active(session: Mapping[str, Any]) -> float:
        when = moment(session.get("last_activity"))
        return when.timestamp() if when else 0.0

    earliest = since.timestamp() if since else 0.0
    chosen = [one for one in sessions if active(one) >= earliest and state in (None, one.get("state"))]
    return sorted(chosen, key=active, reverse=True)


def sessions_text(sessions: Sequence[Mapping[str, Any]], names: Mapping[str, str], view: TerminalView) -> str:
    """A line per session, ids shortened as `names` says."""
    if not sessions:
        return "No sessions found. A session appears after its first message is sent."
    columns = (
        Column("ID", lambda session: Cell(names[session["id"]], "strong")),
        Column("STATE", _state),
        Column("LAST ACTIVITY", lambda session: ago(session.get("last_activity"), view.now)),
        Column("EVENTS", lambda session: number(session.get("events") or 0), right=True, spare=2),
        Column(
            "REDACTED", lambda session: number(session["masked"]) if session.get("masked") else "", right=True, spare=3
        ),
        *((Column("OWNER", "owner", spare=4),) if len({one.get("owner") for one in sessions}) > 1 else ()),
        Column("REPOSITORY", "repository", flex=True, spare=4),
        Column("BRANCH", "branch", flex=True, spare=5),
        Column("TITLE", "title", flex=True),
        Column("SINKS", _sinks, spare=1),
    )
    differing, alike = without_repeats(columns, sessions)
    repeated = f"\n\nthe same for all: {', '.join(alike)}" if alike else ""
    return table(differing, sessions, view) + repeated


def session_text(session: Mapping[str, Any], view: TerminalView) -> str:
    """Everything that is known of one session, then a line per sink."""
    tokens = session.get("tokens") or {}
    used = [f"{number(tokens[kind]['value'])} {kind}" for kind in ("input", "output") if tokens.get(kind)]
    rows = [
        ("session", Cell(session["id"], "strong")),
        ("title", session.get("title")),
        ("state", _state(session)),
        ("repository", _place(session)),
        ("model", session.get("model")),
        ("started", _when(session.get("started"), view.now)),
        ("last activity", _when(session.get("last_activity"), view.now)),
        ("events", number(session.get("events") or 0)),
        ("tokens", ", ".join(used)),
        ("secrets redacted", number(session.get("masked") or 0)),
        ("host", session.get("host")),
        ("owner", session.get("owner")),
        ("file", session.get("file")),
        *((f"sink {sink['name']}", _sink(sink)) for sink in session.get("sinks") or ()),
    ]
    return pairs(rows, view)


def _sink(sink: Mapping[str, Any]) -> Cell:
    behind = sink.get("lag_events", 0)
    settled = "accepted, not confirmed" if sink.get("unconfirmed") else "up to date"
    lag = sink.get("state") or (f"{count(behind, 'event')} pending" if behind else settled)
    return Cell(f"{number(sink.get('delivered', 0))} delivered, {lag}", "warn" if behind else "good")


def _state(session: Mapping[str, Any]) -> Cell:
    state = str(session.get("state") or "unknown")
    doubt = ", liveness unknown" if session.get("liveness") else ""
    return Cell(words(state) + doubt, _TONES.get(state, ""))


def _place(session: Mapping[str, Any]) -> str:
    return "@".join(plain(session[part]) for part in ("repository", "branch") if session.get(part))


def _when(text: object, now: datetime) -> str:
    when = moment(text)
    return f"{ago(text, now)} ({when.astimezone(now.tzinfo):%Y-%m-%d %H:%M})" if when else ""


def _sinks(session: Mapping[str, Any]) -> Cell:
    sinks = session.get("sinks") or ()
    behind = [f"{sink['name']} {number(sink['lag_events'])} pending" for sink in sinks if sink.get("lag_events")]
    behind += [f"{sink['name']} {sink['state']}" for sink in sinks if sink.get("state")]
    if behind:
        return Cell(", ".join(behind), "warn")
    if any(sink.get("unconfirmed") for sink in sinks):
        return Cell("accepted, not confirmed")
    return Cell("up to date" if sinks else None, "good")
