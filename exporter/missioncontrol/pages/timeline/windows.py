"""What pages read of the store beyond the API's own queries; everything here only reads."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from exporter.core.events.envelope import Envelope, decode
from exporter.missioncontrol.ingest.agent_attribution import as_of
from exporter.missioncontrol.ingest.batch import key_of
from exporter.missioncontrol.pages.timeline.entry import data_of, text_of
from exporter.missioncontrol.store.payloads import whole_if_small
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import BadCursorError, number_of

TOOL_START: Final = "tool.execution_start"
TOOL_END: Final = "tool.execution_complete"
_CALLS_MAX: Final = 2000
"""How many ends, or beginnings, of calls are looked through for those of some."""
_IDS_PER_QUERY: Final = 500
_BYTES_MAX: Final = 8 << 20
_LARGE_BYTES_MAX: Final = 64 << 10
"""How much of an event that is kept apart is read for a window; of more the beginning is shown."""


_Stored = tuple[int, int, str | None, bytes, bytes | None]
"""What is stored of an event: its place and number, its agent, its body and the cuts in it."""


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


@dataclass(frozen=True, slots=True)
class TimelineScope:
    """Whose events are looked at: everybody's, the main agent's, or those of some agents.

    `hints` are ids in rows that stand for the main agent, as `AgentTree` has them.
    """

    agents: tuple[str, ...] = ()
    is_main: bool = False
    hints: tuple[str, ...] = ()

    def condition(self) -> tuple[str, tuple[str, ...]]:
        """Return SQL for a WHERE clause that holds for the scope's events, with its values."""
        if self.is_main:
            hints = f" OR agent_id IN ({','.join('?' * len(self.hints))})" if self.hints else ""
            return f" AND (agent_id IS NULL{hints})", self.hints
        if not self.agents:
            return "", ()
        return f" AND agent_id IN ({','.join('?' * len(self.agents))})", self.agents


class EventPlace(NamedTuple):
    """Where an event stands in its session."""

    session: int
    place: int
    n: int

    def moved(self, events: int) -> "EventPlace":
        """Return a place right beside this one; there may be no event at it."""
        return self._replace(n=self.n + events)


def place_of(database: Database, session_id: str, event_id: str) -> EventPlace:
    """Return where an event stands; raise `BadCursorError` when it is not shown."""
    session = number_of(database, session_id)
    place = _place(database, session, event_id, " AND hidden = 0")
    if place is None:
        raise BadCursorError(event_id)
    return EventPlace(session, *place)


def edge_of(database: Database, session_id: str, *, is_end: bool) -> EventPlace:
    """Return the place before the first event of a session, or the one behind its newest."""
    return EventPlace(number_of(database, session_id), *(_END if is_end else (-1, -1)))


def read_window(
    database: Database, edge: EventPlace, scope: TimelineScope, limit: int, *, is_back: bool = False
) -> Window:
    """Return the events behind a place, or before it, up to the next one that there is no room for."""
    condition, values = scope.condition()
    rows, rest = _rows(
        database, _found(database, edge, condition, values, limit + 1, is_back), limit, frozenset(scope.hints)
    )
    place = edge[1:]
    if is_back:
        return Window(rows[::-1], rest is not None, place < _END, place)
    return Window(rows, place >= (0, 0), rest is not None, rest or _END)


def _found(
    database: Database, edge: EventPlace, condition: str, values: Iterable[str], limit: int, is_back: bool
) -> Iterable[_Stored]:
    """Return what is stored of the shown events behind a place, or before it, the nearest first."""
    comparison, order = ("<", " DESC") if is_back else (">", "")
    return database.stream(
        "SELECT place, n, agent_id, body, cuts FROM events"  # noqa: S608  constants and marks
        f" WHERE session = ? AND hidden = 0 AND place {comparison}= ? AND (place, n) {comparison} (?, ?)"
        f"{condition} ORDER BY place{order}, n{order} LIMIT ?",
        (edge.session, edge.place, edge.place, edge.n, *values, limit),
    )


def _rows(
    database: Database,
    found: Iterable[_Stored],
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
    database: Database, place: EventPlace, types: tuple[str, ...], limit: int, *, is_back: bool = False
) -> Iterator[TimelineRow]:
    """Yield the events of these types behind a place (before it, newest first), with the beginning of what is large."""
    condition = f" AND type IN ({','.join('?' * len(types))})"
    for row in _found(database, place, condition, types, limit, is_back):
        yield from _rows(database, [row], 1, frozenset())[0]


def ends_behind(database: Database, session_id: str, window: Window) -> Iterator[TimelineRow]:
    """Yield the ends of tool calls behind a window; those are read that are asked for."""
    if window.behind:
        last = EventPlace(number_of(database, session_id), *window.rows[-1].place)
        yield from further_of_types(database, last, (TOOL_END,), _CALLS_MAX)


def beginning_of(database: Database, session_id: str, end: TimelineRow) -> TimelineRow | None:
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


def rewinds(database: Database, session_id: str) -> list[Rewind]:
    """Return what was taken back in a session, in the order of the places."""
    session = number_of(database, session_id)
    at: dict[str, list[str]] = {}
    for id, moment in database.execute("SELECT id, rewound_at FROM rewinds WHERE session = ? ORDER BY n", (session,)):
        at.setdefault(moment, []).append(id)
    found = []
    for moment, ids in at.items():
        places = [place for id in ids[:_IDS_PER_QUERY] if (place := _place(database, session, id)) is not None]
        if places:
            found.append(Rewind(moment, len(ids), min(places)))
    return sorted(found, key=lambda rewind: rewind.place)


def rewinds_within(rewinds: list[Rewind], window: Window) -> list[Rewind]:
    """Return what was taken back within a window or right behind it; of windows that join, each is in one."""
    first = window.rows[0].place if window.before and window.rows else (-1, -1)
    return [rewind for rewind in rewinds if first < rewind.place < window.until]


def _place(database: Database, session: int, id: str, condition: str = "") -> tuple[int, int] | None:
    row: tuple[int, int] | None = database.execute(
        f"SELECT place, n FROM events WHERE session = ? AND key = ? AND id = ?{condition}",  # noqa: S608  a constant
        (session, key_of(id), id),
    ).fetchone()
    return row


def all_of_types(database: Database, session_id: str, types: tuple[str, ...]) -> Iterator[TimelineRow]:
    """Yield a session's events of these types in file order, without what is large in them."""
    found = database.stream(
        "SELECT place, n, body FROM events WHERE session = ? AND hidden = 0"  # noqa: S608  marks only
        f" AND type IN ({','.join('?' * len(types))}) ORDER BY place, n",
        (number_of(database, session_id), *types),
    )
    for place, n, stored in found:
        envelope = decode(stored)
        if isinstance(envelope, Envelope):
            yield TimelineRow((place, n), envelope, len(stored))
