"""The feed across sessions: notifications, warnings, errors, and what waits for a person."""

import sqlite3
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec

from exporter.core.events.data import read_object
from exporter.core.events.envelope import Envelope, decode
from exporter.missioncontrol.ingest.agent_attribution import as_of
from exporter.missioncontrol.live.wait_text import ASKING, NOTIFICATION_TAG, words
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.session_row import BadCursorError

_TEXT_LENGTH_MAX: Final = 500
_WORD_LENGTH_MAX: Final = 100
_TEXTS: Final = ("message", "content", "question", "error", "errorMessage", "summary", "title", "reason")
_ASKED: Final = {f"{name}.requested": name for name in ASKING}
_ANSWERED: Final = {f"{name}.completed": name for name in ASKING}
_OVER: Final = ("session.resume", "session.shutdown", "abort")
_ERRORS: Final = {"session.error": "errorType", "model.call_failure": "errorType", "subagent.failed": "agentName"}
FEED_TYPES: Final = frozenset(("system.notification", "session.warning", *_ERRORS, *_ASKED, *_ANSWERED, *_OVER))
"""The types of events that the feed is made of."""

_INSERT: Final = (
    "INSERT OR REPLACE INTO notices (event, session, category, type, status, timestamp, id, agent, text, request)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def follow(database: sqlite3.Connection, session: int, events: Iterable[tuple[int, Envelope]]) -> None:
    """Take new events of a session, in file order with the number of each, into the feed."""
    for number, envelope in events:
        if envelope.type not in FEED_TYPES:
            continue
        if envelope.type in _ANSWERED:
            database.execute(
                "UPDATE notices SET status = 'answered' WHERE session = ? AND request = ? AND status = 'waiting'",
                (session, _word(read_object(envelope.data).get("requestId"))),
            )
        elif envelope.type in _OVER:
            if envelope.agentId is None:
                database.execute(
                    "UPDATE notices SET status = 'dropped' WHERE session = ? AND status = 'waiting'", (session,)
                )
        else:
            told = _told(envelope.type, read_object(envelope.data))
            at = (envelope.timestamp, envelope.id, envelope.agentId)
            database.execute(_INSERT, (number, session, *told[:3], *at, *told[3:]))


def follow_again(database: sqlite3.Connection, session: int) -> None:
    """Make the session's part of the feed anew, after something was taken back or came late."""
    database.execute("DELETE FROM notices WHERE session = ?", (session,))
    marks = ",".join("?" * len(FEED_TYPES))
    rows = database.execute(
        f"SELECT n, agent_id, body, cuts FROM events WHERE session = ? AND hidden = 0 AND type IN ({marks})"  # noqa: S608  marks only
        " ORDER BY place, n",
        (session, *FEED_TYPES),
    )
    for number, agent, body, cuts in rows.fetchall():
        envelope = decode(whole(database, body, cuts))
        if isinstance(envelope, Envelope):
            follow(database, session, [(number, as_of(envelope, agent))])


def put_into_words(database: sqlite3.Connection) -> None:
    """Make the feed anew where somebody is waited for: it once did not say what is asked."""
    for (session,) in database.execute("SELECT DISTINCT session FROM notices WHERE category = 'wait'").fetchall():
        follow_again(database, session)


def notifications(
    database: sqlite3.Connection,
    *,
    type: str | None,
    status: str | None,
    session_id: str | None,
    limit: int,
    cursor: str | None,
) -> tuple[list[dict[str, Any]], str | None]:
    """Return the feed, newest first; `type` is a category or a type in it, and the cursor goes on."""
    conditions, values = ["1"], list[Any]()
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
        values += _read_cursor(cursor)
    rows = database.execute(
        "SELECT event, timestamp, sessions.id, category, type, status, notices.id, agent, text,"  # noqa: S608  constants
        " coalesce(json_extract(report, '$.title'), json_extract(summary, '$.title'))"
        " FROM notices JOIN sessions ON sessions.n = notices.session"
        f" WHERE {' AND '.join(conditions)} ORDER BY timestamp DESC, event DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    names = ("timestamp", "session", "category", "type", "status", "event", "agent", "text", "title")
    page = [dict(zip(names, row[1:], strict=True)) for row in rows[:limit]]
    if len(rows) <= limit:
        return page, None
    return page, urlsafe_b64encode(msgspec.json.encode((rows[limit - 1][1], rows[limit - 1][0]))).decode()


def counts(database: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return how many there are of each category, type and status."""
    rows = database.execute(
        "SELECT category, type, status, count(*) FROM notices GROUP BY 1, 2, 3 ORDER BY 4 DESC LIMIT 200"
    )
    return [dict(zip(("category", "type", "status", "count"), row, strict=True)) for row in rows]


def _told(event_type: str, data: dict[str, Any]) -> tuple[str, str, str | None, str, str | None]:
    """Return category, type, status, text and request of one entry."""
    if event_type in _ASKED:
        asked = _plain((words(event_type, data) or _text(data))[:_TEXT_LENGTH_MAX])
        return "wait", _ASKED[event_type], "waiting", asked, _word(data.get("requestId"))
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
            return _plain(NOTIFICATION_TAG.sub("", value).strip()[:_TEXT_LENGTH_MAX])
    return ""


def _word(value: object) -> str | None:
    return _plain(value[:_WORD_LENGTH_MAX]) if isinstance(value, str) and value else None


def _plain(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _read_cursor(cursor: str) -> tuple[str, int]:
    try:
        return msgspec.json.decode(
            urlsafe_b64decode(cursor.encode()), type=tuple[str, Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]]
        )
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadCursorError(cursor) from error
