"""The audit log of a tenant: who read, searched, exported, shared or deleted what; entries are only ever added."""

from typing import Any, Final

from exporter.missioncontrol.store.port import Database

_COLUMNS: Final = ("n", "at", "who", "action", "session", "detail")


def add(
    database: Database, now: str, who: str, action: str, session: str | None = None, detail: str | None = None
) -> None:
    """Add an entry, in the transaction of what it says."""
    database.insert("audit", "at, who, action, session, detail", [(now, who, action, session, detail)])


def entries(
    database: Database, *, limit: int, below: int | None = None, session: str | None = None
) -> tuple[list[dict[str, Any]], int | None]:
    """Return entries, the newest first, and the number below which the next page begins."""
    condition, values = ("", ()) if session is None else (" AND session = ?", (session,))
    rows = database.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM audit WHERE n < ?{condition} ORDER BY n DESC LIMIT ?",  # noqa: S608  constants only
        ((1 << 62) if below is None else below, *values, limit + 1),
    ).fetchall()
    page = [dict(zip(_COLUMNS, row, strict=True)) for row in rows[:limit]]
    return page, rows[limit - 1][0] if len(rows) > limit else None
