"""What pages read of the store beyond the API's own queries; everything here only reads."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import msgspec

from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.summary import Summary
from exporter.missioncontrol.ingest.agent_attribution import as_of
from exporter.missioncontrol.ingest.batch import key_of
from exporter.missioncontrol.pages.timeline.entry import data_of, text_of
from exporter.missioncontrol.store.amounts import amount
from exporter.missioncontrol.store.payloads import whole_if_small
from exporter.missioncontrol.store.session_row import BadCursorError, number_of

TOOL_START: Final = "tool.execution_start"
TOOL_END: Final = "tool.execution_complete"
_CALLS_MAX: Final = 2000
"""How many ends, or beginnings, of calls are looked through for those of some."""
_IDS_PER_QUERY: Final = 500
_BYTES_MAX: Final = 8 << 20
_LARGE_BYTES_MAX: Final = 64 << 10
"""How much of an event that is kept apart is read for a window; of more the beginning is shown."""


class TimelineRow(NamedTuple):
    """One event at its place in the session, as one of the agent that it belongs to."""

    place: tuple[int, int]
    envelope: Envelope
    size_bytes: int


_END: Final = (1 << 62, 1 << 62)


@dataclass(frozen=True, slots=True)
class Window:
    """A run of a session's events in file order; others are before and behind it, from the place `until` on."""

    rows: list[TimelineRow]
    before: bool
    behind: bool
    until: tuple[int, int] = _END
    ends: tuple[TimelineRow, ...] = ()
    """The ends, behind it, of tool calls that began in it."""


@dataclass(frozen=True, slots=True)
class TimelineScope:
    """Whose events are looked at: everybody's, the main agent's, or those of some agents.

    `hints` are ids in rows that stand for the main agent, as `belonging.Kin` has them.
    """

    agents: tuple[str, ...] = ()
    is_main: bool = False
    hints: tuple[str, ...] = ()

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """Return SQL that holds for the scope's events, with its values."""
        if self.is_main:
            return f"(agent_id IS NULL OR agent_id IN ({','.join('?' * len(self.hints))}))", self.hints
        if not self.agents:
            return "1", ()
        return f"agent_id IN ({','.join('?' * len(self.agents))})", self.agents


class EventPlace(NamedTuple):
    """Where an event stands in its session."""

    session: int
    place: int
    n: int


def place_of(database: sqlite3.Connection, session_id: str, event_id: str) -> EventPlace:
    """Return where an event stands; raise `BadCursorError` when it is not shown."""
    session = number_of(database, session_id)
    row = database.execute(
        "SELECT place, n FROM events WHERE session = ? AND key = ? AND id = ? AND hidden = 0",
        (session, key_of(event_id), event_id),
    ).fetchone()
    if row is None:
        raise BadCursorError(event_id)
    return EventPlace(session, row[0], row[1])


def first_window(database: sqlite3.Connection, session_id: str, scope: TimelineScope, limit: int) -> Window:
    """Return the first events."""
    return _ahead(database, number_of(database, session_id), scope, (-1, -1), limit)


def last_window(database: sqlite3.Connection, session_id: str, scope: TimelineScope, limit: int) -> Window:
    """Return the newest events."""
    return _back(database, number_of(database, session_id), scope, _END, limit)


def window_before(database: sqlite3.Connection, place: EventPlace, scope: TimelineScope, limit: int) -> Window:
    """Return the events before a place."""
    return _back(database, place.session, scope, (place.place, place.n), limit)


def window_from(database: sqlite3.Connection, place: EventPlace, scope: TimelineScope, limit: int) -> Window:
    """Return the event at a place, when it is in the scope, and those behind it."""
    return _ahead(database, place.session, scope, (place.place, place.n - 1), limit)


def window_after(database: sqlite3.Connection, place: EventPlace, scope: TimelineScope, limit: int) -> Window:
    """Return the events behind a place."""
    return _ahead(database, place.session, scope, (place.place, place.n), limit)


def _ahead(
    database: sqlite3.Connection, session: int, scope: TimelineScope, after: tuple[int, int], limit: int
) -> Window:
    condition, values = scope.condition()
    found = database.execute(
        "SELECT place, n, agent_id, body, cuts FROM events WHERE session = ? AND hidden = 0 AND place >= ?"  # noqa: S608  constants and marks
        f" AND (place, n) > (?, ?) AND {condition} ORDER BY place, n LIMIT ?",
        (session, after[0], *after, *values, limit + 1),
    )
    rows, rest = _rows(database, found, limit, frozenset(scope.hints))
    return Window(rows, after >= (0, 0), rest is not None, rest or _END)


