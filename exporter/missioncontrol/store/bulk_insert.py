"""Inserting many rows with few statements.

The module of SQLite gives up the interpreter's lock in every step. Beside a busy thread, getting it back takes up to
five milliseconds, so that a step for every row can make a batch take ten times as long.
"""

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any, Final

_VALUES_MAX: Final = 1300  # 100 events: a statement keeps its values until it is used again


def insert(
    database: sqlite3.Connection,
    table: str,
    columns: str,
    rows: Sequence[Sequence[Any]],
    *,
    unless_there: bool = False,
) -> None:
    """Insert the rows, each with a value for every column named; `unless_there`: only those that are not yet."""
    verb = "INSERT OR IGNORE" if unless_there else "INSERT"
    width = columns.count(",") + 1
    values_max = min(_VALUES_MAX, database.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER))  # 999 before SQLite 3.32
    first, together = 0, values_max // width
    while first < len(rows):
        while together > len(rows) - first:
            together //= 2  # so that what is left takes few statements, and few of different lengths
        values = tuple(chain.from_iterable(rows[first : first + together]))
        database.execute(_statement(verb, table, columns, together, width), values)
        first += together


@cache
def _statement(verb: str, table: str, columns: str, rows: int, width: int) -> str:
    row = f"({', '.join('?' * width)})"
    return f"{verb} INTO {table} ({columns}) VALUES {', '.join([row] * rows)}"
