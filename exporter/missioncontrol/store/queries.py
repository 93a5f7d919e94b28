"""Reads of the store that change nothing.

A list continues at a cursor: an opaque text that is safe in an address.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from exporter.core.events.summary import Summary
from exporter.missioncontrol.ingest.batch import key_of
from exporter.missioncontrol.store.amounts import AMOUNT_MAX
from exporter.missioncontrol.store.fleet import known_settings
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import BadCursorError, SessionAck, columns_of, number_of, shown_events

_PAGE_BYTES_MAX: Final = 16 << 20
_WORDS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class UploadState:
    """What the store has of one session; `items` are [id, SHA-256 in hex] of the events shown, in stored order.

    `others` are the ids among them that another installation sent than the one that asks.
    """

    task_id: str
    ack: SessionAck
    items: list[tuple[str, str]] | None
    others: list[str]
    changes: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events as delivered, the agent of each row, and the id after which the next page begins when there is one."""

    bodies: list[bytes]
    next: str | None
    agents: list[str | None]


@dataclass(frozen=True, slots=True)
class StoreTotals:
    """How much the store holds."""

    sessions: dict[str, int]
    events: int


def upload_state(
    database: Database, session_id: str, *, with_items: bool = False, asker: int | None = None
) -> UploadState:
    """Return what an uploader compares its marks with; the items on request. `asker` is the uploader's installation."""
    row = columns_of(database, session_id, "n, task_id, count, digest, last_event_id")
    n, task_id, count, digest, last_event_id = row
    items: list[tuple[str, str]] | None = None
    others: list[str] = []
    if with_items:
        rows = list(shown_events(database, n, "id, sha256, sender"))
        items = [(id, hashed.hex()) for id, hashed, _ in rows]
        others = [id for id, _, sender in rows if asker is not None and sender not in (None, asker)]
    return UploadState(task_id, SessionAck(count, digest.hex(), last_event_id), items, others, database.changes())


class _Titled(msgspec.Struct):
    title: str | None = None


_read_titled: Final = msgspec.json.Decoder(_Titled).decode
_REPORTED: Final = ("title", "repository", "branch", "state", "owner")
_SESSION_COLUMNS: Final = "id, count, last_event_id, summary, report, masked, last_activity"


def session(database: Database, session_id: str) -> dict[str, Any]:
    """Return one session as the API shows it."""
    return _as_session(columns_of(database, session_id, _SESSION_COLUMNS))


