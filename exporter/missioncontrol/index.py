"""The file of the search index: its form, and filling it from the store one step at a time.

It holds words only (FTS5 without content and positions) and remembers in the same transaction how far it has read, so
that whoever fills it may be killed at any moment, and two who fill it at once repeat nothing.
"""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from exporter.missioncontrol import bulk
from exporter.missioncontrol.payloads import whole
from exporter.missioncontrol.schema import connect
from exporter.missioncontrol.texts import FORMAT, text_of

Result = TypeVar("Result")
Row: TypeAlias = tuple[int, int, bytes]
ReadStore: TypeAlias = Callable[[Callable[[sqlite3.Connection], Result]], Result]
_ROWS_MAX, _BYTES_MAX = 2000, 4 << 20
_BUSY_SECONDS: Final = 10

_SCHEMA: Final = (
    "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0,"
    " tokenize='unicode61 remove_diacritics 0')",
    "INSERT INTO words (words, rank) VALUES ('hashsize', 8388608)",
    "CREATE TABLE indexed (until INTEGER NOT NULL, store INTEGER NOT NULL, format INTEGER NOT NULL)",
    "CREATE TABLE forgotten (session INTEGER PRIMARY KEY)",
)
_REMOVE: Final = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"


@dataclass(frozen=True, slots=True)
class Texts:
    """The words of the events after one number and up to another."""

    after: int
    until: int
    rows: list[tuple[int, str]]


def path_beside(store: Path) -> Path:
    """Return where the index of a store is."""
    return store.with_name(f"{store.stem}-search{store.suffix}")


def identity_of(database: sqlite3.Connection) -> int:
    """Return the number by which an index knows its store."""
    (identity,) = database.execute("SELECT value FROM counters WHERE name = 'identity'").fetchone()
    return int(identity)


def open_index(path: Path | None, identity: int) -> sqlite3.Connection:
    """Open the index of the store with this identity, anew if it is none or of another one; None is in memory."""
    try:
        return _open(path, identity)
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):  # somebody fills it: it is none the worse for that
            raise
        _remove(path)
    return _open(path, identity)


def reached(index: sqlite3.Connection) -> int:
    """Return the number of the last event that the index has read."""
    (until,) = index.execute("SELECT until FROM indexed").fetchone()
    return int(until)


def read_on(index: sqlite3.Connection, read_store: ReadStore[list[Row]]) -> Texts | None:
    """Return the texts of the next events, None when there are none."""
    after = reached(index)
    rows = read_store(lambda database: _unread(database, after))
    if not rows:
        return None
    skipped = {session for (session,) in index.execute("SELECT session FROM forgotten")}
    return Texts(after, rows[-1][0], [(n, text_of(body)) for n, session, body in rows if session not in skipped])


def put(index: sqlite3.Connection, texts: Texts) -> None:
    """Take texts in, unless somebody has done so."""
    index.execute("BEGIN IMMEDIATE")
    try:
        if reached(index) == texts.after:
            bulk.insert(index, "words", "rowid, text", texts.rows)
            index.execute("UPDATE indexed SET until = ?", (texts.until,))
        index.execute("COMMIT")
    except BaseException:
        index.execute("ROLLBACK")
        raise


def take_out(index: sqlite3.Connection, read_store: ReadStore[list[Row]], session: int) -> None:
    """Take a session's words out, and skip what of it is still to be read."""
    if index.execute("SELECT 1 FROM forgotten WHERE session = ?", (session,)).fetchone():
        return
    index.execute("BEGIN IMMEDIATE")
    last, until = 0, reached(index)
    while rows := read_store(lambda database, after=last: _indexed_of(database, session, after, until)):  # type: ignore[misc]
        index.executemany(_REMOVE, ((n, text_of(body)) for n, _, body in rows))
        last = rows[-1][0]
    index.execute("INSERT INTO forgotten (session) VALUES (?)", (session,))
    index.execute("COMMIT")


def _unread(database: sqlite3.Connection, until: int) -> list[Row]:
    rows = database.execute(
        "SELECT n, session, body, cuts FROM events WHERE n > ? ORDER BY n LIMIT ?", (until, _ROWS_MAX)
    )
    return _some(database, rows)


def _indexed_of(database: sqlite3.Connection, session: int, after: int, until: int) -> list[Row]:
    # The plus keeps SQLite from walking through all events by their number.
    rows = database.execute(
        "SELECT n, session, body, cuts FROM events WHERE session = ? AND +n > ? AND +n <= ? ORDER BY n LIMIT ?",
        (session, after, until, _ROWS_MAX),
    )
    return _some(database, rows)


def _some(database: sqlite3.Connection, rows: Iterable[tuple[int, int, bytes, bytes | None]]) -> list[Row]:
    """Return the rows with their events as delivered, until they are many bytes."""
    found: list[Row] = []
    size = 0
    for n, session, body, cuts in rows:
        found.append((n, session, whole(database, body, cuts)))
        size += len(found[-1][2])
        if size > _BYTES_MAX:
            break
    return found


def _open(path: Path | None, identity: int) -> sqlite3.Connection:
    if path is not None:
        path.touch(mode=0o600)
    index = connect(path)
    try:
        for name, value in {
            "busy_timeout": str(_BUSY_SECONDS * 1000),
            "journal_mode": "WAL",
            "synchronous": "NORMAL",
            "secure_delete": "ON",
            "cache_size": "-4000",
            "journal_size_limit": str(16 << 20),
        }.items():
            index.execute(f"PRAGMA {name} = {value}")
        if not index.execute("SELECT 1 FROM sqlite_master WHERE name = 'indexed'").fetchone():
            index.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                index.execute(statement)
            index.execute("INSERT INTO indexed VALUES (0, ?, ?)", (identity, FORMAT))
            index.execute("COMMIT")
        if index.execute("SELECT store, format FROM indexed").fetchone() != (identity, FORMAT):
            raise sqlite3.DatabaseError("the index is of another store or format")
    except BaseException:
        index.close()
        raise
    return index


def _remove(path: Path | None) -> None:
    for suffix in ("", "-wal", "-shm"):
        if path is not None:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
