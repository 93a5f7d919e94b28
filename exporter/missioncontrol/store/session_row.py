"""A session's row while a job works on it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from exporter.core.events import digest
from exporter.core.events.summary import Summary
from exporter.missioncontrol.store.port import Database

EXPIRED: Final = "expired"
"""Why a session was deleted, when it was by its age or size and not by a person."""

_COLUMNS: Final = (
    "n, id, count, digest, last_event_id, summary, report, masked, revision, chained,"
    " (SELECT max(place) FROM events WHERE session = sessions.n)"
)


class UnknownSessionError(Exception):
    """No session has this id."""


class DeletedSessionError(Exception):
    """The session with this id was deleted here."""


class ExpiredSessionError(DeletedSessionError):
    """The session with this id was older than sessions are kept here."""


class ForeignSessionError(Exception):
    """The session with this id belongs to another token."""


class ForeignExporterError(Exception):
    """The exporter with this id belongs to another token."""


class RestoreNeedsAdminError(Exception):
    """The session with this id was deleted, and an uploader wants it back."""


class BadCursorError(ValueError):
    """The cursor or event id to continue from was never given out."""


@dataclass(frozen=True, slots=True)
class SessionAck:
    """What the store has of a session; an uploader compares its marks with it."""

    count: int
    digest: str
    last_event_id: str | None


@dataclass(slots=True)
class SessionRow:
    """A loaded session; change it and `save` it."""

    n: int
    id: str
    count: int
    digest: int
    last_event_id: str | None
    summary: Summary
    report: dict[str, Any]
    masked: int
    revision: int
    chained: bool
    last_place: int | None
    """The last place that an event has; None while there are none."""

    @property
    def ack(self) -> SessionAck:
        """The acknowledgement for an uploader."""
        return SessionAck(self.count, digest.to_hex(self.digest), self.last_event_id)


def _missing(database: Database, session_id: str) -> Exception:
    """Return the error for a session that does not exist."""
    row = database.execute("SELECT reason FROM deleted_sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        return UnknownSessionError(session_id)
    return ExpiredSessionError(session_id) if row[0] == EXPIRED else DeletedSessionError(session_id)


def is_deleted(database: Database, session_id: str) -> bool:
    """Tell whether there is no such session because it was deleted, or expired."""
    row = database.execute("SELECT 1 FROM deleted_sessions WHERE id = ?", (session_id,)).fetchone()
    return row is not None


def refuse_deleted(database: Database, session_id: str) -> None:
    """Raise `DeletedSessionError` for a deleted session; an unknown one may not be registered yet."""
    error = _missing(database, session_id)
    if isinstance(error, DeletedSessionError):
        raise error


def columns_of(database: Database, session_id: str, columns: str) -> Any:
    """Return these columns of a session's row; raise `UnknownSessionError` or `DeletedSessionError` without one."""
    row = database.execute(f"SELECT {columns} FROM sessions WHERE id = ?", (session_id,)).fetchone()  # noqa: S608  constants only
    if row is None:
        raise _missing(database, session_id)
    return row


def number_of(database: Database, session_id: str) -> int:
    """Return the number of the session's row; errors as in `columns_of`."""
    (number,) = columns_of(database, session_id, "n")
    return int(number)


def shown_events(
    database: Database, session: int, columns: str, also: str = "", values: Iterable[Any] = ()
) -> Iterable[Any]:
    """Return these columns of the events that a session shows, in file order; `also` is a further condition."""
    return database.stream(
        f"SELECT {columns} FROM events WHERE session = ? AND hidden = 0{also} ORDER BY place, n",  # noqa: S608  constants only
        (session, *values),
    )


def load(database: Database, session_id: str) -> SessionRow:
    """Lock a session and return its row for a job that changes it; errors as in `columns_of`."""
    database.lock_session(session_id)
    row = columns_of(database, session_id, _COLUMNS)
    n, id, count, sum_bytes, last_event_id, stored_summary, stored_report, masked, revision, chained, last_place = row
    held = int.from_bytes(sum_bytes, "big")
    summary = msgspec.json.decode(stored_summary, type=Summary)
    report = msgspec.json.decode(stored_report) if stored_report else {}
    return SessionRow(n, id, count, held, last_event_id, summary, report, masked, revision, bool(chained), last_place)


def save(database: Database, session: SessionRow, now: str, arrived: Literal["stored_at", "reported_at"]) -> None:
    """Write the row back, with the columns that lists filter and sort by, and when this kind of request arrived."""
    summary, report = session.summary, session.report
    words = (session.id, report.get("title"), summary.title, report.get("repository"), summary.repository)
    more = (report.get("branch"), summary.branch, summary.model, summary.cwd, report.get("host"), report.get("owner"))
    database.execute(
        f"UPDATE sessions SET {arrived} = ?, count = ?, digest = ?, last_event_id = ?, summary = ?, report = ?,"  # noqa: S608  one of two names
        " masked = ?, revision = ?, chained = ?, state = ?, last_activity = ?, haystack = ? WHERE n = ?",
        (
            now,
            session.count,
            session.digest.to_bytes(32, "big"),
            session.last_event_id,
            msgspec.json.encode(summary).decode(),
            msgspec.json.encode(report).decode(),
            session.masked,
            session.revision + 1,
            int(session.chained),
            report.get("state") or summary.state,
            summary.last_activity or now,
            "\n".join(word for word in (*words, *more) if word).casefold(),
            session.n,
        ),
    )
