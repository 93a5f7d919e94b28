"""The SQLite files of a state directory as text: version, columns and rows, without what another run has otherwise."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

_STATE: Final = ("marks.db", "quarantine.db")
_RECEIVER: Final = "mission_control.db"
_OTHERWISE: Final = frozenset({"device", "inode"})
"""Columns that say where a file is on this machine's disk."""


def dump_state(state: Path) -> Iterator[tuple[str, bytes]]:
    """Yield what marks and quarantine hold, and the columns of the receiver's store, each with its name."""
    for name in _STATE:
        if (state / name).exists():
            yield name, dump(state / name)
    if (state / _RECEIVER).exists():
        yield f"{_RECEIVER}-columns", columns(state / _RECEIVER)


def dump(path: Path) -> bytes:
    """Return version, columns and sorted rows, without numbers that only order rows: sessions come in any order."""
    with closing(_open(path)) as database:
        told: dict[str, Any] = {"user_version": database.execute("PRAGMA user_version").fetchone()[0], "tables": {}}
        for table in _tables(database):
            names = list(database.execute(f'PRAGMA table_info("{table}")'))
            shown = [name for _, name, kind, _, _, key in names if not _orders_only(name, kind, key)]
            rows = database.execute(f'SELECT {", ".join(_quoted(one) for one in shown)} FROM "{table}"').fetchall()
            written = sorted(json.dumps([_plain(name, value) for name, value in zip(shown, row, strict=True)])
                             for row in rows)  # fmt: skip
            told["tables"][table] = {"columns": [row[1:3] for row in names], "rows": written}
    return json.dumps(told, indent=1).encode()


def columns(path: Path) -> bytes:
    """Return version, tables and columns."""
    with closing(_open(path)) as database:
        told: dict[str, Any] = {"user_version": database.execute("PRAGMA user_version").fetchone()[0]}
        for table in _tables(database):
            told[table] = [row[1:3] for row in database.execute(f'PRAGMA table_info("{table}")')]
    return json.dumps(told, indent=1).encode()


def pin_store(path: Path) -> None:
    """Give a new store of a receiver the identity that it has in every run; it draws one otherwise."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE counters SET value = 24589 WHERE name = 'identity'")
        database.commit()


def settle_files(state: Path, sessions: Path) -> None:
    """Let the marks of a copied state directory know the copied session files, as if these were the same files."""
    with closing(sqlite3.connect(state / _STATE[0])) as database:
        for directory in sessions.iterdir():
            if (file := directory / "events.jsonl").exists():
                told = file.stat()
                database.execute(
                    "UPDATE marks SET device = ?, inode = ? WHERE session = ? AND inode IS NOT NULL",
                    (told.st_dev, told.st_ino, directory.name),
                )
        database.commit()


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    database.text_factory = lambda text: text.decode("utf-8", "backslashreplace")
    return database


def _tables(database: sqlite3.Connection) -> list[str]:
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")
    return [row[0] for row in found if not row[0].startswith("sqlite_")]


def _orders_only(name: str, kind: str, key: int) -> bool:
    return name == "n" and kind == "INTEGER" and bool(key)


def _quoted(name: str) -> str:
    return f'"{name}"'


def _plain(name: str, value: object) -> object:
    if name in _OTHERWISE and value is not None:
        return "there"
    return value.hex() if isinstance(value, bytes) else value
