"""A SQLite file: opening it, a connection to it as the port's `Database`, and SQLite's errors as the port's.

The tables are in `schema.sql`. A file that is no database any more is set aside.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, get_args

from exporter.core.notice import Level, Notice, NoticeName
from exporter.errors import StateError
from exporter.files import copy_database
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
# Large pages hold several events of ordinary size each: twice as fast to write as 4 KB, measured with 1.8 KB events.
_SETTINGS: Final = {
    "page_size": 16384,
    "journal_mode": "WAL",
    "synchronous": "FULL",
    "secure_delete": "ON",
    "cache_size": -8000,
    "wal_autocheckpoint": 1024,
    "journal_size_limit": 64 << 20,
}
_CHECKED_BYTES_MAX: Final = 32 << 20
_SPARE_BYTES: Final = 64 << 20
_SCHEMA: Final = Path(__file__).with_name("schema.sql")
_TENANTS: Final = Path(__file__).with_name("tenants.sql")
VERSION: Final = 13
"""The `PRAGMA user_version` of a file with the tables of `schema.sql` and `tenants.sql`."""
_TAKEN_OVER: Final[dict[int, tuple[str, ...]]] = {
    10: tuple(f"ALTER TABLE {table} ADD COLUMN owner TEXT" for table in ("sessions", "deleted_sessions")),
    11: ("ALTER TABLE events ADD COLUMN sender INTEGER",),
    12: (),
}
"""What makes a file of each version before one of the next version; `tenants.sql` is the step from 12 to 13."""


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
    """The port's `Database` on SQLite. It raises SQLite's own errors; the code that runs a job uses `engine_errors`."""

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

    def stream(self, sql: str, values: Sequence[Any] = (), /) -> sqlite3.Cursor:
        """Execute a statement; SQLite reads rows while they are iterated."""
        return self.execute(sql, values)

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
        return self.counter(table) - count + 1

    def count_change(self) -> None:
        """Count a change; the counter is part of the transaction."""
        self.execute("UPDATE counters SET value = value + 1 WHERE name = 'changes'")

    def changes(self) -> int:
        """Return the counter."""
        return self.counter("changes")

    def counter(self, name: str) -> int:
        """Return a number that is kept in the file."""
        (value,) = self.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
        return int(value)

    def lock_session(self, session_id: str) -> None:
        """Do nothing: SQLite lets one transaction write at a time."""

    def contains(self, column: str) -> str:
        """Return the condition; unlike LIKE, `instr` compares letter by letter and has no wildcards."""
        return f"instr({column}, ?) > 0"

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """Return the condition with a mark for each value."""
        return f"{column} IN ({','.join('?' * len(values))})", values

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

    def pragma(self, name: str) -> Any:
        """Return the value of a PRAGMA."""
        return self.execute(f"PRAGMA {name}").fetchone()[0]

    def has_text_to_erase(self) -> bool:
        """Tell whether a deleted session is still noted."""
        return self.execute("SELECT 1 FROM to_clear LIMIT 1").fetchone() is not None

    def used_bytes(self) -> int:
        """Return the size of the pages in use; SQLite uses free pages again before the file grows."""
        return int((self.pragma("page_count") - self.pragma("freelist_count")) * self.pragma("page_size"))

    def truncate_log(self) -> bool:
        """Write the write-ahead log into the file and cut it to nothing, so that no old page stays in it.

        It waits only a moment for readers, because all writers wait with it: False says to try again later.
        """
        patience = self.pragma("busy_timeout")
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


def open_database(path: Path | None, notice: Callable[[Notice], None]) -> SqliteDatabase:
    """Open the database for writing, durable at every commit.

    A file that is damaged is renamed to `.corrupt-N` and a new one is begun; one whose tables will change is copied.
    `notice` is told of both. A file of another version of this program, or a path that cannot be written, raises
    `StateError`.
    """
    if path is None:
        return prepare(connect(None), _SETTINGS, _create_tables)
    _create_private(path)
    try:
        _check_whole(path)
        _keep_before_upgrade(path, notice)
        return prepare(connect(path), _SETTINGS, _create_tables)
    except sqlite3.OperationalError as error:
        raise StateError(
            f"The store {path} cannot be opened: {error}.", hint="Check the directory's permissions and free space."
        ) from error
    except sqlite3.DatabaseError as error:
        aside = _set_aside(path)
        text = f"The store {path} is damaged ({error}); it was set aside as {aside.name} and a new one begun."
        notice(Notice(NoticeName.DATABASE_SET_ASIDE, Level.ERROR, text))
        _create_private(path)
        return prepare(connect(path), _SETTINGS, _create_tables)


def _keep_before_upgrade(path: Path, notice: Callable[[Notice], None]) -> None:
    """Copy a file that is about to be taken over, for going back to the version that wrote it; raises `StateError`."""
    with closing(connect(path, read_only=True)) as database:
        version = database.pragma("user_version")
        size = int(database.pragma("page_count") * database.pragma("page_size"))
    if version not in _TAKEN_OVER:
        return
    if shutil.disk_usage(path.parent).free < size + _SPARE_BYTES:
        raise StateError(
            f"There is no room to keep {path} as it is before the upgrade to schema {VERSION}.",
            hint=f"Free {size + _SPARE_BYTES:,} bytes, or move the store to a larger disk; the file is unchanged.",
        )
    kept = path.with_name(f"{path.name}.schema-{version}.backup")
    try:
        copy_database(path, kept)
    except OSError as error:
        message = f"The store {path} cannot be kept as it is before the upgrade: {error.strerror}."
        raise StateError(message, hint="Check its directory; the file is unchanged.") from None
    text = "the store is upgraded; a copy of it as it was is kept, for going back to the version before"
    notice(Notice(NoticeName.STORE_KEPT, Level.INFO, text, fields={"as": str(kept)}))


def _create_private(path: Path) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        path.chmod(0o600)
    except OSError as error:
        message = f"The store {path} cannot be written: {error.strerror}."
        raise StateError(message, hint="Choose another path.") from error


def _check_whole(path: Path) -> None:
    """Raise `sqlite3.DatabaseError` when the file is visibly damaged; only a small one is read to its end."""
    size = path.stat().st_size
    if size == 0:
        return
    with closing(connect(path)) as database:
        has_log = path.with_name(path.name + "-wal").exists()
        if database.pragma("page_count") * database.pragma("page_size") > size and not has_log:
            raise sqlite3.DatabaseError("the file was cut short")
        if size <= _CHECKED_BYTES_MAX and (verdict := database.pragma("quick_check(1)")) != "ok":
            raise sqlite3.DatabaseError(verdict)


def _set_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


def prepare(
    database: SqliteDatabase, settings: Mapping[str, object], create: Callable[[SqliteDatabase], None]
) -> SqliteDatabase:
    """Apply the settings to a new connection and create what is missing; close it when one of them fails."""
    try:
        for name, value in settings.items():
            database.execute(f"PRAGMA {name} = {value}")
        create(database)
    except BaseException:
        database.close()
        raise
    return database


def _statements(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split(";\n")[:-1]


def _create_tables(database: SqliteDatabase) -> None:
    """Create the tables of an empty file, take over one of the version before, or raise `StateError` for another."""
    with database.transaction():
        version = database.pragma("user_version")
        if version not in (0, *_TAKEN_OVER, VERSION):
            age = "a newer" if version > VERSION else "an earlier"
            raise StateError(
                f"The store was written by {age} version of this program: schema {version}, not {VERSION}.",
                hint="Install that version again, or choose another store; the file is unchanged.",
            )
        if version != VERSION:
            steps = [step for before in range(version, VERSION) for step in _TAKEN_OVER.get(before, ())]
            for statement in (*(_statements(_SCHEMA) if version == 0 else steps), *_statements(_TENANTS)):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {VERSION}")
        database.execute("INSERT INTO counters (name, value) VALUES ('changes', 0) ON CONFLICT DO NOTHING")
        database.execute("INSERT OR REPLACE INTO counters (name, value) VALUES ('epoch', abs(random() / 2))")
        for table in get_args(Table):  # a file of before has counters of deleted rows only
            database.execute("INSERT INTO counters (name, value) VALUES (?, 0) ON CONFLICT DO NOTHING", (table,))
            (last,) = database.execute(f"SELECT coalesce(max(n), 0) FROM {table}").fetchone()  # noqa: S608  a name
            database.execute("UPDATE counters SET value = ? WHERE name = ? AND value < ?", (last, table, last))
    database.execute("SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)").fetchone()
