"""The file of the search index: its form, and filling it from the store one step at a time.

It holds words only (FTS5 without content and positions), in parts of a quarter of a million events: what begins with
some letters is gathered from a whole part before its first event is known. It remembers in the transaction that adds
words how far it has read, so that whoever fills it may be killed at any moment, and two at once add nothing twice.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from exporter.missioncontrol.search.event_text import FORMAT, words_of
from exporter.missioncontrol.store import bulk_insert
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.sqlite.schema import connect

Result = TypeVar("Result")
Row: TypeAlias = tuple[int, int, bytes]
ReadStore: TypeAlias = Callable[[Callable[[sqlite3.Connection], Result]], Result]
_ROWS_MAX, _BYTES_MAX = 2000, 4 << 20
_PART_BITS: Final = 18
_FORMAT: Final = (3 << 16) + FORMAT
_BUSY_SECONDS: Final = 10

_SCHEMA: Final = (
    "CREATE TABLE parts (n INTEGER PRIMARY KEY)",
    "CREATE TABLE indexed (until INTEGER NOT NULL, store INTEGER NOT NULL, format INTEGER NOT NULL)",
    "CREATE TABLE forgotten (session INTEGER PRIMARY KEY)",
)
# For this tokenizer all that is not ASCII is a letter, so that `words_of` alone decides what is one.
_PART: Final = (
    "CREATE VIRTUAL TABLE {0} USING fts5(text, content='', detail=none, columnsize=0, tokenize='ascii')",
    "INSERT INTO {0} ({0}, rank) VALUES ('hashsize', 8388608)",
)


@dataclass(frozen=True, slots=True)
class Texts:
    """The words of the events after one number and up to another, without those of sessions forgotten by then."""

    after: int
    until: int
    rows: list[tuple[int, str]]
    forgotten: int = 0
    """How many sessions were."""


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
    texts = [(n, words_of(body)) for n, session, body in rows if session not in skipped]
    return Texts(after, rows[-1][0], texts, len(skipped))


def put(index: sqlite3.Connection, texts: Texts) -> None:
    """Take texts in, unless somebody has done so, or a session was forgotten meanwhile."""
    index.execute("BEGIN IMMEDIATE")
    try:
        (forgotten,) = index.execute("SELECT count(*) FROM forgotten").fetchone()
        if (reached(index), forgotten) == (texts.after, texts.forgotten):
            for part, rows in groupby(texts.rows, lambda row: row[0] >> _PART_BITS):
                bulk_insert.insert(index, _begun(index, part), "rowid, text", list(rows))
            index.execute("UPDATE indexed SET until = ?", (texts.until,))
        index.execute("COMMIT")
    except BaseException:
        index.execute("ROLLBACK")
        raise


def matches(index: sqlite3.Connection, expression: str, below: int) -> Iterator[int]:
    """Yield the numbers of events that may match, newest first.

    Behind a part, unless it is the last one, comes its first number, so that who asks may stop there.
    """
    parts = index.execute("SELECT n FROM parts WHERE n <= ? ORDER BY n DESC", (below >> _PART_BITS,)).fetchall()
    for (part,) in parts:
        table, number, first = _name(part), None, part << _PART_BITS
        for (number,) in index.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid < ? ORDER BY rowid DESC",  # noqa: S608  a name
            (expression, below),
        ):
            yield number
        if part != parts[-1][0] and number != first < below:
            yield first


def take_out(index: sqlite3.Connection, read_store: ReadStore[list[Row]], session: int) -> None:
    """Take a session's words out, so that no word of it stays in the file, and skip what of it is still to be read."""
    last, parts = 0, set[int]()
    index.execute("BEGIN IMMEDIATE")
    until = reached(index)  # not before: another process may fill the index, even one that outlived who started it
    is_out = index.execute("SELECT 1 FROM forgotten WHERE session = ?", (session,)).fetchone() is not None
    while rows := read_store(lambda database, after=last: _indexed_of(database, session, after, until)):  # type: ignore[misc]
        for part, some in groupby(rows, lambda row: row[0] >> _PART_BITS):
            parts.add(part)
            if not is_out:
                remove = f"INSERT INTO {_name(part)} ({_name(part)}, rowid, text) VALUES ('delete', ?, ?)"  # noqa: S608
                index.executemany(remove, ((n, words_of(body)) for n, _, body in some))
        last = rows[-1][0]
    index.execute("INSERT OR IGNORE INTO forgotten (session) VALUES (?)", (session,))
    index.execute("COMMIT")
    for part in parts:
        index.execute(f"INSERT INTO {_name(part)} ({_name(part)}) VALUES ('optimize')")  # noqa: S608  a name


def _name(part: int) -> str:
    return f"words{part:d}"


def _begun(index: sqlite3.Connection, part: int) -> str:
    """Return the table of a part, made if there is none yet."""
    if index.execute("INSERT OR IGNORE INTO parts (n) VALUES (?)", (part,)).rowcount:
        for statement in _PART:
            index.execute(statement.format(_name(part)))
    return _name(part)


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
    if path is not None and not path.exists():  # opening and closing it would end the locks this process has on it
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
            index.execute("INSERT INTO indexed VALUES (0, ?, ?)", (identity, _FORMAT))
            index.execute("COMMIT")
        if index.execute("SELECT store, format FROM indexed").fetchone() != (identity, _FORMAT):
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
