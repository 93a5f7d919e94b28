"""Opening one of our SQLite files: private, migrated, and set aside when it cannot be read."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from exporter.errors import StateError

_DAMAGE: Final = (
    *("malformed", "not a database", "file is encrypted", "disk image"),
    *("Could not decode", "already exists", "no such table", "no such column", "newer than this exporter"),
)


# SQLite quotes a damaged schema in its message, which then is no text either.
DATABASE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)


def is_damage(error: Exception) -> bool:
    """Tell whether an error means that the file's content is lost to us, and not that the disk is full or busy."""
    text = str(error)
    return isinstance(error, UnicodeDecodeError) or any(word in text for word in _DAMAGE)


def set_aside(path: Path) -> Path | None:
    """Rename a database that cannot be read, with its companions; return its new name, None if it was not there."""
    moved = None
    stamp = time.strftime("%Y%m%dT%H%M%S")
    for suffix in ("", "-wal", "-shm", "-journal"):
        part = path.with_name(path.name + suffix)
        if part.exists():
            number = 0
            while (target := path.with_name(f"{path.name}.corrupt-{stamp}-{number}{suffix}")).exists():
                number += 1
            part.rename(target)
            moved = moved or target
    return moved


def open_database(
    path: Path, migrations: Sequence[str], *, synchronous: Literal["NORMAL", "FULL"]
) -> tuple[sqlite3.Connection, Path | None]:
    """Open (or make) a database at its newest version.

    A file that is no database, or comes from a newer exporter, is set aside; its new name is the second result. A
    healthy one that cannot be opened now (disk full, another program at it) stays: that is a `StateError`.
    """
    try:
        try:
            return _open(path, migrations, synchronous), None
        except DATABASE_ERRORS as error:
            if not is_damage(error):
                raise
        aside = set_aside(path)
        return _open(path, migrations, synchronous), aside
    except (*DATABASE_ERRORS, OSError) as error:
        raise StateError(
            f"{path} cannot be opened: {error}", hint="check its file system, or set state_dir to a local disk"
        ) from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _tables_made_by(migrations: Sequence[str]) -> set[str]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(";".join(migrations))
        return _tables(connection)


def _open(path: Path, migrations: Sequence[str], synchronous: str) -> sqlite3.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("PRAGMA foreign_keys=ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > len(migrations):
            raise sqlite3.DatabaseError(f"version {version} is newer than this exporter's {len(migrations)}")
        if version and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("malformed")
        for number, script in enumerate(migrations[version:], version + 1):
            connection.executescript(f"BEGIN IMMEDIATE; {script}; PRAGMA user_version={number}; COMMIT;")
        if missing := _tables_made_by(migrations) - _tables(connection):
            raise sqlite3.DatabaseError(f"no such table: {sorted(missing)[0]}")
    except BaseException:
        connection.close()
        raise
    return connection
