"""Everything that changes the store: registering, storing, hiding, reporting, forgetting. Each is one write job."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import msgspec

from exporter.core import digest
from exporter.core.envelope import Envelope, decode
from exporter.core.summary import TELLING_TYPES, Summary
from exporter.missioncontrol.batch import Batch, Event, key_of

_KEYS_PER_QUERY: Final = 500
_INSERT: Final = (
    "INSERT INTO events (session, hidden, key, id, type, timestamp, agent_id, sha256, body)"
    " VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?)"
)


class UnknownSessionError(Exception):
    """No session has this id."""


class DeletedSessionError(Exception):
    """The session with this id was deleted here."""


@dataclass(frozen=True, slots=True)
class Ack:
    """What the store holds of a session: what an uploader compares its marks with."""

    count: int
    digest: str
    last_event_id: str | None


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one batch, and the events that are new."""

    ack: Ack
    duplicates: int
    new: list[Event]


@dataclass(slots=True)
class _Session:
    """A session's row while a job works on it."""

    n: int
    id: str
    count: int
    digest: int
    last_event_id: str | None
    summary: Summary
    report: dict[str, Any]
    masked: int
    revision: int

    @property
    def ack(self) -> Ack:
        return Ack(self.count, digest.to_hex(self.digest), self.last_event_id)


def register(database: sqlite3.Connection, session_id: str, task_id: str, now: str, *, restore: bool = False) -> Ack:
    """Make the session known, once; the same call again changes nothing.

    A deleted session raises `DeletedSessionError`, unless `restore` says that it is sent again on purpose.
    """
    if restore:
        database.execute("DELETE FROM deleted_sessions WHERE id = ?", (session_id,))
    try:
        return _load(database, session_id).ack
    except UnknownSessionError:
        session = _Session(0, session_id, 0, digest.EMPTY, None, Summary(), {}, 0, 0)
        database.execute(
            "INSERT INTO sessions (id, task_id, registered, count, digest, summary, masked, revision,"
            " state, last_activity, haystack) VALUES (?, ?, ?, 0, ?, '{}', 0, 0, 'idle', ?, ?)",
            (session_id, task_id, now, bytes(32), now, session_id.casefold()),
        )
        return session.ack


def store_batch(database: sqlite3.Connection, session_id: str, batch: Batch, now: str) -> Stored:
    """Hide what was rewound, then store what is new, in order; the first bytes of an id win unless it was hidden."""
    session = _load(database, session_id)
    retell = _hide(database, session, batch.rewound, now) > 0
    new, duplicates, shown_again = _new_events(database, session, batch.durable)
    database.executemany(_INSERT, (_row(session.n, event) for event in new))
    if new:
        session.count += len(new)
        session.digest = digest.add(session.digest, (event.item for event in new))
        session.last_event_id = new[-1].envelope.id
    session.masked += sum(event.masked for event in new)
    if retell or shown_again:
        session.summary = _tell_again(database, session.n)
    else:
        for event in new:
            session.summary.add(event.envelope)
    if new or retell:
        # The newest word on the state counts: a reported one holds until the next events arrive.
        session.report.pop("state", None)
        _save(database, session, now)
        database.execute("UPDATE sessions SET stored_at = ? WHERE n = ?", (now, session.n))
    return Stored(session.ack, duplicates, new)


def report_session(database: sqlite3.Connection, session_id: str, report: dict[str, Any], now: str) -> None:
    """Keep what an exporter says of a session; a field it does not name keeps its last value."""
    session = _load(database, session_id)
    session.report = {**session.report, **report}
    _save(database, session, now)
    database.execute("UPDATE sessions SET reported_at = ? WHERE n = ?", (now, session.n))


def report_exporter(database: sqlite3.Connection, exporter_id: str, report: dict[str, Any], now: str) -> None:
    """Keep the newest report of an exporter."""
    database.execute(
        "INSERT INTO exporters (id, report, reported_at) VALUES (?, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET report = excluded.report, reported_at = excluded.reported_at",
        (exporter_id, msgspec.json.encode(report).decode(), now),
    )


def forget_session(database: sqlite3.Connection, session_id: str, now: str) -> None:
    """Delete a session with its events and facts, and remember only that it was deleted."""
    session = _load(database, session_id)
    database.execute("DELETE FROM events WHERE session = ?", (session.n,))
    database.execute("DELETE FROM rewinds WHERE session = ?", (session.n,))
    database.execute("DELETE FROM sessions WHERE n = ?", (session.n,))
    database.execute("INSERT OR REPLACE INTO deleted_sessions (id, deleted_at) VALUES (?, ?)", (session_id, now))