def title(database: Database, session_id: str) -> str | None:
    """Return the title of a session; None when it has none or is unknown."""
    row = database.execute("SELECT report, summary FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        return None
    report, summary = row
    reported = _read_titled(report).title if report else None
    return _read_titled(summary).title if reported is None else reported


def sessions(
    database: Database,
    *,
    state: str | None = None,
    words: str | None = None,
    since: str | None = None,
    limit: int,
    cursor: str | None = None,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the sessions that match, newest activity first, and the cursor of the next page."""
    conditions, values = _containing(database, words)
    for condition, value in (("state = ?", state), ("last_activity >= ?", since)):
        if value:
            conditions.append(condition)
            values.append(value)
    if cursor:
        conditions.append("(last_activity, id) < (?, ?)")
        values.extend(decode_cursor(cursor, tuple[str, str]))
    rows = database.execute(
        f"SELECT {_SESSION_COLUMNS} FROM sessions{where(conditions)}"  # noqa: S608  constants only
        " ORDER BY last_activity DESC, id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    page = [_as_session(row) for row in rows[:limit]]
    more = len(rows) > limit
    return page, encode_cursor(rows[limit - 1][6], rows[limit - 1][0]) if more else None


def events(
    database: Database,
    session_id: str,
    *,
    after: str | None = None,
    type: str | None = None,
    agent: str | None = None,
    limit: int,
    large: bool = True,
    wanted: Callable[[bytes], bool] | None = None,
) -> EventPage:
    """Return events in file order, exactly as delivered; without `large` as they are stored, see `payloads`.

    With `wanted` only events for which it returns True; its argument is the event as it is stored.
    """
    condition, values = _condition(database, session_id, after, type, agent)
    statement = f"SELECT id, agent_id, body, cuts FROM events WHERE {condition} ORDER BY place, n"  # noqa: S608  constants only
    if wanted is None:
        statement += " LIMIT ?"
        values.append(limit + 1)
    found = database.stream(statement, values)
    bodies: list[bytes] = []
    agents: list[str | None] = []
    size, last = 0, None
    for id, of, stored, cuts in found:
        if wanted is not None and not wanted(stored):
            continue
        body = whole(database, stored, cuts) if large else stored
        if len(bodies) == limit or (bodies and size + len(body) > _PAGE_BYTES_MAX):
            return EventPage(bodies, last, agents)
        bodies.append(body)
        agents.append(of)
        size, last = size + len(body), id
    return EventPage(bodies, None, agents)


def _condition(
    database: Database, session_id: str, after: str | None, type: str | None, agent: str | None
) -> tuple[str, list[Any]]:
    """Return an SQL condition for the requested events, with its values."""
    session_n = number_of(database, session_id)
    conditions, values = ["session = ?", "hidden = 0"], list[Any]([session_n])
    if after is not None:
        conditions.append("place >= ? AND (place, n) > (?, ?)")
        place, row = _place_of(database, session_n, after)
        values += (place, place, row)
    for condition, value in (("type = ?", type), ("agent_id = ?", agent)):
        if value is not None:
            conditions.append(condition)
            values.append(value)
    return " AND ".join(conditions), values


def event(database: Database, session_id: str, event_id: str) -> bytes | None:
    """Return one event exactly as delivered; None when the session does not show it."""
    found = event_of_agent(database, session_id, event_id)
    return None if found is None else found[0]


def event_of_agent(database: Database, session_id: str, event_id: str) -> tuple[bytes, str | None] | None:
    """Return one event exactly as delivered and the agent of its row; None when the session does not show it."""
    row = database.execute(
        "SELECT body, cuts, agent_id FROM events WHERE session = ? AND key = ? AND id = ? AND hidden = 0",
        (number_of(database, session_id), key_of(event_id), event_id),
    ).fetchone()
    return None if row is None else (whole(database, row[0], row[1]), row[2])


def events_numbered(database: Database, session_id: str, first: int, count: int) -> list[bytes]:
    """Return the events with these row numbers that a session shows, exactly as delivered, in file order."""
    rows = shown_events(
        database, number_of(database, session_id), "body, cuts", " AND n >= ? AND n < ?", (first, first + count)
    )
    return [whole(database, *row) for row in list(rows)]


def lines(database: Database, session_id: str) -> Iterator[bytes]:
    """Yield every event of a session in file order, without keeping all in memory."""
    rows = shown_events(database, number_of(database, session_id), "body, cuts")
    return (whole(database, *row) for row in rows)


def newest_event(database: Database) -> int:
    """Return the highest row number of an event, 0 when there is none."""
    (number,) = database.execute("SELECT coalesce(max(n), 0) FROM events").fetchone()
    return int(number)


def identity(database: Database) -> int:
    """Return the number by which an index and an uploader know this store from another one."""
    (number,) = database.execute("SELECT value FROM counters WHERE name = 'identity'").fetchone()
    return int(number)


def exporters(database: Database, heard_since: str = "") -> list[dict[str, Any]]:
    """Return the last report of every exporter, newest first; one that ended before that moment has no copies."""
    rows = database.execute("SELECT id, report, reported_at FROM exporters ORDER BY reported_at DESC, id LIMIT 1000")
    told = [{**msgspec.json.decode(report), "id": id, "reported_at": at} for id, report, at in rows]
    for report in told:
        report["settings"] = known_settings(report).get("hash")
        if report.get("copies") and report["reported_at"] < heard_since:
            report |= {"installations": {}, "copies": 0}
    return told


def copied(database: Database, heard_since: str) -> int:
    """Return how many exporters have an id under which several installations report."""
    return sum(bool(report.get("copies")) for report in exporters(database, heard_since))


def totals(database: Database, words: str | None = None) -> StoreTotals:
    """Return how many sessions there are in each state, and how many events in all; with words, of those that match."""
    conditions, values = _containing(database, words)
    rows = database.execute(
        f"SELECT state, count(*), sum(count) FROM sessions{where(conditions)} GROUP BY state",  # noqa: S608  constants only
        values,
    ).fetchall()
    return StoreTotals({state: sessions for state, sessions, _ in rows}, sum(int(events) for _, _, events in rows))


def where(conditions: list[str]) -> str:
    """Return the clause for all of these conditions; nothing when there are none."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _containing(database: Database, text: str | None) -> tuple[list[str], list[Any]]:
    """Return a condition for each word that a session must contain, of limited number, with their values."""
    words: list[Any] = (text or "").casefold().split()[:_WORDS_MAX]
    return [database.contains("haystack")] * len(words), words


def _place_of(database: Database, n: int, event_id: str) -> tuple[int, int]:
    row = database.execute(
        "SELECT place, n FROM events WHERE session = ? AND key = ? AND id = ?", (n, key_of(event_id), event_id)
    ).fetchone()
    if row is None:
        raise BadCursorError(event_id)
    return row[0], row[1]


def _as_session(row: tuple[Any, ...]) -> dict[str, Any]:
    id, count, last_event_id, stored_summary, stored_report, masked, activity = row
    summary = msgspec.json.decode(stored_summary, type=Summary)
    report: dict[str, Any] = msgspec.json.decode(stored_report) if stored_report else {}
    counted = min(sum(sum(rules.values()) for rules in (report.get("redactions") or {}).values()), AMOUNT_MAX)
    shown = summary.as_session(id, masked=masked + counted, host=report.get("host"), last_event_id=last_event_id)
    shown.update((name, report[name]) for name in _REPORTED if report.get(name))
    if report.get("liveness") and shown["state"] != "ended":
        shown["liveness"] = report["liveness"]
    shown["events"] = count
    shown["last_activity"] = summary.last_activity or activity
    return shown


def encode_cursor(*values: object) -> str:
    """Return the cursor of a place that these values name."""
    return urlsafe_b64encode(msgspec.json.encode(values)).decode()


def decode_cursor(cursor: str, type: Any) -> Any:
    """Return the values of a cursor as this type of tuple; raise `BadCursorError` when it is none of its kind."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor.encode()), type=type)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadCursorError(cursor) from error
