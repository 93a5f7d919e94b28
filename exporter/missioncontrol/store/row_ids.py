"""Row numbers that are never given out twice, although rows are deleted: the index remembers how far it has read."""

import sqlite3
from typing import Literal

Table = Literal["events", "sessions"]


def next_number(database: sqlite3.Connection, table: Table) -> int:
    """Return a number above all that the table has or had."""
    (number,) = database.execute(
        f"SELECT 1 + max(coalesce((SELECT max(n) FROM {table}), 0),"  # noqa: S608  one of two names
        " coalesce((SELECT value FROM counters WHERE name = ?), 0))",
        (table,),
    ).fetchone()
    return int(number)


def last_number(database: sqlite3.Connection, table: Table) -> int:
    """Return the highest number that the table has now, 0 when it is empty."""
    (number,) = database.execute(f"SELECT coalesce(max(n), 0) FROM {table}").fetchone()  # noqa: S608  one of two names
    return int(number)


def raise_floor(database: sqlite3.Connection, table: Table) -> None:
    """Remember the highest number, because rows are about to be deleted."""
    database.execute(
        "INSERT INTO counters (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (table, next_number(database, table) - 1),
    )
