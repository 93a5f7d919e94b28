"""`exporter sessions`: what is here, one session in detail, and its events."""

import asyncio
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from exporter.cli.context import CommandContext
from exporter.cli.output.events import EventLines
from exporter.cli.output.table import Cell, Column, Palette, Tone, pairs, table
from exporter.cli.output.text import ago, count, moment, number, plain, words
from exporter.cli.parser import since
from exporter.cli.registry import Example, Leaf
from exporter.cli.session_ids import short_ids, whole_ids

STATES: Final = ("working", "idle", "needs_attention", "ended", "crashed")
_TONES: dict[str, Tone] = {"working": "good", "needs_attention": "warn", "crashed": "bad", "ended": "dim"}
_COLUMNS = (
    Column("ID"),
    Column("STATE"),
    Column("LAST ACTIVITY"),
    Column("EVENTS", right=True, spare=2),
    Column("MASKED", right=True, spare=3),
    Column("REPOSITORY", flex=True, spare=4),
    Column("TITLE", flex=True),
    Column("SINKS", spare=1),
)


def _build_list(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since", type=since, metavar="WHEN", help="only those active since then: 7d, 36h, yesterday, or an ISO time"
    )
    parser.add_argument(
        "--state", choices=STATES, metavar="STATE", help=f"only those in this state: {', '.join(STATES)}"
    )


def _build_one(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", help="id of a session; any unique beginning will do")


def _build_tail(parser: ArgumentParser) -> None:
    _build_one(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is added, until Ctrl-C")


def _run_list(invocation: CommandContext) -> int:
    args, out = invocation.args, invocation.out
    answer = invocation.ask({"do": "sessions"})
    shown = select(answer["sessions"], since=args.since, state=args.state)
    names = short_ids(session["id"] for session in answer["sessions"]) if out.width else {}
    now = datetime.now().astimezone()
    out.result(
        {**answer, "sessions": shown},
        lambda: sessions_text(shown, names=names, now=now, width=out.width, palette=out.palette),
    )
    return 0


def _run_show(invocation: CommandContext) -> int:
    out = invocation.out
    [session_id] = whole_ids(invocation, [invocation.args.id])
    answer = invocation.ask({"do": "session", "session": session_id})
    now = datetime.now().astimezone()
    out.result(answer, lambda: session_text(answer, now=now, palette=out.palette))
    return 0


def _run_tail(invocation: CommandContext) -> int:
    [session_id] = whole_ids(invocation, [invocation.args.id])
    asyncio.run(_tail(invocation, session_id))
    return 0


async def _tail(invocation: CommandContext, session_id: str) -> None:
    settings, out = invocation.load().settings, invocation.out
    from exporter import app

    lines = EventLines(out.palette, out.width)
    async for event in app.tail(settings, session_id, follow=invocation.args.follow):
        if out.as_json:
            out.write_bytes(event)
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


def sessions_text(
    sessions: Sequence[Mapping[str, Any]],
    *,
    names: Mapping[str, str],
    now: datetime,
    width: int | None,
    palette: Palette,
) -> str:
    """A line per session, ids shortened as `names` says."""
    if not sessions:
        return "No session here. A session appears once its first message is sent."
    rows = [
        (
            Cell(names.get(session["id"], session["id"]), "strong"),
            _state(session),
            Cell(ago(session.get("last_activity"), now)),
            Cell(number(session.get("events") or 0)),
            Cell(number(session["masked"]) if session.get("masked") else ""),
            Cell(_place(session)),
            Cell(plain(session.get("title") or "")),
            _sinks(session),
        )
        for session in sessions
    ]
    return table(_COLUMNS, rows, width=width, palette=palette)


def session_text(session: Mapping[str, Any], *, now: datetime, palette: Palette) -> str:
    """Everything that is known of one session, then a line per sink."""
    tokens = session.get("tokens") or {}
    used = [f"{number(tokens[kind]['value'])} {kind}" for kind in ("input", "output") if tokens.get(kind)]
    rows = [
        ("session", Cell(plain(session["id"]), "strong")),
        ("title", Cell(plain(session.get("title") or ""))),
        ("state", _state(session)),
        ("repository", Cell(_place(session))),
        ("model", Cell(plain(session.get("model") or ""))),
        ("started", Cell(_when(session.get("started"), now))),
        ("last activity", Cell(_when(session.get("last_activity"), now))),
        ("events", Cell(number(session.get("events") or 0))),
        ("tokens", Cell(", ".join(used))),
        ("secrets masked", Cell(number(session.get("masked") or 0))),
        ("host", Cell(plain(session.get("host") or ""))),
        ("file", Cell(plain(session.get("file") or ""))),
    ]
    for sink in session.get("sinks") or ():
        behind = sink.get("lag_events", 0)
        lag = sink.get("state") or (f"{count(behind, 'event')} behind" if behind else "has everything")
        rows.append(
            (
                f"sink {plain(sink['name'])}",
                Cell(f"{number(sink.get('delivered', 0))} delivered, {lag}", "warn" if behind else "good"),
            )
        )
    return pairs(rows, palette=palette)


def _state(session: Mapping[str, Any]) -> Cell:
    state = str(session.get("state") or "unknown")
    return Cell(words(state), _TONES.get(state, ""))


def _place(session: Mapping[str, Any]) -> str:
    return "@".join(plain(session[part]) for part in ("repository", "branch") if session.get(part))


def _when(text: object, now: datetime) -> str:
    when = moment(text)
    return f"{ago(text, now)} ({when.astimezone(now.tzinfo):%Y-%m-%d %H:%M})" if when else ""


def _sinks(session: Mapping[str, Any]) -> Cell:
    behind = [
        f"{plain(sink['name'])} {number(sink['lag_events'])} behind"
        for sink in session.get("sinks") or ()
        if sink.get("lag_events")
    ]
    behind += [f"{plain(sink['name'])} {sink['state']}" for sink in session.get("sinks") or () if sink.get("state")]
    if behind:
        return Cell(", ".join(behind), "warn")
    return Cell("have everything", "good") if session.get("sinks") else Cell("")


LEAVES = {
    "sessions list": Leaf(
        description="The sessions on this machine, the latest activity first, and whether every sink has all of them.",
        examples=(
            Example("exporter sessions list", "all of them"),
            Example("exporter sessions list --since yesterday", "the recent ones"),
            Example("exporter sessions list --state needs_attention --json", "for scripts"),
        ),
        build=_build_list,
        run=_run_list,
    ),
    "sessions show": Leaf(
        description="One session in detail: title, model, tokens, and what each sink has of it.",
        examples=(Example("exporter sessions show 3f2a", "any unique beginning of the id will do"),),
        build=_build_one,
        run=_run_show,
    ),
    "sessions tail": Leaf(
        description="The events of a session with secrets masked: a line each for people, JSON lines with --json.",
        examples=(
            Example("exporter sessions tail 3f2a", "what has happened so far"),
            Example("exporter sessions tail 3f2a -f", "and what happens next"),
            Example("exporter sessions tail 3f2a --json", "the events as they are delivered"),
        ),
        build=_build_tail,
        run=_run_tail,
    ),
}
