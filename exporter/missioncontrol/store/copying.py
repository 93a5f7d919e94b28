"""Copies a store into an empty one of any engine, and compares what arrived with what was sent.

Rows get numbers of the target. The target is the same store for uploaders: it keeps the identity, so that their marks
stay good, and is in another epoch, so that they compare everything once more.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from secrets import randbits
from typing import Any, Final

import msgspec

from exporter.errors import ExporterError, UsageError
from exporter.missioncontrol.store import tenants
from exporter.missioncontrol.store.payloads import Cuts, whole
from exporter.missioncontrol.store.port import Database, Store
from exporter.missioncontrol.store.queries import upload_state
from exporter.missioncontrol.store.session_row import number_of, shown_events

_SESSION: Final = (
    "id, task_id, registered, stored_at, count, digest, last_event_id, summary, report, reported_at, masked, revision,"
    " state, last_activity, haystack, chained, owner"
)
_EVENT: Final = "hidden, key, id, type, timestamp, agent_id, sha256, body, cuts, place, parent, sender"
_OF_SESSION: Final = {
    "orphans": "key",
    "rewinds": "id, rewound_at",
    "redactions": "day, rule, source, count",
    "families": "state",
}
_NOTICE: Final = "category, type, status, timestamp, id, agent, text, request"
_WHOLE: Final = {
    "exporters": "id, report, reported_at",
    "deleted_sessions": "id, deleted_at, reason, owner",
    "tokens": "name, hash, scope, role, created, last_used, revoked",
    "shares": "hash, session, event, creator, created, expires, revoked, opened, last_opened",
    "audit": "at, who, action, session, detail",
}
_SECRETS: Final = ("tokens", "redaction")
_AT_ONCE: Final = 500
_EPOCH_BITS: Final = 62


class CopyDiffersError(ExporterError):
    """The target does not have what the source has."""


@dataclass(frozen=True, slots=True)
class Copied:
    """How much was copied and found equal."""

    sessions: int = 0
    events: int = 0


def copy(source: Store, target: Store, tenant: str | None = None) -> Copied:
    """Copy all tenants, or one into the tenant of that name, and make those that the target lacks.

    Raises `TenantError` when the source has no such tenant, and what `copy_tenant` raises.
    """
    names = [one["name"] for one in source.read_now(tenants.listed)] if tenant is None else [tenant]
    done = Copied()
    for name in names:
        of_source = tenants.store_of(source, name)
        if target.read_now(lambda database, of=name: tenants.number_of(database, of)) is None:  # type: ignore[misc]
            tenants.create(target, name, datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"))
        copied = copy_tenant(of_source, tenants.store_of(target, name))
        done = Copied(done.sessions + copied.sessions, done.events + copied.events)
    return done


def copy_tenant(source: Store, target: Store) -> Copied:
    """Copy everything of one tenant.

    Raises `UsageError` for a target that has something, `CopyDiffersError` when something arrived otherwise.
    """
    if target.read_now(_has_something):
        raise UsageError(
            "The store to copy to is not empty.", hint="Give a new file, or a database that only migrate has used."
        )
    done = Copied()
    for id, number in source.read_now(
        lambda database: database.execute("SELECT id, n FROM sessions ORDER BY n").fetchall()
    ):
        target.do(_Session(source, id, number).copy)
        done = Copied(done.sessions + 1, done.events + _compared(source, target, id))
    for table, columns in _WHOLE.items():
        rows = source.read_now(lambda database, of=(columns, table): _all(database, *of))  # type: ignore[misc]
        target.do(lambda database, of=(table, columns, rows): database.insert(*of))  # type: ignore[misc]
    keys = source.read_now(lambda database: dict(database.execute("SELECT name, value FROM secrets").fetchall()))
    (same,) = source.read_now(
        lambda database: database.execute("SELECT value FROM counters WHERE name = 'identity'").fetchone()
    )

    def finish(database: Database) -> None:
        for name in _SECRETS:
            database.execute("UPDATE secrets SET value = ? WHERE name = ?", (keys[name], name))
        for name, value in (("identity", same), ("epoch", randbits(_EPOCH_BITS))):
            database.execute("UPDATE counters SET value = ? WHERE name = ?", (value, name))

    target.do(finish)
    return done


def _has_something(database: Database) -> bool:
    return any(
        database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608  names
        for table in ("sessions", *_WHOLE)
    )


def _all(database: Database, columns: str, table: str) -> list[Any]:
    return database.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608  names


class _Session:
    """One session of the source; `copy` is the job that writes it, in one transaction."""

    def __init__(self, source: Store, id: str, number: int) -> None:
        self._source, self._id, self._number = source, id, number

    def copy(self, target: Database) -> None:
        """Write the session; it reads the source meanwhile, a part at a time."""
        number = target.allocate("sessions")
        row = self._rows("sessions", _SESSION, "n")[0]
        target.insert("sessions", f"n, {_SESSION}", [(number, *row)])
        new = self._events(target, number)
        for table, columns in _OF_SESSION.items():
            rows = self._rows(table, columns)
            target.insert(table, f"session, {columns}", [(number, *row) for row in rows])
        notices = self._rows("notices", f"event, {_NOTICE}")
        target.insert("notices", f"event, session, {_NOTICE}", [(new[row[0]], number, *row[1:]) for row in notices])

    def _rows(self, table: str, columns: str, key: str = "session") -> list[Any]:
        statement = f"SELECT {columns} FROM {table} WHERE {key} = ?"  # noqa: S608  names
        return self._source.read_now(lambda database: database.execute(statement, (self._number,)).fetchall())

    def _events(self, target: Database, session: int) -> dict[int, int]:
        """Copy the events with their large strings; return the new number of each."""
        new: dict[int, int] = {}
        last = -1
        while rows := self._source.read_now(lambda database, after=last: self._part(database, after)):  # type: ignore[misc]
            last = rows[-1][0]
            first = target.allocate("events", len(rows))
            copied = []
            for number, (old, hidden, key, *more) in enumerate(rows, first):
                new[old] = number
                more[6] = self._cuts(target, session, more[6])
                copied.append((number, session, hidden, number if hidden == 2 else key, *more))
            target.insert("events", f"n, session, {_EVENT}", copied)
        return new

    def _part(self, database: Database, after: int) -> list[Any]:
        statement = f"SELECT n, {_EVENT} FROM events WHERE session = ? AND n > ? ORDER BY n"  # noqa: S608  names
        return list(islice(database.stream(statement, (self._number, after)), _AT_ONCE))

    def _cuts(self, target: Database, session: int, cuts: bytes | None) -> bytes | None:
        if cuts is None:
            return None
        moved: Cuts = []
        for at, length, number in msgspec.json.decode(cuts, type=Cuts):
            (body,) = self._source.read_now(
                lambda database, n=number: database.execute("SELECT body FROM blobs WHERE n = ?", (n,)).fetchone()  # type: ignore[misc]
            )
            hashed = sha256(body).digest()
            target.insert("blobs", "sha256, body", [(hashed, body)], unless_there=True)
            (there,) = target.execute("SELECT n FROM blobs WHERE sha256 = ?", (hashed,)).fetchone()
            target.insert("blob_uses", "session, blob", [(session, there)], unless_there=True)
            moved.append((at, length, there))
        return msgspec.json.encode(moved)


def _compared(source: Store, target: Store, id: str) -> int:
    """Return how many events a session shows; `CopyDiffersError` unless both have the same in the same order."""
    states = [
        store.read_now(lambda database: upload_state(database, id, with_items=True)) for store in (source, target)
    ]
    told, items = ([getattr(state, name) for state in states] for name in ("ack", "items"))

    def hashes(database: Database) -> list[tuple[str, str]]:
        number, columns = number_of(database, id), "id, body, cuts"
        return [
            (event, sha256(whole(database, body, cuts)).hexdigest())
            for event, body, cuts in shown_events(database, number, columns)
        ]

    if told[0] != told[1] or items[0] != items[1] or target.read_now(hashes) != items[0]:
        raise CopyDiffersError(
            f"The session {id} is not the same in both stores.", hint="Begin again with an empty store."
        )
    return int(told[0].count)
