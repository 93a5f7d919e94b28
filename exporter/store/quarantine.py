"""Events that could not be sent, kept on this machine with the reason, until they are replayed, dropped or old.

Their original bytes are kept because the session file may be rewritten. They are as secret as the file they come
from: 0600, and nobody shows them unless the redactor has passed them.
"""

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporter.core.segment import Unsendable
from exporter.store.database import open_database

_MIGRATIONS: Final = (
    """
    CREATE TABLE quarantine (
        n INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, event TEXT, offset INTEGER NOT NULL,
        size INTEGER NOT NULL, sink TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, since REAL NOT NULL,
        raw BLOB NOT NULL
    );
    CREATE UNIQUE INDEX quarantine_once ON quarantine (session, sink, offset, size, reason)
    """,
)
STUB_BYTES: Final = 65_536


class QuarantineFullError(Exception):
    """The quarantine has reached its cap; the session must stop, because nothing may be dropped."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One quarantined event; `sink` is None when no sink may have it. `raw` is whole when `len(raw) == size`."""

    number: int
    session: str
    event: str | None
    offset: int
    size: int
    sink: str | None
    reason: str
    detail: str
    since: float
    raw: bytes


class Quarantine:
    """The quarantine of one state directory. What `add` returned from is on disk (synchronous FULL)."""

    def __init__(self, path: Path, *, bytes_max: int, days_max: int) -> None:
        self._connection, self.set_aside = open_database(path, _MIGRATIONS, synchronous="FULL")
        self._bytes_max = bytes_max
        self._days_max = days_max
        self._bytes = int(
            self._connection.execute("SELECT coalesce(sum(length(raw)), 0) FROM quarantine").fetchone()[0]
        )

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def add(self, session: str, sink: str | None, what: list[Unsendable], *, detail: str = "") -> int:
        """Keep events durably; what is there already is not kept twice. Return how many are new.

        Raises `QuarantineFullError` when the cap is reached and `sqlite3.Error` when the disk refuses; in both cases
        nothing was kept and the caller must not move a mark past these events.
        """
        incoming = sum(len(one.raw) for one in what)
        if self._bytes + incoming > self._bytes_max:
            self.expire()
            if self._bytes + incoming > self._bytes_max:
                raise QuarantineFullError
        now = time.time()
        rows = [(session, one.id, one.offset, one.size, sink or "", one.reason, detail, now, one.raw) for one in what]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            before = self._connection.total_changes
            self._connection.executemany(
                "INSERT OR IGNORE INTO quarantine (session, event, offset, size, sink, reason, detail, since, raw)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
            added = self._connection.total_changes - before
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            if self._connection.in_transaction:
                self._connection.rollback()
            raise
        self._bytes += incoming if added else 0
        return added

    def expire(self) -> int:
        """Forget what is older than the limit; return how many."""
        oldest = time.time() - self._days_max * 86_400
        gone = self._connection.execute("DELETE FROM quarantine WHERE since < ?", (oldest,)).rowcount
        self._bytes = int(
            self._connection.execute("SELECT coalesce(sum(length(raw)), 0) FROM quarantine").fetchone()[0]
        )
        return gone

    def count(self, *, session: str | None = None, sink: str | None = None) -> int:
        """Count the events in quarantine, of a session and for a sink (those for no sink count for each)."""
        row = self._connection.execute(
            "SELECT count(*) FROM quarantine WHERE (? IS NULL OR session = ?) AND (? IS NULL OR sink IN ('', ?))",
            (session, session, sink, sink),
        ).fetchone()
        return int(row[0])

    def ids(self, session: str, sink: str) -> set[str]:
        """Return the ids of a session's quarantined events that this sink lacks."""
        rows = self._connection.execute(
            "SELECT event FROM quarantine WHERE session = ? AND sink IN ('', ?) AND event IS NOT NULL", (session, sink)
        )
        return {str(row[0]) for row in rows}

    def entries(self, *, numbers: list[int] | None = None) -> list[Quarantined]:
        """Return what is kept, oldest first; only the given numbers when there are any."""
        rows = self._connection.execute(
            "SELECT n, session, event, offset, size, sink, reason, detail, since, raw FROM quarantine ORDER BY n"
        ).fetchall()
        wanted = None if numbers is None else set(numbers)
        return [
            Quarantined(n, session, event, offset, size, sink or None, reason, detail, since, raw)
            for n, session, event, offset, size, sink, reason, detail, since, raw in rows
            if wanted is None or n in wanted
        ]

    def entries_without_sink(self) -> list[Quarantined]:
        """Return what no sink may have, without the bytes."""
        rows = self._connection.execute(
            "SELECT n, session, event, offset, size, NULL, reason, detail, since, x'' FROM quarantine WHERE sink = ''"
        ).fetchall()
        return [Quarantined(*row) for row in rows]

    def drop(self, numbers: list[int]) -> int:
        """Forget these; return how many there were."""
        gone = 0
        for number in numbers:
            gone += self._connection.execute("DELETE FROM quarantine WHERE n = ?", (number,)).rowcount
        self.expire()
        return gone
