"""The receiver's database: its tables, its migrations, and what happens to a file that is no database any more."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from exporter.core.events.envelope import Envelope, decode
from exporter.errors import StateError
from exporter.missioncontrol.ingest import agent_attribution
from exporter.missioncontrol.live import feed
from exporter.missioncontrol.store import redactions

# Large pages hold several events of ordinary size each: twice as fast to write as 4 KB, measured with 1.8 KB events.
_PAGE_BYTES: Final = 16384
_WAL_PAGES: Final = 1024
_CACHE_KIBIBYTES: Final = 8000
_CHECKED_BYTES_MAX: Final = 32 << 20
_WAL_BYTES_KEPT: Final = 64 << 20

Statement: TypeAlias = str | Callable[[sqlite3.Connection], None]


def _fill_feed(database: sqlite3.Connection) -> None:
    """Take into the feed and the counts what was stored before there were any."""
    for n, report in database.execute("SELECT n, report FROM sessions").fetchall():
        rows = database.execute("SELECT n, body FROM events WHERE session = ? AND hidden = 0 ORDER BY place, n", (n,))
        feed.follow(database, n, ((row, found) for row, body in rows if isinstance(found := decode(body), Envelope)))
        redactions.report(database, n, (msgspec.json.decode(report) if report else {}).get("redactions") or {})


_FIRST: Final = (
    """CREATE TABLE sessions (
        n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task_id TEXT NOT NULL, registered TEXT NOT NULL,
        stored_at TEXT, count INTEGER NOT NULL, digest BLOB NOT NULL, last_event_id TEXT, summary TEXT NOT NULL,
        report TEXT, reported_at TEXT, masked INTEGER NOT NULL,
        revision INTEGER NOT NULL, state TEXT NOT NULL, last_activity TEXT NOT NULL, haystack TEXT NOT NULL)""",
    "CREATE INDEX sessions_by_activity ON sessions (last_activity, id)",
    """CREATE TABLE events (
        n INTEGER PRIMARY KEY, session INTEGER NOT NULL, hidden INTEGER NOT NULL, key INTEGER NOT NULL,
        id TEXT NOT NULL, type TEXT NOT NULL, timestamp TEXT NOT NULL, agent_id TEXT, sha256 BLOB NOT NULL,
        body BLOB NOT NULL)""",
    # By a hash of the id, not the id: a random place in a third of the pages, which halves the cost of a large session.
    "CREATE INDEX events_by_key ON events (session, key)",
    "CREATE INDEX events_in_order ON events (session)",
    """CREATE TABLE rewinds (
        n INTEGER PRIMARY KEY, session INTEGER NOT NULL, id TEXT NOT NULL, rewound_at TEXT NOT NULL)""",
    "CREATE INDEX rewinds_by_session ON rewinds (session)",
    "CREATE TABLE exporters (id TEXT PRIMARY KEY, report TEXT NOT NULL, reported_at TEXT NOT NULL)",
    "CREATE TABLE deleted_sessions (id TEXT PRIMARY KEY, deleted_at TEXT NOT NULL)",
)
# `place` is the order of the file, 0 in rows of before; between equals `n` decides, the order of arrival.
_PLACES: Final = (
    "ALTER TABLE events ADD COLUMN place INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE events ADD COLUMN parent INTEGER",
    "ALTER TABLE sessions ADD COLUMN chained INTEGER NOT NULL DEFAULT 1",
    "CREATE INDEX events_by_place ON events (session, place)",
    "DROP INDEX events_in_order",
    "CREATE TABLE orphans (session INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (session, key)) WITHOUT ROWID",
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
)
# By its identity the search index knows whether it belongs to this store.
_IDENTITY: Final = ("INSERT INTO counters (name, value) VALUES ('identity', abs(random() / 2))",)
_FEED: Final = (
    """CREATE TABLE notices (
        event INTEGER PRIMARY KEY, session INTEGER NOT NULL, category TEXT NOT NULL, type TEXT NOT NULL, status TEXT,
        timestamp TEXT NOT NULL, id TEXT NOT NULL, agent TEXT, text TEXT NOT NULL, request TEXT)""",
    "CREATE INDEX notices_in_time ON notices (timestamp, event)",
    "CREATE INDEX notices_by_session ON notices (session, request)",
    """CREATE TABLE redactions (
        session INTEGER NOT NULL, day TEXT NOT NULL, rule TEXT NOT NULL, source TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (session, day, rule, source)) WITHOUT ROWID""",
    _fill_feed,
)
_TOKENS: Final = (
    """CREATE TABLE tokens (
        name TEXT PRIMARY KEY, hash BLOB NOT NULL UNIQUE, scope TEXT NOT NULL, created TEXT NOT NULL, last_used TEXT,
        revoked TEXT)""",
    "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "INSERT INTO secrets (name, value) VALUES ('tokens', randomblob(32))",
)
_EXPIRED: Final = ("ALTER TABLE deleted_sessions ADD COLUMN reason TEXT NOT NULL DEFAULT 'deleted'",)
_PAYLOADS: Final = (
    "ALTER TABLE events ADD COLUMN cuts BLOB",
    "CREATE TABLE blobs (n INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, body BLOB NOT NULL)",
    """CREATE TABLE blob_uses (
        session INTEGER NOT NULL, blob INTEGER NOT NULL, PRIMARY KEY (session, blob)) WITHOUT ROWID""",
    "CREATE INDEX uses_of_blob ON blob_uses (blob)",
)
_FAMILIES: Final = (
    "CREATE TABLE families (session INTEGER PRIMARY KEY, state BLOB NOT NULL)",
    agent_attribution.fill,
)
_WORDS: Final = (feed.put_into_words,)
# No text in an index: a row that moves leaves copies in its pages, which `leftovers` clears in tables only.
_LEFTOVERS: Final = (
    "DROP INDEX IF EXISTS notices_by_session",
    "CREATE INDEX notices_by_session ON notices (session)",
    "CREATE INDEX IF NOT EXISTS notices_waiting ON notices (session) WHERE status = 'waiting'",
    """CREATE TABLE IF NOT EXISTS to_clear (
        tree TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (tree, row)) WITHOUT ROWID""",
)
# One entry per `PRAGMA user_version`; an entry is never changed once released.
_MIGRATIONS: Final[tuple[tuple[Statement, ...], ...]] = (
    _FIRST,
    _PLACES,
    _IDENTITY,
    _FEED,
    _TOKENS,
    _EXPIRED,
    _PAYLOADS,
    _FAMILIES,
    _WORDS,
    _LEFTOVERS,
)


def connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    """Open a connection that any one thread at a time may use; None is a database in memory."""
    database = sqlite3.connect(
        ":memory:" if path is None else str(path), isolation_level=None, check_same_thread=False, timeout=10
    )
    database.execute("PRAGMA trusted_schema = OFF")
    if read_only:
        database.execute("PRAGMA query_only = ON")
    return database


def open_database(path: Path | None, notice: Callable[[str], None]) -> sqlite3.Connection:
    """Open the database for writing, at the newest schema, durable at every commit.

    A file that is damaged is renamed to `.corrupt-N`, a new one is begun, and `notice` is told. A file of a newer
    version of this program, or a place that cannot be written, raises `StateError`.
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


def _prepare(database: sqlite3.Connection) -> sqlite3.Connection:
    try:
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA secure_delete = ON")
        database.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        database.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        database.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
        _migrate(database)
        database.execute("SELECT count(*) FROM (SELECT 1 FROM sessions LIMIT 1)").fetchone()
    except BaseException:
        database.close()
        raise
    return database


def _migrate(database: sqlite3.Connection) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version > len(_MIGRATIONS):
        raise StateError(
            f"The store was written by a newer version of this program (schema {version}).",
            hint="Install that version again, or choose another store.",
        )
    for number, statements in enumerate(_MIGRATIONS[version:], start=version + 1):
        database.execute("BEGIN IMMEDIATE")
        for statement in statements:
            if isinstance(statement, str):
                database.execute(statement)
            else:
                statement(database)
        database.execute(f"PRAGMA user_version = {number}")
        database.execute("COMMIT")
