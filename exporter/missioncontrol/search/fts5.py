"""The full-text index as a SQLite file with FTS5.

It holds words only (without content and positions), in parts of a quarter of a million events: what begins with some
letters is gathered from a whole part before its first event is known.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from exporter.missioncontrol.search.event_text import FORMAT, words_of
from exporter.missioncontrol.search.index import Row, Term, Texts
from exporter.missioncontrol.store.port import StoreBusy, StoreDamaged, StoreError
from exporter.missioncontrol.store.sqlite.database import SqliteDatabase, connect, engine_errors, prepare

_PART_BITS: Final = 18
_FORMAT: Final = (3 << 16) + FORMAT
_SETTINGS: Final = {
    "busy_timeout": 10_000,
    "journal_mode": "WAL",
    "synchronous": "NORMAL",
    "secure_delete": "ON",
    "cache_size": -4000,
    "journal_size_limit": 16 << 20,
}
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


def path_beside(store: Path) -> Path:
    """Return where the index of a store is."""
    return store.with_name(f"{store.stem}-search{store.suffix}")


def open_index(path: Path | None, identity: int) -> "Fts5Index":
    """Open the index of the store with this identity; one of another store, or a damaged one, is replaced by a new one.

    None is an index in memory. Raises `StoreBusy` while another process keeps it locked.
    """
    try:
        return _open(path, identity)
    except StoreBusy:  # another process fills it
        raise
    except StoreError:
        if path is not None:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
    return _open(path, identity)


def open_reader(path: Path) -> "Fts5Index":
    """Open a connection that only reads the index, which must exist."""
    with engine_errors():
        return Fts5Index(connect(path, read_only=True))


def _open(path: Path | None, identity: int) -> "Fts5Index":
    if path is not None and not path.exists():  # opening and closing it would end the locks this process has on it
        path.touch(mode=0o600)
    with engine_errors():
        return Fts5Index(prepare(connect(path), _SETTINGS, partial(_create_tables, identity)))


def _create_tables(identity: int, index: SqliteDatabase) -> None:
    """Create the tables of an empty file, or raise `StoreDamaged` for a file of another store."""
    if not index.execute("SELECT 1 FROM sqlite_master WHERE name = 'indexed'").fetchone():
        with index.transaction():
            for statement in _SCHEMA:
                index.execute(statement)
            index.execute("INSERT INTO indexed VALUES (0, ?, ?)", (identity, _FORMAT))
    if index.execute("SELECT store, format FROM indexed").fetchone() != (identity, _FORMAT):
        raise StoreDamaged("the index is of another store or format")


class Fts5Index:
    """A connection to the index; `TextIndex` says what the methods promise."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database

    def close(self) -> None:
        """Close the connection."""
        self.database.close()

    def reached(self) -> int:
        """Return the number of the last event that the index has read."""
        with engine_errors():
            (until,) = self.database.execute("SELECT until FROM indexed").fetchone()
        return int(until)

    def forgotten(self) -> set[int]:
        """Return the sessions that were removed."""
        with engine_errors():
            return {session for (session,) in self.database.execute("SELECT session FROM forgotten")}

    def put(self, texts: Texts, /) -> None:
        """Put texts in."""
        with engine_errors(), self.database.transaction():
            (forgotten,) = self.database.execute("SELECT count(*) FROM forgotten").fetchone()
            if (self.reached(), forgotten) == (texts.after, texts.forgotten):
                self.insert(texts.rows)
                self.database.execute("UPDATE indexed SET until = ?", (texts.until,))

    def insert(self, rows: Sequence[tuple[int, str]]) -> None:
        """Insert the words of events, in the caller's transaction."""
        for part, some in groupby(rows, lambda row: row[0] >> _PART_BITS):
            self.database.insert(self._begun(part), "rowid, text", list(some))

    def part_of(self, number: int) -> int:
        """Return the part that an event is in."""
        return number >> _PART_BITS

    def begin_again(self, part: int) -> tuple[int, int]:
        """Empty a part, in the caller's transaction; return its first number and that of the next part."""
        self.database.execute(f"DROP TABLE IF EXISTS {_name(part)}")
        self.database.execute("DELETE FROM parts WHERE n = ?", (part,))
        return part << _PART_BITS, (part + 1) << _PART_BITS

    def matches(self, terms: Sequence[Term], below: int, /) -> Iterator[int]:
        """Yield the numbers of events; behind a part, unless it is the last one, comes its first number."""
        expression = " AND ".join(f'"{term.word}"{"*" if term.is_prefix else ""}' for term in terms)
        with engine_errors():
            execute, last = self.database.execute, (below >> _PART_BITS,)
            parts = execute("SELECT n FROM parts WHERE n <= ? ORDER BY n DESC", last).fetchall()
            for (part,) in parts:
                table, number, first = _name(part), None, part << _PART_BITS
                for (number,) in execute(
                    f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid < ? ORDER BY rowid DESC",  # noqa: S608  a name
                    (expression, below),
                ):
                    yield number
                if part != parts[-1][0] and number != first < below:
                    yield first

    def remove(self, session: int, rows_of: Callable[[int, int], Sequence[Row]], /) -> None:
        """Remove a session's words and merge the index, so that no word of it stays in the file."""
        last, parts, index = 0, set[int](), self.database
        with engine_errors():
            with index.transaction():
                until = self.reached()  # not before: another process may fill the index, even one that was left over
                is_out = index.execute("SELECT 1 FROM forgotten WHERE session = ?", (session,)).fetchone() is not None
                while rows := rows_of(last, until):
                    for part, some in groupby(rows, lambda row: row[0] >> _PART_BITS):
                        parts.add(part)
                        if not is_out:
                            table = _name(part)
                            delete = f"INSERT INTO {table} ({table}, rowid, text) VALUES ('delete', ?, ?)"  # noqa: S608
                            index.executemany(delete, ((n, words_of(body)) for n, _, body in some))
                    last = rows[-1][0]
                index.execute("INSERT OR IGNORE INTO forgotten (session) VALUES (?)", (session,))
            for part in parts:
                index.execute(f"INSERT INTO {_name(part)} ({_name(part)}) VALUES ('optimize')")  # noqa: S608  a name

    def cut_log(self) -> bool:
        """Cut the log beside the file."""
        with engine_errors():
            return self.database.truncate_log()

    def _begun(self, part: int) -> str:
        """Return the table of a part, made if there is none yet."""
        if self.database.execute("INSERT OR IGNORE INTO parts (n) VALUES (?)", (part,)).rowcount:
            for statement in _PART:
                self.database.execute(statement.format(_name(part)))
        return _name(part)


def _name(part: int) -> str:
    return f"words{part:d}"
