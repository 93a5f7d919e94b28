"""Everything that is asked of the store and changes nothing."""

import sqlite3
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from exporter.core.events.summary import Summary
from exporter.missioncontrol.ingest.batch import key_of
from exporter.missioncontrol.store.amounts import AMOUNT_MAX
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.session_row import BadCursorError, SessionAck, missing, number_of

_PAGE_BYTES_MAX: Final = 16 << 20
_WORDS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Held:
    """What is held of one session; `items` are [id, SHA-256 in hex] of the events shown, in stored order."""

    task_id: str
    ack: SessionAck
    items: list[tuple[str, str]] | None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events as delivered, the agent of each as its row has it, and the id to go on after when there are more."""

    bodies: list[bytes]
    next: str | None
    agents: list[str | None]


@dataclass(frozen=True, slots=True)
class StoreTotals:
    """How much the store holds."""

    sessions: dict[str, int]
    events: int


def held(database: sqlite3.Connection, session_id: str, *, with_items: bool = False) -> Held:
    """Return what an uploader compares its marks with."""
    row = database.execute(
        "SELECT n, task_id, count, digest, last_event_id FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        raise missing(database, session_id)
    n, task_id, count, digest, last_event_id = row
    items: list[tuple[str, str]] | None = None
    if with_items:
        rows = database.execute(
            "SELECT id, hex(sha256) FROM events WHERE session = ? AND hidden = 0 ORDER BY place, n", (n,)
        )
        items = [(id, hashed.lower()) for id, hashed in rows]
    return Held(task_id, SessionAck(count, digest.hex(), last_event_id), items)


_SESSION_COLUMNS: Final = "id, count, last_event_id, summary, report, masked, last_activity"


def session(database: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    """Return one session as the API shows it."""
    row = database.execute(
        f"SELECT {_SESSION_COLUMNS} FROM sessions WHERE id = ?",  # noqa: S608  a constant
        (session_id,),
    ).fetchone()
    if row is None:
        raise missing(database, session_id)
    return _as_session(row)


def title(database: sqlite3.Connection, session_id: str) -> str | None:
    """Return what a session is called; None also when it is not known."""
    row = database.execute(
        "SELECT coalesce(json_extract(report, '$.title'), json_extract(summary, '$.title')) FROM sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    return None if row is None else row[0]


def sessions(
    database: sqlite3.Connection,
    *,
    state: str | None = None,
    words: str | None = None,
    since: str | None = None,
    limit: int,
    cursor: str | None = None,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the sessions that fit, newest activity first, and the cursor of the next page."""
    conditions, values = ["1"], list[Any]()
    if state:
        conditions.append("state = ?")
        values.append(state)
    for word in _words(words):
        conditions.append("instr(haystack, ?) > 0")
        values.append(word)
    if since:
        conditions.append("last_activity >= ?")
        values.append(since)
    if cursor:
        conditions.append("(last_activity, id) < (?, ?)")
        values.extend(_read_cursor(cursor))
    rows = database.execute(
        f"SELECT {_SESSION_COLUMNS} FROM sessions WHERE {' AND '.join(conditions)}"  # noqa: S608  constants only
        " ORDER BY last_activity DESC, id DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    page = [_as_session(row) for row in rows[:limit]]
    more = len(rows) > limit
    return page, _cursor(rows[limit - 1][6], rows[limit - 1][0]) if more else None


def events(
    database: sqlite3.Connection,
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

    Only those that are `wanted`, when it is given; it is asked with the event as it is stored.
    """
    condition, values = _condition(database, session_id, after, type, agent)
    found = database.execute(
        f"SELECT id, agent_id, body, cuts FROM events WHERE {condition} ORDER BY place, n LIMIT ?",  # noqa: S608  constants only
        (*values, limit + 1 if wanted is None else -1),
    )
    bodies: list[bytes] = []
    agents: list[str | None] = []
    size, last = 0, None
    for id, of, stored, cuts in found:
        if wanted is not None and not wanted(stored):
            continue
        body = whole(database, stored, cuts) if large else stored
        if len(bodies) == limit or (bodies and size + len(body) > _PAGE_BYTES_MAX):
            found.close()
            return EventPage(bodies, last, agents)
        bodies.append(body)
        agents.append(of)
        size, last = size + len(body), id
    return EventPage(bodies, None, agents)


def _condition(
    database: sqlite3.Connection, session_id: str, after: str | None, type: str | None, agent: str | None
) -> tuple[str, list[Any]]:
    """Return SQL that holds for the events that are asked for, with its values."""
    session_n = number_of(database, session_id)
    conditions, values = ["session = ?", "hidden = 0"], list[Any]([session_n])
    if after is not None:
        conditions.append("place >= ? AND (place, n) > (?, ?)")
        place, row = _place_of(database, session_n, after)
        values += (place, place, row)
    if type is not None:
        conditions.append("type = ?")
        values.append(type)
    if agent is not None:
        conditions.append("agent_id = ?")
        values.append(agent)
    return " AND ".join(conditions), values


def event(database: sqlite3.Connection, session_id: str, event_id: str) -> bytes | None:
    """Return one event exactly as delivered; None when the session does not show it."""
    found = event_of_agent(database, session_id, event_id)
    return None if found is None else found[0]


def event_of_agent(database: sqlite3.Connection, session_id: str, event_id: str) -> tuple[bytes, str | None] | None:
    """Return one event exactly as delivered and the agent of its row; None when the session does not show it."""
    row = database.execute(
        "SELECT body, cuts, agent_id FROM events WHERE session = ? AND key = ? AND id = ? AND hidden = 0",
        (number_of(database, session_id), key_of(event_id), event_id),
    ).fetchone()
    return None if row is None else (whole(database, row[0], row[1]), row[2])


def lines(database: sqlite3.Connection, session_id: str) -> Iterator[bytes]:
    """Yield every event of a session in file order, without holding them all."""
    session = number_of(database, session_id)
    rows = database.execute(
        "SELECT body, cuts FROM events WHERE session = ? AND hidden = 0 ORDER BY place, n", (session,)
    )
    return (whole(database, *row) for row in rows)


def exporters(database: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return the last report of every exporter, newest first."""
    rows = database.execute("SELECT id, report, reported_at FROM exporters ORDER BY reported_at DESC, id LIMIT 1000")
    return [{**msgspec.json.decode(report), "id": id, "reported_at": at} for id, report, at in rows]


def totals(database: sqlite3.Connection, words: str | None = None) -> StoreTotals:
    """Return how many sessions there are in each state, and how many events in all; with words, of those that fit."""
    values = _words(words)
    fit = " AND ".join(["1", *["instr(haystack, ?) > 0"] * len(values)])
    rows = database.execute(
        f"SELECT state, count(*), sum(count) FROM sessions WHERE {fit} GROUP BY state",  # noqa: S608  constants only
        values,
    ).fetchall()
    return StoreTotals({state: sessions for state, sessions, _ in rows}, sum(events for _, _, events in rows))


def _words(text: str | None) -> list[str]:
    """Return what is looked for; each word is a condition, of which SQLite takes a limited number."""
    return (text or "").casefold().split()[:_WORDS_MAX]


def _place_of(database: sqlite3.Connection, n: int, event_id: str) -> tuple[int, int]:
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
    shown.update((name, report[name]) for name in ("title", "repository", "branch", "state") if report.get(name))
    shown["events"] = count
    shown["last_activity"] = summary.last_activity or activity
    return shown


def _cursor(activity: str, id: str) -> str:
    return urlsafe_b64encode(msgspec.json.encode((activity, id))).decode()


def _read_cursor(cursor: str) -> tuple[str, str]:
    try:
        return msgspec.json.decode(urlsafe_b64decode(cursor.encode()), type=tuple[str, str])
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadCursorError(cursor) from error
