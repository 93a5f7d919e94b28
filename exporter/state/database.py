"""Opens a SQLite file of the state directory: private, with its tables, and set aside if it cannot be read."""

import os
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from exporter.errors import StateError

_DAMAGE: Final = (
    *("malformed", "not a database", "file is encrypted", "disk image"),
    *("Could not decode", "already exists", "no such table", "no such column"),
)
_TABLE: Final = re.compile(r"CREATE TABLE (\w+)")

# SQLite quotes a damaged schema in its message, which may then not be valid UTF-8.
DATABASE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)


def is_damage(error: Exception) -> bool:
    """Tell whether an error means that the content is lost, and not that the disk is full or busy."""
    text = str(error)
    return isinstance(error, UnicodeDecodeError) or any(word in text for word in _DAMAGE)


def set_aside(path: Path) -> Path | None:
    """Rename a database that cannot be read, with its journals; return its new name, None if it did not exist."""
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


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a database, and its `PRAGMA user_version`, which changes with them."""

    version: int
    script: str
    synchronous: Literal["NORMAL", "FULL"]

    @property
    def tables(self) -> frozenset[str]:
        """The names of its tables."""
        return frozenset(_TABLE.findall(self.script))


def open_database(path: Path, schema: Schema) -> tuple[sqlite3.Connection, Path | None]:
    """Open a database, or create it.

    A file that is no database is set aside; its new name is the second result. A database of another version of this
    program, or one that cannot be opened now (disk full, in use), stays as it is and raises `StateError`.
    """
    try:
        try:
            return _open(path, schema), None
        except DATABASE_ERRORS as error:
            if not is_damage(error):
                raise
        aside = set_aside(path)
        return _open(path, schema), aside
    except (*DATABASE_ERRORS, OSError) as error:
        raise StateError(
            f"{path} cannot be opened: {error}", hint="check its file system, or set state_dir to a local disk"
        ) from error


def _refuse_newer(path: Path, schema: Schema) -> None:
    """Raise `StateError` for a database of a newer version, before anything of it is changed."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if version > schema.version and tables & schema.tables:
        raise StateError(
            f"{path} was written by a newer version of this program: schema {version}, not {schema.version}",
            hint="install that version again, or restore a backup of this one; the file is unchanged",
        )


def _open(path: Path, schema: Schema) -> sqlite3.Connection:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    _refuse_newer(path, schema)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
    try:
        connection.execute("PRAGMA journal_mode=WAL").fetchone()
        connection.execute(f"PRAGMA synchronous={schema.synchronous}")
        connection.execute("PRAGMA foreign_keys=ON")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("malformed")
        if 0 < version < schema.version:
            raise StateError(
                f"{path} was written by an earlier version of this program: schema {version}, not {schema.version}",
                hint="install that version again, or move the file away; it is unchanged",
            )
        if not version:
            connection.executescript(f"BEGIN IMMEDIATE; {schema.script}; PRAGMA user_version={schema.version}; COMMIT;")
        tables = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if missing := schema.tables - tables:
            raise sqlite3.DatabaseError(f"no such table: {min(missing)}")
    except BaseException:
        connection.close()
        raise
    return connection
