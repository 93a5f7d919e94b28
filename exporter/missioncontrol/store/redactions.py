"""What was masked, counted by rule, session and day; never what it was."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Final

from exporter.missioncontrol.store.amounts import AMOUNT_MAX

REPORTED: Final = "reported"
"""Counts that an exporter told of: its word replaces its earlier word."""
HERE: Final = "here"
"""Counts of what was masked on arrival, because the client had not declared that it redacts."""


_COLUMNS: Final = {"rule": "redactions.rule", "session": "sessions.id", "day": "redactions.day"}


def report(database: sqlite3.Connection, session: int, days: Mapping[str, Mapping[str, int]]) -> None:
    """Replace what an exporter has told of a session."""
    database.execute("DELETE FROM redactions WHERE session = ? AND source = ?", (session, REPORTED))
    rows = ((session, day, rule, REPORTED, count) for day, rules in days.items() for rule, count in rules.items())
    database.executemany("INSERT OR REPLACE INTO redactions VALUES (?, ?, ?, ?, ?)", rows)


def add(database: sqlite3.Connection, session: int, masked: Iterable[tuple[str, str]]) -> None:
    """Count (day, rule) pairs that were masked here."""
    database.executemany(
        "INSERT INTO redactions VALUES (?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
        ((session, day, rule, HERE) for day, rule in masked),
    )


def rewrite(database: sqlite3.Connection) -> None:
    """Write all counts anew, so that no copy of a deleted row stays between them."""
    rows = database.execute("SELECT * FROM redactions").fetchall()
    database.execute("DELETE FROM redactions")
    database.executemany("INSERT INTO redactions VALUES (?, ?, ?, ?, ?)", rows)


def grouping(by: str) -> list[str] | None:
    """Return the names in `by` (rule, session, day, or several with commas), or None when it is none of that."""
    names = by.split(",")
    return names if set(names) <= set(_COLUMNS) and len(set(names)) == len(names) else None


def _sum(what: str) -> str:
    """Return SQL for a sum that cannot become too large for an integer, as `sum` can."""
    return f"cast(min(total(redactions.{what}), {float(AMOUNT_MAX)}) AS INTEGER)"


def redactions(
    database: sqlite3.Connection, names: list[str], *, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Return counts by what `grouping` gave, days newest first and else the most first; and where to go on."""
    columns = ", ".join(_COLUMNS[name] for name in names)
    order = ("redactions.day DESC, " if "day" in names else "") + f"4 DESC, {columns}"
    rows = database.execute(
        f"SELECT count(DISTINCT sessions.n), {_sum('count * (source = ?)')}, {_sum('count * (source = ?)')},"  # noqa: S608  constants only
        f" {_sum('count')}, {columns}"
        " FROM redactions JOIN sessions ON sessions.n = redactions.session"
        f" GROUP BY {columns} ORDER BY {order} LIMIT ? OFFSET ?",
        (REPORTED, HERE, limit + 1, offset),
    ).fetchall()
    page = [
        {**dict(zip(names, row[4:], strict=True)), "count": row[3], "reported": row[1], "here": row[2]}
        | ({} if "session" in names else {"sessions": row[0]})
        for row in rows[:limit]
    ]
    return page, offset + limit if len(rows) > limit else None
