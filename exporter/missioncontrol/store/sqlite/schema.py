"""The tables of a store in SQLite, the version of the file, and what happens to a file that is no database any more."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, get_args

from exporter.errors import StateError
from exporter.missioncontrol.store.port import Table
from exporter.missioncontrol.store.sqlite.database import SqliteDatabase, connect

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

_VERSION: Final = 10
"""The `PRAGMA user_version` of a file with these tables."""
# No text in an index: a row that moves leaves copies in its pages, which `erase.free_space` clears in tables only.
_SCHEMA: Final = (
    """CREATE TABLE sessions (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, registered TEXT NOT NULL,
        stored_at TEXT, count INTEGER NOT NULL, digest BLOB NOT NULL, last_event_id TEXT, summary TEXT NOT NULL,
        report TEXT, reported_at TEXT, masked INTEGER NOT NULL,
        revision INTEGER NOT NULL, state TEXT NOT NULL, last_activity TEXT NOT NULL, haystack TEXT NOT NULL,
        chained INTEGER NOT NULL DEFAULT 1)""",
    "CREATE INDEX sessions_by_activity ON sessions (last_activity, id)",
    # `place` is the order of the file; between equals `n` decides, the order of arrival.
    """CREATE TABLE events (
        n INTEGER PRIMARY KEY, session INTEGER NOT NULL, hidden INTEGER NOT NULL, key INTEGER NOT NULL,
        id TEXT NOT NULL, type TEXT NOT NULL, timestamp TEXT NOT NULL, agent_id TEXT, sha256 BLOB NOT NULL,
        body BLOB NOT NULL, place INTEGER NOT NULL DEFAULT 0, parent INTEGER, cuts BLOB)""",
    # By a hash of the id, not the id: a random place in a third of the pages, which halves the cost of a large session.
    "CREATE INDEX events_by_key ON events (session, key)",
    "CREATE INDEX events_by_place ON events (session, place)",
    "CREATE TABLE orphans (session INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (session, key)) WITHOUT ROWID",
    """CREATE TABLE rewinds (
        n INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL, rewound_at TEXT NOT NULL)""",
    "CREATE INDEX rewinds_by_session ON rewinds (session)",
    "CREATE TABLE exporters (id TEXT PRIMARY KEY, report TEXT NOT NULL, reported_at TEXT NOT NULL)",
    """CREATE TABLE deleted_sessions (
        id TEXT PRIMARY KEY, deleted_at TEXT NOT NULL, reason TEXT NOT NULL DEFAULT 'deleted')""",
    """CREATE TABLE notices (
        event INTEGER PRIMARY KEY, session INTEGER NOT NULL, category TEXT NOT NULL, type TEXT NOT NULL, status TEXT,
        timestamp TEXT NOT NULL, id TEXT NOT NULL, agent TEXT, text TEXT NOT NULL, request TEXT)""",
    "CREATE INDEX notices_in_time ON notices (timestamp, event)",
    "CREATE INDEX notices_by_session ON notices (session)",
    "CREATE INDEX notices_waiting ON notices (session) WHERE status = 'waiting'",
    """CREATE TABLE redactions (
        session INTEGER NOT NULL, day TEXT NOT NULL, rule TEXT NOT NULL, source TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (session, day, rule, source)) WITHOUT ROWID""",
    """CREATE TABLE tokens (
        name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, scope TEXT NOT NULL, created TEXT NOT NULL, last_used TEXT,
        revoked TEXT)""",
    "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "INSERT INTO secrets (name, value) VALUES ('tokens', randomblob(32))",
    "CREATE TABLE blobs (n INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, body BLOB NOT NULL)",
    """CREATE TABLE blob_uses (
        session INTEGER NOT NULL, blob INTEGER NOT NULL, PRIMARY KEY (session, blob)) WITHOUT ROWID""",
    "CREATE INDEX uses_of_blob ON blob_uses (blob)",
    "CREATE TABLE families (session INTEGER PRIMARY KEY, state BLOB NOT NULL)",
    # The row numbers that were allocated, and by `identity` the search index knows whether it belongs to this store.
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO counters (name, value) VALUES ('identity', abs(random() / 2))",
    """CREATE TABLE to_clear (
        tree TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (tree, row)) WITHOUT ROWID""",
    f"PRAGMA user_version = {_VERSION}",
)


def open_database(path: Path | None, notice: Callable[[str], None]) -> SqliteDatabase:
    """Open the database for writing, durable at every commit.

    A file that is damaged is renamed to `.corrupt-N`, a new one is begun, and `notice` is called with a text that says
    so. A file of another version of this program, or a path that cannot be written, raises `StateError`.
    """
    if path is None:
        return _prepare(connect(None))
    _create_private(path)
    try:
        _check_whole(path)
        return _prepare(connect(path))
    except sqlite3.OperationalError as error:
        raise StateError(
            f"The store {path} cannot be opened: {error}.", hint="Check the directory's permissions and free space."
        ) from error
    except sqlite3.DatabaseError as error:
        aside = _set_aside(path)
        notice(f"The store {path} is damaged ({error}); it was set aside as {aside.name} and a new one begun.")
        _create_private(path)
        return _prepare(connect(path))


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
        (pages,) = database.execute("PRAGMA page_count").fetchone()
        (page_bytes,) = database.execute("PRAGMA page_size").fetchone()
        has_log = path.with_name(path.name + "-wal").exists()
        if pages * page_bytes > size and not has_log:
            raise sqlite3.DatabaseError("the file was cut short")
        if size <= _CHECKED_BYTES_MAX:
            (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if verdict != "ok":
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


def _prepare(database: SqliteDatabase) -> SqliteDatabase:
    try:
        for name, value in _SETTINGS.items():
            database.execute(f"PRAGMA {name} = {value}")
        _create_tables(database)
        database.execute("SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _create_tables(database: SqliteDatabase) -> None:
    """Create the tables of an empty file, or raise `StateError` for a file of another version."""
    with database.transaction():
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, _VERSION):
            age = "a newer" if version > _VERSION else "an earlier"
            raise StateError(
                f"The store was written by {age} version of this program: schema {version}, not {_VERSION}.",
                hint="Install that version again, or choose another store; the file is unchanged.",
            )
        for statement in _SCHEMA if version == 0 else ():
            database.execute(statement)
        for table in get_args(Table):  # a file of before has counters of deleted rows only
            database.execute("INSERT INTO counters (name, value) VALUES (?, 0) ON CONFLICT DO NOTHING", (table,))
            (last,) = database.execute(f"SELECT coalesce(max(n), 0) FROM {table}").fetchone()  # noqa: S608  a name
            database.execute("UPDATE counters SET value = ? WHERE name = ? AND value < ?", (last, table, last))