def _load(database: sqlite3.Connection, session_id: str) -> _Session:
    row = database.execute(
        "SELECT n, id, count, digest, last_event_id, summary, report, masked, revision FROM sessions WHERE id = ?",
        (session_id,),
    ).fetchone()
    if row is None:
        deleted = database.execute("SELECT 1 FROM deleted_sessions WHERE id = ?", (session_id,)).fetchone()
        raise DeletedSessionError(session_id) if deleted else UnknownSessionError(session_id)
    n, id, count, sum_bytes, last_event_id, summary, report, masked, revision = row
    return _Session(
        n=n,
        id=id,
        count=count,
        digest=int.from_bytes(sum_bytes, "big"),
        last_event_id=last_event_id,
        summary=msgspec.json.decode(summary, type=Summary),
        report=msgspec.json.decode(report) if report else {},
        masked=masked,
        revision=revision,
    )


def _save(database: sqlite3.Connection, session: _Session, now: str) -> None:
    """Write the row back, with the columns that lists filter and sort by."""
    summary, report = session.summary, session.report
    words = (session.id, report.get("title"), summary.title, report.get("repository"), summary.repository)
    more = (report.get("branch"), summary.branch, summary.model, summary.cwd, report.get("host"))
    database.execute(
        "UPDATE sessions SET count = ?, digest = ?, last_event_id = ?, summary = ?, report = ?,"
        " masked = ?, revision = ?, state = ?, last_activity = ?, haystack = ? WHERE n = ?",
        (
            session.count,
            session.digest.to_bytes(32, "big"),
            session.last_event_id,
            msgspec.json.encode(summary).decode(),
            msgspec.json.encode(report).decode(),
            session.masked,
            session.revision + 1,
            report.get("state") or summary.state,
            summary.last_activity or now,
            "\n".join(word for word in (*words, *more) if word).casefold(),
            session.n,
        ),
    )


def _slices(keys: Iterable[int]) -> Iterator[tuple[int, ...]]:
    remaining = iter(keys)
    while some := tuple(islice(remaining, _KEYS_PER_QUERY)):
        yield some


def _row(n: int, event: Event) -> tuple[Any, ...]:
    envelope = event.envelope
    told = (envelope.id, envelope.type, envelope.timestamp, envelope.agentId)
    return (n, event.key, *told, event.sha256, event.body)


def _known(database: sqlite3.Connection, n: int, keys: dict[str, int]) -> dict[str, tuple[int, bool, bytes]]:
    """Return row, hidden and hash of those ids, given with their keys, that the session has."""
    found: dict[str, tuple[int, bool, bytes]] = {}
    for some in _slices(keys.values()):
        marks = ",".join("?" * len(some))
        rows = database.execute(
            f"SELECT id, n, hidden, sha256 FROM events WHERE session = ? AND key IN ({marks})",  # noqa: S608  marks only
            (n, *some),
        )
        found.update((id, (row, bool(hidden), hashed)) for id, row, hidden, hashed in rows if id in keys)
    return found


def _hide(database: sqlite3.Connection, session: _Session, ids: list[str], now: str) -> int:
    """Hide the ids that the session shows, keep the fact, and return how many they are."""
    shown = {id: row for id, row in _known(database, session.n, {id: key_of(id) for id in ids}).items() if not row[1]}
    if not shown:
        return 0
    database.executemany("UPDATE events SET hidden = 1 WHERE n = ?", ((row[0],) for row in shown.values()))
    database.executemany(
        "INSERT INTO rewinds (session, id, rewound_at) VALUES (?, ?, ?)", ((session.n, id, now) for id in shown)
    )
    session.count -= len(shown)
    session.digest = digest.remove(session.digest, (digest.item(id, row[2]) for id, row in shown.items()))
    last = database.execute(
        "SELECT id FROM events WHERE session = ? AND hidden = 0 ORDER BY n DESC LIMIT 1", (session.n,)
    ).fetchone()
    session.last_event_id = last[0] if last else None
    return len(shown)


def _new_events(database: sqlite3.Connection, session: _Session, events: list[Event]) -> tuple[list[Event], int, bool]:
    """Return the events to insert, how many are repeats, and whether a hidden one is among the new."""
    known = _known(database, session.n, {event.envelope.id: event.key for event in events})
    new: dict[str, Event] = {}
    again: list[int] = []
    for event in events:
        id = event.envelope.id
        row = known.get(id)
        if id in new or (row is not None and not row[1]):
            continue
        if row is not None:
            again.append(row[0])
        new[id] = event
    # A hidden event that is shown again takes its place at the new end, so its old row goes.
    database.executemany("DELETE FROM events WHERE n = ?", ((row,) for row in again))
    return list(new.values()), len(events) - len(new), bool(again)


def _tell_again(database: sqlite3.Connection, n: int) -> Summary:
    """Fold the summary anew from what is shown, after a rewind took something back."""
    summary = Summary()
    rows = database.execute(
        "SELECT n, type, timestamp, agent_id FROM events WHERE session = ? AND hidden = 0 ORDER BY n", (n,)
    )
    for row, type, timestamp, agent_id in rows:
        envelope = Envelope(id="", type=type, timestamp=timestamp, agentId=agent_id)
        if type in TELLING_TYPES:
            (body,) = database.execute("SELECT body FROM events WHERE n = ?", (row,)).fetchone()
            decoded = decode(body)
            envelope = decoded if isinstance(decoded, Envelope) else envelope
        summary.add(envelope)
    return summary
