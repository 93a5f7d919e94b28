"""What every sink has of every session: the mark, the delivered ids with their hashes, and counts.

A mark and the delivered ids that lead to it change in one transaction. After kill -9 the file holds the old or the
new state, never a mixture; after a power loss it may hold an older one, so events are sent again and none is lost.

Metrics that are sent as sums are stored twice: first as they were counted, with the mark they belong to (`counted`),
then as sums (`sums`). A stream is a series of sums that continues; the bodies and the sums are the caller's bytes.
"""

import contextlib
import hashlib
import platform
import sqlite3
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec

from exporter.core.delivery.position import DELETED_THERE, FOLLOWING, FOREIGN_THERE, Identity, Mark, Position
from exporter.errors import StateError
from exporter.state.database import DATABASE_ERRORS, Schema, is_damage, open_database, set_aside

SCHEMA: Final = Schema(
    2,
    """
    CREATE TABLE sinks (id INTEGER PRIMARY KEY, name TEXT NOT NULL, url TEXT NOT NULL, UNIQUE (name, url));
    CREATE TABLE marks (
        session TEXT NOT NULL, sink INTEGER NOT NULL REFERENCES sinks, last_id TEXT, offset INTEGER NOT NULL,
        tail BLOB NOT NULL, device INTEGER, inode INTEGER, remote_id TEXT, state TEXT NOT NULL,
        delivered INTEGER NOT NULL, PRIMARY KEY (session, sink)
    ) WITHOUT ROWID;
    CREATE TABLE delivered (
        n INTEGER PRIMARY KEY, session TEXT NOT NULL, sink INTEGER NOT NULL, ids BLOB NOT NULL, hashes BLOB NOT NULL
    );
    CREATE INDEX delivered_of ON delivered (session, sink);
    CREATE TABLE masked (
        session TEXT NOT NULL, sink INTEGER NOT NULL, day TEXT NOT NULL, rule TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (session, sink, day, rule)
    ) WITHOUT ROWID;
    CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE counted (n INTEGER PRIMARY KEY, sink INTEGER NOT NULL, stream TEXT NOT NULL, body BLOB NOT NULL);
    CREATE TABLE sums (
        sink INTEGER NOT NULL, stream TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (sink, stream)
    ) WITHOUT ROWID
    """,
    "NORMAL",
)
_COUNT_MASKED: Final = (
    "INSERT INTO masked VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_DELIVER: Final = "INSERT INTO delivered (session, sink, ids, hashes) VALUES (?, ?, ?, ?)"
_CONFIRM: Final = "INSERT OR REPLACE INTO confirmed VALUES (?, ?, ?, ?)"
_VOID: Final = "UPDATE confirmed SET holds = -1 WHERE sink = ?"
_VOID_ONE: Final = "UPDATE confirmed SET holds = -1 WHERE session = ? AND sink = ?"
_FORGET_DELIVERED: Final = "DELETE FROM delivered WHERE session = ? AND sink = ?"
_FORGET_OTHERS: Final = "DELETE FROM others WHERE session = ? AND sink = ?"
_FORGET_MASKED: Final = "DELETE FROM masked WHERE session = ? AND sink = ?"
_COUNT: Final = "INSERT INTO counted (sink, stream, body) VALUES (?, ?, ?)"
_MARKS: Final = (
    "SELECT last_id, offset, tail, device, inode, remote_id, state, delivered, session, at, holds"
    " FROM marks LEFT JOIN confirmed USING (session, sink) WHERE sink = ?"
)
# Beside the schema, so that the file is one of the versions before and after.
_LATER_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS confirmed (
        session TEXT NOT NULL, sink INTEGER NOT NULL, at REAL NOT NULL, holds INTEGER NOT NULL,
        PRIMARY KEY (session, sink)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS others (
        session TEXT NOT NULL, sink INTEGER NOT NULL, ids BLOB NOT NULL, PRIMARY KEY (session, sink)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS fronts (
        session TEXT NOT NULL, sink INTEGER NOT NULL, PRIMARY KEY (session, sink)
    ) WITHOUT ROWID;
"""
T = TypeVar("T")
_Statement: TypeAlias = tuple[str, Sequence[object]]


class StoreDamagedError(Exception):
    """The database was damaged and was set aside as `path`; the store is empty now."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(f"set aside as {path}")
        self.path = path


class StoreUnwritableError(Exception):
    """The database cannot be written now (disk full, input/output error); nothing was changed."""


@dataclass(slots=True)
class PendingMetrics:
    """What was counted for a stream and is not in its sums yet; `state` holds the sums, None if there are none."""

    stream: str
    state: bytes | None
    until: int = 0
    bodies: list[bytes] = field(default_factory=list)


class MarkStore:
    """The marks of one state directory. Used from one thread; every method is one transaction.

    `epoch` counts how often the database was damaged and created again: values that were read before are then invalid.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.epoch = 0
        self._void = False  # set aside and not yet created again
        self._sinks: dict[tuple[str, str], int] = {}
        self._connection, self.set_aside = _open(path)

    def close(self) -> None:
        """Close the database; the store is not used afterwards."""
        self._connection.close()

    def _run(self, sql: str, values: Iterable[object] = ()) -> list[tuple[object, ...]]:
        try:
            return self._connection.execute(sql, tuple(values)).fetchall()
        except DATABASE_ERRORS as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> Exception:
        with contextlib.suppress(sqlite3.Error):
            self._connection.rollback()
        if not self._void and not is_damage(error):
            return StoreUnwritableError(str(error))
        if not self._void:
            self._void = True
            self._connection.close()
            self.set_aside = set_aside(self._path)
        try:
            begun, _ = _open(self._path)
        except StateError as failure:
            return StoreUnwritableError(str(failure))
        try:  # with the same numbers: a request in flight is committed to the new store, for its own sink
            rows = [(number, name, url) for (name, url), number in self._sinks.items()]
            begun.executemany("INSERT OR IGNORE INTO sinks (id, name, url) VALUES (?, ?, ?)", rows)
        except DATABASE_ERRORS as failure:
            begun.close()
            return StoreUnwritableError(str(failure))
        self._connection = begun
        self._void = False
        self.epoch += 1
        return StoreDamagedError(self.set_aside)

    def _read(self, read: Callable[[tuple[object, ...]], T], row: tuple[object, ...]) -> T:
        try:
            return read(row)
        except (TypeError, ValueError) as error:  # SQLite has no checksums: a changed byte is noticed only here
            raise self._failed(sqlite3.DatabaseError("malformed row")) from error

    def sink_id(self, name: str, url: str) -> int:
        """Return the number of a sink; another URL is another sink, with marks of its own."""
        self._run("INSERT OR IGNORE INTO sinks (name, url) VALUES (?, ?)", (name, url))
        number = int(str(self._run("SELECT id FROM sinks WHERE name = ? AND url = ?", (name, url))[0][0]))
        self._sinks[name, url] = number
        return number

    def fact(self, name: str) -> str | None:
        """Return a small remembered fact, for example this exporter's id."""
        rows = self._run("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def remember(self, name: str, value: str) -> None:
        """Keep a small fact."""
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def mark(self, session: str, sink: int) -> Mark | None:
        """Return the mark of a session at a sink, None if the sink never had any of its events."""
        rows = self._run(f"{_MARKS} AND session = ?", (sink, session))
        return self._read(_mark, rows[0]) if rows else None

    def marks(self, sink: int) -> dict[str, Mark]:
        """Return every mark of a sink by session."""
        return {str(row[8]): self._read(_mark, row) for row in self._run(_MARKS, (sink,))}

    def commit(
        self,
        session: str,
        sink: int,
        mark: Mark,
        ids: list[str],
        hashes: list[bytes],
        masked: Mapping[tuple[str, str], int],
        counted: Sequence[bytes] = (),
        confirmed_at: float | None = None,
        stream: str | None = None,
    ) -> Mark:
        """Remember that a sink has accepted these ids and stands at this mark; return the mark with its new count.

        `masked` counts by (day, rule); `counted` are metrics to be summed up, for `stream`. `confirmed_at` is when the
        sink said that it holds that count. All of it is stored or none.
        """
        mark = replace(mark, delivered=mark.delivered + len(ids))
        statements: list[_Statement] = []
        if confirmed_at is not None:
            mark = replace(mark, confirmed_at=confirmed_at, confirmed=mark.delivered)
            statements.append((_CONFIRM, (session, sink, confirmed_at, mark.confirmed)))
        if ids:
            statements.append((_DELIVER, (session, sink, msgspec.json.encode(ids), b"".join(hashes))))
        statements += [(_COUNT_MASKED, (session, sink, day, rule, count)) for (day, rule), count in masked.items()]
        if counted:
            statements.append((_COUNT, (sink, stream or mark.remote_id or session, msgspec.msgpack.encode(counted))))
        self._change([*statements, _put_mark(session, sink, mark)])
        return mark

    def count_masked(self, session: str, sink: int, masked: Mapping[tuple[str, str], int]) -> None:
        """Count the secrets that were redacted in events before they were read for a sink."""
        self._change((_COUNT_MASKED, (session, sink, day, rule, count)) for (day, rule), count in masked.items())

    def _change(self, statements: Iterable[_Statement]) -> None:
        """Execute all statements or none."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                self._connection.execute(sql, tuple(values))
            self._connection.execute("COMMIT")
        except DATABASE_ERRORS as error:
            raise self._failed(error) from error

    def pending_metrics(self, sink: int, segments_max: int) -> list[PendingMetrics]:
        """Return every stream of a sink, with what was counted first, of so many segments at most."""
        streams = {
            str(stream): PendingMetrics(str(stream), state if isinstance(state, bytes) else None)
            for stream, state in self._run("SELECT stream, state FROM sums WHERE sink = ?", (sink,))
        }
        found = self._run("SELECT n, stream, body FROM counted WHERE sink = ? ORDER BY n LIMIT ?", (sink, segments_max))
        for number, stream, body in found:
            if isinstance(number, int) and isinstance(body, bytes):
                one = streams.setdefault(str(stream), PendingMetrics(str(stream), None))
                one.until = number
                one.bodies.extend(msgspec.msgpack.decode(body, type=list[bytes]))
        return list(streams.values())

    def sum_up(self, sink: int, stream: str, state: bytes, until: int) -> None:
        """Store the sums of a stream, which contain everything that was counted for it up to the number `until`."""
        sums = ("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (sink, stream, state))
        self._change([sums, ("DELETE FROM counted WHERE sink = ? AND stream = ? AND n <= ?", (sink, stream, until))])

    def delivered(self, session: str, sink: int) -> dict[str, bytes]:
        """Return the ids that a sink has, not hidden, in the order delivered, with the hash of each.

        The hash is SHA-256 for a receiver with the `digest` capability and 16 bytes otherwise.
        """
        rows = self._run("SELECT ids, hashes FROM delivered WHERE session = ? AND sink = ? ORDER BY n", (session, sink))
        result: dict[str, bytes] = {}
        for row in rows:
            for identity, content_hash in self._read(_delivered, row):
                result.setdefault(identity, content_hash)
        return result

    def replace_delivered(
        self,
        session: str,
        sink: int,
        mark: Mark,
        delivered: Mapping[str, bytes],
        others: Collection[str] = (),
        confirmed_at: float | None = None,
        *,
        recounts: bool = False,
    ) -> Mark:
        """Store exactly these ids as what the sink has, and this mark; return the mark with its new count.

        `others` are the ids among them that another installation sent. `confirmed_at` is when the sink said so;
        `recounts` forgets how much was redacted, because all of it will be redacted and counted once more.
        """
        confirmed, at = (-1, mark.confirmed_at) if confirmed_at is None else (len(delivered), confirmed_at)
        mark = replace(mark, delivered=len(delivered), confirmed=confirmed, confirmed_at=at)
        statements: list[_Statement] = [
            (sql, (session, sink)) for sql in (_FORGET_DELIVERED, _FORGET_OTHERS, _VOID_ONE)
        ]
        if recounts:
            statements.append((_FORGET_MASKED, (session, sink)))
        if confirmed_at is not None:
            statements.append((_CONFIRM, (session, sink, confirmed_at, confirmed)))
        if others:
            ids = msgspec.json.encode(sorted(others))
            statements.append(("INSERT INTO others VALUES (?, ?, ?)", (session, sink, ids)))
        for width in {len(one) for one in delivered.values()}:
            some = {identity: one for identity, one in delivered.items() if len(one) == width}
            statements.append((_DELIVER, (session, sink, msgspec.json.encode(list(some)), b"".join(some.values()))))
        self._change([*statements, _put_mark(session, sink, mark)])
        return mark

    def others(self, session: str, sink: int) -> set[str]:
        """Return the ids among `delivered` that another installation sent."""
        rows = self._run("SELECT ids FROM others WHERE session = ? AND sink = ?", (session, sink))
        return self._read(_ids, rows[0]) if rows else set()

    def lacks_front(self, session: str, sink: int) -> bool:
        """Tell whether a sink was not sent what a session held before the sink was met."""
        return bool(self._run("SELECT 1 FROM fronts WHERE session = ? AND sink = ?", (session, sink)))

    def fronts_lacking(self, sink: int) -> int:
        """Return of how many sessions a sink was not sent what they held before the sink was met."""
        return int(str(self._run("SELECT COUNT(*) FROM fronts WHERE sink = ?", (sink,))[0][0]))

    def note_front(self, session: str, sink: int, *, lacks: bool) -> None:
        """Remember whether a sink lacks what a session held before the sink was met."""
        change = (
            "INSERT OR IGNORE INTO fronts VALUES (?, ?)"
            if lacks
            else "DELETE FROM fronts WHERE session = ? AND sink = ?"
        )
        self._run(change, (session, sink))

    def void_confirmations(self, sink: int) -> None:
        """Forget that a sink holds what it said that it holds; when it said so stays known."""
        self._run(_VOID, (sink,))

    def masked(self, session: str, sink: int) -> dict[str, dict[str, int]]:
        """Return how many secrets each rule redacted in a session, by day."""
        result: dict[str, dict[str, int]] = {}
        for day, rule, count in self._run(
            "SELECT day, rule, count FROM masked WHERE session = ? AND sink = ?", (session, sink)
        ):
            result.setdefault(str(day), {})[str(rule)] = int(str(count))
        return result

    def masked_in_all(self, session: str, sink: int) -> int:
        """Return how many secrets were redacted in the events that a sink has of a session."""
        return sum(sum(rules.values()) for rules in self.masked(session, sink).values())


def installation_of(state_dir: Path) -> str:
    """Return a name of this state directory on this machine, 16 hexadecimal digits; a copy has another one."""
    machine = ""
    with contextlib.suppress(OSError):
        machine = Path("/etc/machine-id").read_text(encoding="ascii", errors="replace").strip()
    facts = state_dir.stat()
    told = f"{machine} {platform.node()} {facts.st_dev} {facts.st_ino}"
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _open(path: Path) -> tuple[sqlite3.Connection, Path | None]:
    connection, aside = open_database(path, SCHEMA)
    try:
        connection.executescript(_LATER_TABLES)
    except DATABASE_ERRORS as error:
        connection.close()
        raise StateError(
            f"{path} cannot be written: {error}", hint="check its file system and its free space"
        ) from error
    return connection, aside


def exporter_id(store: MarkStore) -> str:
    """Return the permanent name of this installation."""
    name = store.fact("exporter_id") or str(uuid.uuid4())
    store.remember("exporter_id", name)
    return name


def _put_mark(session: str, sink: int, mark: Mark) -> _Statement:
    place = (mark.position.offset, mark.position.tail)
    file = (None, None) if mark.identity is None else (mark.identity.device, mark.identity.inode)
    row = (session, sink, mark.last_id, *place, *file, mark.remote_id, mark.state, mark.delivered)
    return "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row


def _ids(row: tuple[object, ...]) -> set[str]:
    if not isinstance(row[0], bytes):
        raise TypeError
    return msgspec.json.decode(row[0], type=set[str])


def _delivered(row: tuple[object, ...]) -> list[tuple[str, bytes]]:
    ids, hashes = row
    if not isinstance(ids, bytes) or not isinstance(hashes, bytes):
        raise TypeError
    names = msgspec.json.decode(ids, type=list[str])
    width = len(hashes) // max(1, len(names))
    return [(identity, hashes[number * width : (number + 1) * width]) for number, identity in enumerate(names)]


def _mark(row: tuple[object, ...]) -> Mark:
    last_id, offset, tail, device, inode, remote_id, state, delivered, _, at, holds = row
    if not isinstance(offset, int) or not isinstance(tail, bytes) or not isinstance(delivered, int):
        raise TypeError
    if state not in (FOLLOWING, DELETED_THERE, FOREIGN_THERE):
        raise ValueError
    identity = Identity(device, inode) if isinstance(device, int) and isinstance(inode, int) else None
    return Mark(
        None if last_id is None else str(last_id),
        Position(offset, tail),
        identity,
        None if remote_id is None else str(remote_id),
        str(state),
        delivered,
        at if isinstance(at, float) else None,
        holds if isinstance(holds, int) else -1,
    )
