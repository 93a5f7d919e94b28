"""How long sessions are kept, and how many bytes: the oldest are deleted first, completely."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from exporter.missioncontrol.store.port import Database

_AT_ONCE: Final = 200
_FILLED: Final = 0.9
"""How full the store is afterwards, of `bytes_max`."""
_GIGABYTE: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Retention:
    """A session is deleted when it is inactive for `days_max`, or is the oldest while all exceed `bytes_max`."""

    days_max: int | None = 365
    bytes_max: int | None = 20 * _GIGABYTE

    @classmethod
    def of(cls, days: int, gigabytes: int) -> "Retention":
        """Return what people set: whole days and gigabytes, 0 for no limit."""
        return cls(days or None, gigabytes * _GIGABYTE or None)

    def oldest(self, now: datetime) -> datetime | None:
        """Return the time before which everything is deleted; None without a limit."""
        return None if self.days_max is None else now - timedelta(days=self.days_max)


def due(database: Database, retention: Retention, now: datetime, index_bytes: int) -> list[str]:
    """Return the sessions to forget now, the oldest first, at most some hundred; ask again until there are none."""
    if (oldest := retention.oldest(now)) is not None:
        end = oldest.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        rows = database.execute(
            "SELECT id FROM sessions WHERE last_activity < ? AND coalesce(stored_at, registered) < ?"
            " ORDER BY last_activity LIMIT ?",
            (end, end, _AT_ONCE),
        ).fetchall()
        if rows:
            return [id for (id,) in rows]
    if retention.bytes_max is None:
        return []
    used = database.used_bytes() + index_bytes
    return _oldest(database, used - retention.bytes_max * _FILLED, used) if used > retention.bytes_max else []


def _oldest(database: Database, wanted: float, used: int) -> list[str]:
    (events,) = database.execute("SELECT coalesce(sum(count), 0) FROM sessions").fetchone()
    each = used / max(int(events), 1)
    found: list[str] = []
    for id, count in database.execute("SELECT id, count FROM sessions ORDER BY last_activity LIMIT ?", (_AT_ONCE,)):
        if wanted <= 0:
            break
        found.append(id)
        wanted -= count * each
    return found
