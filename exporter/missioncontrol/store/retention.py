"""How long sessions are kept, and how much: the oldest go first, whole and for good."""

import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

_AT_ONCE: Final = 200
_ROOM: Final = 0.9
_GIGABYTE: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Retention:
    """A session goes when nothing of it happened or arrived for `days_max`, or when all take more than `bytes_max`."""

    days_max: int | None = 365
    bytes_max: int | None = 20 * _GIGABYTE

    @classmethod
    def of(cls, days: int, gigabytes: int) -> "Retention":
        """Return what people set: whole days and gigabytes, 0 for no limit."""
        return cls(days or None, gigabytes * _GIGABYTE or None)


def due(database: sqlite3.Connection, retention: Retention, now: datetime, index_bytes: int) -> list[str]:
    """Return the sessions to forget now, the oldest first, at most some hundred; ask again until there are none."""
    if retention.days_max is not None:
        end = (now - timedelta(days=retention.days_max)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        rows = database.execute(
            "SELECT id FROM sessions WHERE last_activity < ? AND coalesce(stored_at, registered) < ?"
            " ORDER BY last_activity LIMIT ?",
            (end, end, _AT_ONCE),
        ).fetchall()
        if rows:
            return [id for (id,) in rows]
    if retention.bytes_max is None:
        return []
    used = used_bytes(database) + index_bytes
    return _oldest(database, used - retention.bytes_max * _ROOM, used) if used > retention.bytes_max else []


def remove_set_aside(store: Path | None, retention: Retention, now: datetime) -> None:
    """Remove damaged stores that were set aside, once all that is in them is past its time."""
    if store is None or retention.days_max is None:
        return
    end = (now - timedelta(days=retention.days_max)).timestamp()
    for path in store.parent.glob(f"{store.name}.corrupt-*"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < end:
                path.unlink()


def used_bytes(database: sqlite3.Connection) -> int:
    """Return how much of the file holds something; what was deleted is used again before the file grows."""
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    (free,) = database.execute("PRAGMA freelist_count").fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    return int((pages - free) * size)


def _oldest(database: sqlite3.Connection, wanted: float, used: int) -> list[str]:
    (events,) = database.execute("SELECT coalesce(sum(count), 0) FROM sessions").fetchone()
    each = used / max(events, 1)
    found: list[str] = []
    for id, count in database.execute("SELECT id, count FROM sessions ORDER BY last_activity LIMIT ?", (_AT_ONCE,)):
        if wanted <= 0:
            break
        found.append(id)
        wanted -= count * each
    return found
