"""The feed across sessions: notifications, warnings, errors, and waits for a person."""

from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec

from exporter.core.events.envelope import Envelope, decode, read_object
from exporter.missioncontrol.ingest.agent_attribution import as_of
from exporter.missioncontrol.live.waiting import ASKING, NOTIFICATION_TAG, words
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.queries import decode_cursor, encode_cursor, title, where
from exporter.missioncontrol.store.session_row import shown_events

_TEXT_LENGTH_MAX: Final = 500
_WORD_LENGTH_MAX: Final = 100
_TEXTS: Final = ("message", "content", "question", "error", "errorMessage", "summary", "title", "reason")
_REQUESTED: Final = {f"{name}.requested": name for name in ASKING}
_COMPLETED: Final = {f"{name}.completed": name for name in ASKING}
_ENDS_WAITS: Final = ("session.resume", "session.shutdown", "abort")
_ERRORS: Final = {"session.error": "errorType", "model.call_failure": "errorType", "subagent.failed": "agentName"}
FEED_TYPES: Final = frozenset(
    ("system.notification", "session.warning", *_ERRORS, *_REQUESTED, *_COMPLETED, *_ENDS_WAITS)
)
"""The types of events in the feed."""

_Cursor = tuple[str, Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]]
_INSERT: Final = (
    "INSERT INTO notices (event, session, category, type, status, timestamp, id, agent, text, request)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def add_events(database: Database, session: int, events: Iterable[tuple[int, Envelope]]) -> None:
    """Add new events of a session, in file order with the row number of each."""
    for number, envelope in events:
        if envelope.type not in FEED_TYPES:
            continue
        if envelope.type in _COMPLETED:
            database.execute(
                "UPDATE notices SET status = 'answered' WHERE session = ? AND request = ? AND status = 'waiting'",
                (session, _word(read_object(envelope.data).get("requestId"))),
            )
        elif envelope.type in _ENDS_WAITS:
            if envelope.agentId is None:
                database.execute(
                    "UPDATE notices SET status = 'dropped' WHERE session = ? AND status = 'waiting'", (session,)
                )
        else:
            entry = _entry_of(envelope.type, read_object(envelope.data))
            if envelope.type == "subagent.failed":
                _take_back(database, session, envelope.agentId, entry[3])
            at = (envelope.timestamp, envelope.id, envelope.agentId)
            database.execute(_INSERT, (number, session, *entry[:3], *at, *entry[3:]))


def _take_back(database: Database, session: int, agent: str | None, why: str) -> None:
    """Take back the error that a sub-agent failed with: its failure is one entry."""
    rows = database.execute(
        "SELECT event, text FROM notices WHERE session = ? AND agent = ? AND category = 'error'", (session, agent)
    )
    same = [(event,) for event, text in rows.fetchall() if why and why in text]
    database.executemany("DELETE FROM notices WHERE event = ?", same)


def rebuild(database: Database, session: int) -> None:
    """Build the session's part of the feed again, after events were rewound or arrived late."""
    database.execute("DELETE FROM notices WHERE session = ?", (session,))
    of_types = f" AND type IN ({','.join('?' * len(FEED_TYPES))})"
    rows = shown_events(database, session, "n, agent_id, body, cuts", of_types, FEED_TYPES)
    for number, agent, body, cuts in list(rows):
        envelope = decode(whole(database, body, cuts))
        if isinstance(envelope, Envelope):
            add_events(database, session, [(number, as_of(envelope, agent))])


def notifications(
    database: Database,
    *,
    type: str | None,
    status: str | None,
    session_id: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the feed, newest first; `type` is a category or a type in it. Also the cursor of the next page."""
    conditions, values = list[str](), list[Any]()
    if type:
        conditions.append("(category = ? OR type = ?)")
        values += (type, type)
    if status:
        conditions.append("status = ?")
        values.append(status)
    if session_id:
        conditions.append("sessions.id = ?")
        values.append(session_id)
    if cursor:
        conditions.append("(timestamp, event) < (?, ?)")
        values += decode_cursor(cursor, _Cursor)
    rows = database.execute(
        "SELECT event, timestamp, sessions.id, category, type, status, notices.id, agent, text"  # noqa: S608  constants
        " FROM notices JOIN sessions ON sessions.n = notices.session"
        f"{where(conditions)} ORDER BY timestamp DESC, event DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    names = ("timestamp", "session", "category", "type", "status", "event", "agent", "text", "title")
    titles = {id: title(database, id) for id in {row[2] for row in rows}}
    page = [dict(zip(names, (*row[1:], titles[row[2]]), strict=True)) for row in rows[:limit]]
    return page, encode_cursor(rows[limit - 1][1], rows[limit - 1][0]) if len(rows) > limit else None


def counts(database: Database) -> list[dict[str, Any]]:
    """Return how many there are of each category, type and status."""
    rows = database.execute(
        "SELECT category, type, status, count(*) FROM notices GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 200"
    )
    return [dict(zip(("category", "type", "status", "count"), row, strict=True)) for row in rows]


def _entry_of(event_type: str, data: dict[str, Any]) -> tuple[str, str, str | None, str, str | None]:
    """Return category, type, status, text and request of one entry."""
    if event_type in _REQUESTED:
        asked = _encodable((words(event_type, data) or _text(data))[:_TEXT_LENGTH_MAX])
        return "wait", _REQUESTED[event_type], "waiting", asked, _word(data.get("requestId"))
    text = _text(data)
    if event_type == "session.warning":
        return "warning", _word(data.get("warningType")) or "warning", None, text, None
    if event_type in _ERRORS:
        return "error", _word(data.get(_ERRORS[event_type])) or "error", "failed", text, None
    kind = data.get("kind")
    kind = kind if isinstance(kind, dict) else {}
    status = _word(kind.get("status"))
    if status is None and isinstance(kind.get("exitCode"), int):
        status = "failed" if kind["exitCode"] else "completed"
    return "notification", _word(kind.get("type")) or "unclassified", status, text, None


def _text(data: dict[str, Any]) -> str:
    for name in _TEXTS:
        value = data.get(name)
        if isinstance(value, str) and value.strip():
            return _encodable(NOTIFICATION_TAG.sub("", value).strip()[:_TEXT_LENGTH_MAX])
    return ""


def _word(value: object) -> str | None:
    return _encodable(value[:_WORD_LENGTH_MAX]) if isinstance(value, str) and value else None


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
