"""How often each rule redacted something, by session and day; never what it was."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from exporter.missioncontrol.store.amounts import AMOUNT_MAX
from exporter.missioncontrol.store.port import Database

REPORTED: Final = "reported"
"""Counts that an exporter reported: each report replaces the one before it."""
HERE: Final = "here"
"""Counts of what was redacted on arrival, because the client had not declared that it redacts."""


_COLUMNS: Final = {"rule": "redactions.rule", "session": "sessions.id", "day": "redactions.day"}
# A sum of integers may be too large for one.
_OF_SOURCE: Final = "sum(CASE WHEN redactions.source = ? THEN redactions.count * 1.0 ELSE 0.0 END)"
_SUM: Final = "sum(redactions.count * 1.0)"
_IN_ALL: Final = f"CASE WHEN {_SUM} > {AMOUNT_MAX} THEN {AMOUNT_MAX} ELSE {_SUM} END"


def report(database: Database, session: int, days: Mapping[str, Mapping[str, int]]) -> None:
    """Replace what an exporter has reported of a session."""
    database.execute("DELETE FROM redactions WHERE session = ? AND source = ?", (session, REPORTED))
    rows = [(session, day, rule, REPORTED, count) for day, rules in days.items() for rule, count in rules.items()]
    database.insert("redactions", "session, day, rule, source, count", rows)


def add(database: Database, session: int, masked: Iterable[tuple[str, str]]) -> None:
    """Count (day, rule) pairs that were redacted here."""
    database.executemany(
        "INSERT INTO redactions (session, day, rule, source, count) VALUES (?, ?, ?, ?, 1)"
        " ON CONFLICT (session, day, rule, source) DO UPDATE SET count = redactions.count + 1",
        ((session, day, rule, HERE) for day, rule in masked),
    )


def grouping(by: str) -> list[str] | None:
    """Return the names in `by` (rule, session, day, or several with commas), or None when it is invalid."""
    names = by.split(",")
    return names if set(names) <= set(_COLUMNS) and len(set(names)) == len(names) else None


def _amount(total: float) -> int:
    return min(int(total), AMOUNT_MAX)


def redactions(
    database: Database, names: list[str], *, limit: int, offset: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Return a page of counts by these columns, newest day or highest count first, and the offset of the next page."""
    columns = ", ".join(_COLUMNS[name] for name in names)
    order = ("redactions.day DESC, " if "day" in names else "") + f"4 DESC, {columns}"
    rows = database.execute(
        f"SELECT count(DISTINCT sessions.n), {_OF_SOURCE}, {_OF_SOURCE}, {_IN_ALL}, {columns}"  # noqa: S608  constants only
        " FROM redactions JOIN sessions ON sessions.n = redactions.session"
        f" GROUP BY {columns} ORDER BY {order} LIMIT ? OFFSET ?",
        (REPORTED, HERE, limit + 1, offset),
    ).fetchall()
    page = [
        {**dict(zip(names, row[4:], strict=True)), "count": _amount(row[3])}
        | {"reported": _amount(row[1]), "here": _amount(row[2])}
        | ({} if "session" in names else {"sessions": row[0]})
        for row in rows[:limit]
    ]
    return page, offset + limit if len(rows) > limit else None
