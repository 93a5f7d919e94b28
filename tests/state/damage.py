"""Ways in which a database file is found that nobody can read."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final


def _zeroed(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _zeroed_header(path: Path) -> None:
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])


def _zeroed_middle(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + bytes(len(content) - 4096))


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def _random(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def _random_middle(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + random.Random(2).randbytes(len(content) - 4096))


def _text(path: Path) -> None:
    path.write_bytes(b"this is no database\n" * 1000)


def _of_somebody_else(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        for table in ("sinks", "quarantine"):
            database.execute(f"CREATE TABLE {table} (theirs)")


DAMAGE: Final[dict[str, Callable[[Path], None]]] = {
    "zeroed": _zeroed,
    "zeroed header": _zeroed_header,
    "zeroed middle": _zeroed_middle,
    "truncated": _truncated,
    "random": _random,
    "random middle": _random_middle,
    "text": _text,
    "of somebody else": _of_somebody_else,
}
