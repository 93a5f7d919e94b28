"""Inserting many rows with few statements.

The module of SQLite gives up the interpreter's lock in every step. Beside a busy thread, getting it back takes up to
five milliseconds, so that a step for every row can make a batch take ten times as long.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

_VALUES_MAX: Final = 900  # older builds of SQLite take 999


def insert(database: sqlite3.Connection, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert the rows, each with a value for every column named."""
    width = columns.count(",") + 1
    first, together = 0, _VALUES_MAX // width
    while first < len(rows):
        while together > len(rows) - first:
            together //= 2  # so that what is left takes few statements, and few of different lengths
        values = tuple(chain.from_iterable(rows[first : first + together]))
        database.execute(_statement(table, columns, together, width), values)
        first += together


@cache
def _statement(table: str, columns: str, rows: int, width: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * rows)}"  # noqa: S608  names only
