"""A connection to a SQLite file as the port's `Database`, and SQLite's errors as the port's."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final

from exporter.missioncontrol.store.port import StoreBusy, StoreDamaged, StoreError, StoreFull, Table

_VALUES_MAX: Final = 1300  # 100 events: a statement keeps its values until it is used again
_TRUNCATE_WAIT_MILLISECONDS: Final = 250
_ERRORS: Final[dict[int, type[StoreError]]] = {
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_LOCKED: StoreBusy,
    sqlite3.SQLITE_FULL: StoreFull,
    sqlite3.SQLITE_CORRUPT: StoreDamaged,
    sqlite3.SQLITE_NOTADB: StoreDamaged,
}


@contextmanager
def engine_errors() -> Iterator[None]:
    """Raise SQLite's errors as a `StoreError` with the same text."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        raise _ERRORS.get(code, StoreError)(str(error)) from error


def connect(path: Path | None, *, read_only: bool = False) -> "SqliteDatabase":
    """Open a connection that any one thread at a time may use; None is a database in memory."""
    database = sqlite3.connect(
        ":memory:" if path is None else str(path),
        isolation_level=None,
        check_same_thread=False,
        timeout=10,
        factory=SqliteDatabase,
    )
    database.execute("PRAGMA trusted_schema = OFF")
    if read_only:
        database.execute("PRAGMA query_only = ON")
    return database


class SqliteDatabase(sqlite3.Connection):
    """The port's `Database` on SQLite. It raises SQLite's own errors; whoever runs a job uses `engine_errors`."""

    @contextmanager
    def transaction(self, *, writes: bool = True) -> Iterator[None]:
        """Commit at the end of the block, or roll back when it raises."""
        try:
            self.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]], *, unless_there: bool = False) -> None:
        """Insert the rows.

        The module of SQLite releases the interpreter's lock in every step. Beside a busy thread it takes up to five
        milliseconds to get it back, so that a step for every row can make a batch take ten times as long.
        """
        width = columns.count(",") + 1
        values_max = min(_VALUES_MAX, self.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))  # 999 before SQLite 3.32
        first, together = 0, values_max // width
        while first < len(rows):
            while together > len(rows) - first:
                together //= 2  # so that the rest takes few statements, and few of different lengths
            values = tuple(chain.from_iterable(rows[first : first + together]))
            self.execute(_insertion(table, columns, together, width, unless_there), values)
            first += together

    def allocate(self, table: Table, count: int = 1) -> int:
        """Return the first of `count` row numbers; the counter is part of the transaction."""
        self.execute("UPDATE counters SET value = value + ? WHERE name = ?", (count, table))
        (last,) = self.execute("SELECT value FROM counters WHERE name = ?", (table,)).fetchone()
        return int(last) - count + 1

    def lock_session(self, session_id: str) -> None:
        """Do nothing: SQLite lets one transaction write at a time."""

    def contains(self, column: str) -> str:
        """Return the condition; unlike LIKE, `instr` compares letter by letter and has no wildcards."""
        return f"instr({column}, ?) > 0"

    def forget_text_of(self, session: int) -> None:
        """Note the rows around which `erase` looks, and leave no copy in a table that `erase` does not look at."""
        for tree, rows in (
            ("sessions", "SELECT ?1"),
            ("events", "SELECT n FROM events WHERE session = ?1"),
            ("blobs", "SELECT blob FROM blob_uses WHERE session = ?1"),
        ):
            self.execute(f"INSERT OR IGNORE INTO to_clear SELECT '{tree}', * FROM ({rows})", (session,))  # noqa: S608
        # A row of a table without row ids can be cleared by nothing but writing the whole table again.
        counts = self.execute("SELECT * FROM redactions WHERE session <> ?", (session,)).fetchall()
        self.execute("DELETE FROM redactions")
        self.executemany("INSERT INTO redactions VALUES (?, ?, ?, ?, ?)", counts)

    def has_text_to_erase(self) -> bool:
        """Tell whether a deleted session is still noted."""
        return self.execute("SELECT 1 FROM to_clear LIMIT 1").fetchone() is not None

    def used_bytes(self) -> int:
        """Return the size of the pages in use; SQLite uses free pages again before the file grows."""
        pages, free, size = (
            self.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def truncate_log(self) -> bool:
        """Write the write-ahead log into the file and cut it to nothing, so that no old page stays in it.

        It waits only a moment for readers, because all writers wait with it: False says to try again later.
        """
        (patience,) = self.execute("PRAGMA busy_timeout").fetchone()
        self.execute(f"PRAGMA busy_timeout = {_TRUNCATE_WAIT_MILLISECONDS}")
        try:
            (busy, _, _) = self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self.execute(f"PRAGMA busy_timeout = {patience}")
        return not busy


@cache
def _insertion(table: str, columns: str, rows: int, width: int, unless_there: bool) -> str:
    row = f"({', '.join('?' * width)})"
    end = " ON CONFLICT DO NOTHING" if unless_there else ""
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)}{end}"  # noqa: S608  names and marks
