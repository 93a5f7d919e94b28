"""What every sink has of every session: the mark, the delivered ids with their hashes, and what was masked.

A mark and the delivered ids that lead to it change in one transaction. After kill -9 the file holds the old or the
new state, never a mixture; after a power loss it may hold an older one, which repeats and never loses.
"""

import contextlib
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import msgspec

from exporter.core.delivery.position import DELETED_THERE, FOLLOWING, Identity, Mark, Position
from exporter.errors import StateError
from exporter.state.database import DATABASE_ERRORS, Schema, is_damage, open_database, set_aside
from exporter.state.pending_metrics import COUNT, COUNTED_TABLES

_SCHEMA: Final = Schema(
    2,
    f"""
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
    {COUNTED_TABLES}
    """,
    "NORMAL",
)
_COUNT_MASKED: Final = (
    "INSERT INTO masked VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count"
)
_DELIVER: Final = "INSERT INTO delivered (session, sink, ids, hashes) VALUES (?, ?, ?, ?)"
T = TypeVar("T")
_Statement: TypeAlias = tuple[str, Sequence[object]]


class StoreDamagedError(Exception):
    """The database was found damaged and set aside as `path`; the store is empty now."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(f"set aside as {path}")
        self.path = path


class StoreUnwritableError(Exception):
    """The database cannot be written now (disk full, input/output error); nothing was changed."""


class MarkStore:
    """The marks of one state directory. Used from one thread; every method is one transaction.

    `epoch` counts how often the database was found damaged and begun anew: what was read before is void then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.epoch = 0
        self._void = False  # set aside, and not yet begun anew
        self._sinks: dict[tuple[str, str], int] = {}
        self._connection, self.set_aside = open_database(path, _SCHEMA)

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
            if self._connection.in_transaction:
                self._connection.rollback()
        if not self._void and not is_damage(error):
            return StoreUnwritableError(str(error))
        if not self._void:
            self._void = True
            self._connection.close()
            self.set_aside = set_aside(self._path)
        try:
            begun, _ = open_database(self._path, _SCHEMA)
        except StateError as failure:
            return StoreUnwritableError(str(failure))
        try:  # with the numbers of before: a request that is under way ends in the new store, at its own sink
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
        except (TypeError, ValueError) as error:  # SQLite has no checksums: a changed byte shows only here
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
        """Return the mark of a session at a sink, None when the sink never had anything of it."""
        rows = self._run(
            "SELECT last_id, offset, tail, device, inode, remote_id, state, delivered FROM marks"
            " WHERE session = ? AND sink = ?",
            (session, sink),
        )
        return self._read(_mark, rows[0]) if rows else None

    def marks(self, sink: int) -> dict[str, Mark]:
        """Return every mark of a sink by session."""
        rows = self._run(
            "SELECT last_id, offset, tail, device, inode, remote_id, state, delivered, session FROM marks"
            " WHERE sink = ?",
            (sink,),
        )
        return {str(row[8]): self._read(_mark, row) for row in rows}

    def commit(
        self,
        session: str,
        sink: int,
        mark: Mark,
        ids: list[str],
        hashes: list[bytes],
        masked: Mapping[tuple[str, str], int],
        counted: Sequence[bytes] = (),
    ) -> Mark:
        """Remember that a sink has accepted these ids and stands at this mark; return the mark with its new count.

        `masked` counts by (day, rule); `counted` waits to be summed up (`state/pending_metrics.py`). All of it
        is remembered or none.
        """
        mark = replace(mark, delivered=mark.delivered + len(ids))
        statements: list[_Statement] = []
        if ids:
            statements.append((_DELIVER, (session, sink, msgspec.json.encode(ids), b"".join(hashes))))
        statements += [(_COUNT_MASKED, (session, sink, day, rule, count)) for (day, rule), count in masked.items()]
        if counted:
            statements.append((COUNT, (sink, mark.remote_id or session, msgspec.msgpack.encode(counted))))
        self.change([*statements, _put_mark(session, sink, mark)])
        return mark

    def count_masked(self, session: str, sink: int, masked: Mapping[tuple[str, str], int]) -> None:
        """Count what was masked in events before they were read for a sink."""
        self.change((_COUNT_MASKED, (session, sink, day, rule, count)) for (day, rule), count in masked.items())

    def rows(self, sql: str, values: Iterable[object] = ()) -> list[tuple[object, ...]]:
        """Read something that another module of the store keeps here."""
        return self._run(sql, values)

    def change(self, statements: Iterable[_Statement]) -> None:
        """Carry out statements of another module of the store, all or none."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for sql, values in statements:
                self._connection.execute(sql, tuple(values))
            self._connection.execute("COMMIT")
        except DATABASE_ERRORS as error:
            raise self._failed(error) from error

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

    def replace_delivered(self, session: str, sink: int, mark: Mark, delivered: Mapping[str, bytes]) -> Mark:
        """Remember exactly these ids as what the sink has, and this mark; return the mark with its new count."""
        mark = replace(mark, delivered=len(delivered))
        statements: list[_Statement] = [("DELETE FROM delivered WHERE session = ? AND sink = ?", (session, sink))]
        for width in {len(one) for one in delivered.values()}:
            some = {identity: one for identity, one in delivered.items() if len(one) == width}
            statements.append((_DELIVER, (session, sink, msgspec.json.encode(list(some)), b"".join(some.values()))))
        self.change([*statements, _put_mark(session, sink, mark)])
        return mark

    def masked(self, session: str, sink: int) -> dict[str, dict[str, int]]:
        """Return how often each rule masked something in a session, by day."""
        result: dict[str, dict[str, int]] = {}
        for day, rule, count in self._run(
            "SELECT day, rule, count FROM masked WHERE session = ? AND sink = ?", (session, sink)
        ):
            result.setdefault(str(day), {})[str(rule)] = int(str(count))
        return result

    def masked_in_all(self, session: str, sink: int) -> int:
        """Return how many secrets were masked in what a sink has of a session."""
        return sum(sum(rules.values()) for rules in self.masked(session, sink).values())


def exporter_id(store: MarkStore) -> str:
    """Return the name that this installation has for good."""
    name = store.fact("exporter_id") or str(uuid.uuid4())
    store.remember("exporter_id", name)
    return name


def _put_mark(session: str, sink: int, mark: Mark) -> _Statement:
    place = (mark.position.offset, mark.position.tail)
    file = (None, None) if mark.identity is None else (mark.identity.device, mark.identity.inode)
    row = (session, sink, mark.last_id, *place, *file, mark.remote_id, mark.state, mark.delivered)
    return "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row


def _delivered(row: tuple[object, ...]) -> list[tuple[str, bytes]]:
    ids, hashes = row
    if not isinstance(ids, bytes) or not isinstance(hashes, bytes):
        raise TypeError
    names = msgspec.json.decode(ids, type=list[str])
    width = len(hashes) // max(1, len(names))
    return [(identity, hashes[number * width : (number + 1) * width]) for number, identity in enumerate(names)]


def _mark(row: tuple[object, ...]) -> Mark:
    last_id, offset, tail, device, inode, remote_id, state, delivered = row[:8]
    if not isinstance(offset, int) or not isinstance(tail, bytes) or not isinstance(delivered, int):
        raise TypeError
    if state not in (FOLLOWING, DELETED_THERE):
        raise ValueError
    identity = Identity(device, inode) if isinstance(device, int) and isinstance(inode, int) else None
    return Mark(
        None if last_id is None else str(last_id),
        Position(offset, tail),
        identity,
        None if remote_id is None else str(remote_id),
        str(state),
        delivered,
    )