def _back(
    database: sqlite3.Connection, session: int, scope: TimelineScope, before: tuple[int, int], limit: int
) -> Window:
    condition, values = scope.condition()
    found = database.execute(
        "SELECT place, n, agent_id, body, cuts FROM events WHERE session = ? AND hidden = 0 AND place <= ?"  # noqa: S608  constants and marks
        f" AND (place, n) < (?, ?) AND {condition} ORDER BY place DESC, n DESC LIMIT ?",
        (session, before[0], *before, *values, limit + 1),
    )
    rows, rest = _rows(database, found, limit, frozenset(scope.hints))
    return Window(rows[::-1], rest is not None, before < _END, before)


def _rows(
    database: sqlite3.Connection,
    found: Iterable[tuple[int, int, str | None, bytes, bytes | None]],
    limit: int,
    hints: frozenset[str],
) -> tuple[list[TimelineRow], tuple[int, int] | None]:
    """Return as many rows as are shown at once, and the place of the next one."""
    rows: list[TimelineRow] = []
    size = 0
    for place, n, agent, stored, cuts in found:
        if len(rows) == limit or size > _BYTES_MAX:
            return rows, (place, n)
        body = whole_if_small(database, stored, cuts, _LARGE_BYTES_MAX)
        envelope = decode(body)
        if isinstance(envelope, Envelope):
            rows.append(TimelineRow((place, n), as_of(envelope, None if agent in hints else agent), len(body)))
            size += len(body)
    return rows, None


def further_of_types(
    database: sqlite3.Connection, place: EventPlace, types: tuple[str, ...], limit: int, *, is_back: bool = False
) -> Iterator[TimelineRow]:
    """Yield the events of these types behind a place (before it, newest first), with the beginning of what is large."""
    comparison, order = ("<", " DESC") if is_back else (">", "")
    found = database.execute(
        "SELECT place, n, agent_id, body, cuts FROM events"  # noqa: S608  constants and marks
        f" WHERE session = ? AND hidden = 0 AND place {comparison}= ? AND (place, n) {comparison} (?, ?)"
        f" AND type IN ({','.join('?' * len(types))}) ORDER BY place{order}, n{order} LIMIT ?",
        (place.session, place.place, place.place, place.n, *types, limit),
    )
    for row in found:
        yield from _rows(database, [row], 1, frozenset())[0]


def with_ends(database: sqlite3.Connection, session_id: str, window: Window) -> Window:
    """Return the window with the ends, behind it, of the tool calls that began in it."""
    open_calls: set[str] = set()
    for row in window.rows if window.behind else ():
        if row.envelope.type == TOOL_START:
            open_calls.add(_call_of(row))
        elif row.envelope.type == TOOL_END:
            open_calls.discard(_call_of(row))
    ends: list[TimelineRow] = []
    if open_calls:
        last = EventPlace(number_of(database, session_id), *window.rows[-1].place)
        for row in further_of_types(database, last, (TOOL_END,), _CALLS_MAX):
            if (call := _call_of(row)) in open_calls:
                open_calls.discard(call)
                ends.append(row)
                if not open_calls:
                    break
    return replace(window, ends=tuple(ends))


def beginning_of(database: sqlite3.Connection, session_id: str, end: TimelineRow) -> TimelineRow | None:
    """Return the event that began the tool call with this end, or None."""
    call = _call_of(end)
    if not call:
        return None
    place = EventPlace(number_of(database, session_id), *end.place)
    starts = further_of_types(database, place, (TOOL_START,), _CALLS_MAX, is_back=True)
    return next((row for row in starts if _call_of(row) == call), None)


def _call_of(row: TimelineRow) -> str:
    return text_of(data_of(row.envelope), "toolCallId")


@dataclass(frozen=True, slots=True)
class Rewind:
    """Events that were taken back: when, how many, and the place of the first."""

    at: str
    count: int
    place: tuple[int, int]


def rewinds(database: sqlite3.Connection, session_id: str) -> list[Rewind]:
    """Return what was taken back in a session, in the order of the places."""
    session = number_of(database, session_id)
    at: dict[str, list[str]] = {}
    for id, moment in database.execute("SELECT id, rewound_at FROM rewinds WHERE session = ? ORDER BY n", (session,)):
        at.setdefault(moment, []).append(id)
    found = []
    for moment, ids in at.items():
        places = [place for id in ids[:_IDS_PER_QUERY] if (place := _any_place(database, session, id)) is not None]
        if places:
            found.append(Rewind(moment, len(ids), min(places)))
    return sorted(found, key=lambda rewind: rewind.place)


def rewinds_within(rewinds: list[Rewind], window: Window) -> list[Rewind]:
    """Return what was taken back within a window or right behind it; of windows that join, each is in one."""
    first = window.rows[0].place if window.before and window.rows else (-1, -1)
    return [rewind for rewind in rewinds if first < rewind.place < window.until]


def _any_place(database: sqlite3.Connection, session: int, id: str) -> tuple[int, int] | None:
    row: tuple[int, int] | None = database.execute(
        "SELECT place, n FROM events WHERE session = ? AND key = ? AND id = ?", (session, key_of(id), id)
    ).fetchone()
    return row


Figures = dict[str, dict[str, float]]
"""Numbers by what they count, and of each by the source that tells it."""


def figures(database: sqlite3.Connection, session_ids: list[str]) -> dict[str, Figures]:
    """Return tokens and cost of sessions, side by side as each source tells them; they are never added."""
    told: dict[str, Figures] = {}
    for start in range(0, len(session_ids), _IDS_PER_QUERY):
        ids = session_ids[start : start + _IDS_PER_QUERY]
        rows = database.execute(
            f"SELECT id, summary FROM sessions WHERE id IN ({','.join('?' * len(ids))})",  # noqa: S608  marks only
            ids,
        )
        for id, stored in rows:
            summary = msgspec.json.decode(stored, type=Summary)
            found: Figures = {}
            for source, values in (("usage_record", summary.recorded), ("shutdown", summary.totals)):
                for name, value in values.items():
                    found.setdefault(name, {})[source] = value
            told[id] = found
    return told


@dataclass(frozen=True, slots=True)
class Lags:
    """How far behind exporters say they are: with each session that they name, and at worst with those of their host.

    An exporter that names sessions is level with all others of its host.
    """

    sessions: dict[str, dict[str, Any]]
    hosts: dict[str, dict[str, Any]]

    def of(self, session: dict[str, Any]) -> dict[str, Any] | None:
        """Return how far behind the exporter of a session is with it; None when no exporter has said."""
        return self.sessions.get(session["id"]) or self.hosts.get(str(session.get("host")))


def lags(reports: list[dict[str, Any]]) -> Lags:
    """Return what the newest reports of all exporters say of lags."""
    sessions: dict[str, dict[str, Any]] = {}
    hosts: dict[str, dict[str, Any]] = {}
    for report in reports:
        host, sinks, behind = report.get("host"), report.get("sinks"), report.get("behind")
        if isinstance(behind, dict):
            for id, lag in behind.items():
                if isinstance(lag, dict) and (known := _lag(lag)):
                    sessions.setdefault(id, {**known, "at": report.get("reported_at")})
        if not isinstance(host, str) or host in hosts or not isinstance(sinks, list):
            continue
        usable = [known for sink in sinks if isinstance(sink, dict) and (known := _lag(sink))]
        if isinstance(behind, dict):
            hosts[host] = {"lag_seconds": 0.0, "lag_events": 0}
        elif usable:
            hosts[host] = max(usable, key=lambda lag: lag["lag_seconds"])
    return Lags(sessions, hosts)


def _lag(told: dict[str, Any]) -> dict[str, float] | None:
    seconds = amount(told.get("lag_seconds"))
    return None if seconds is None else {"lag_seconds": seconds, "lag_events": amount(told.get("lag_events")) or 0}


def all_of_types(database: sqlite3.Connection, session_id: str, types: tuple[str, ...]) -> Iterator[TimelineRow]:
    """Yield a session's events of these types in file order, without what is large in them."""
    found = database.execute(
        "SELECT place, n, body FROM events WHERE session = ? AND hidden = 0"  # noqa: S608  marks only
        f" AND type IN ({','.join('?' * len(types))}) ORDER BY place, n",
        (number_of(database, session_id), *types),
    )
    for place, n, stored in found:
        envelope = decode(stored)
        if isinstance(envelope, Envelope):
            yield TimelineRow((place, n), envelope, len(stored))
