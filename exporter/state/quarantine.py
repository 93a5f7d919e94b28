"""Events that could not be sent, stored on this machine with the reason until they are replayed, dropped or expired.

Their original bytes are stored because the session file may be rewritten. They are as secret as that file: the mode is
0600, and they are shown only after redaction.
"""

import hashlib
import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from exporter.core.delivery.segment import Unsendable
from exporter.state.database import DATABASE_ERRORS, Schema, is_damage, open_database, set_aside

# A rewritten file may have another event of the same size at the same offset: the hash distinguishes them.
SCHEMA: Final = Schema(
    2,
    """
    CREATE TABLE quarantine (
        n INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, event TEXT, offset INTEGER NOT NULL,
        size INTEGER NOT NULL, sink TEXT NOT NULL, reason TEXT NOT NULL, detail TEXT NOT NULL, since REAL NOT NULL,
        raw BLOB NOT NULL, hash BLOB NOT NULL DEFAULT x''
    );
    CREATE UNIQUE INDEX quarantine_once ON quarantine (session, sink, offset, size, reason, hash)
    """,
    "FULL",
)
_ENTRIES: Final = "SELECT n, session, event, offset, size, nullif(sink, ''), reason, detail, since, raw FROM quarantine"
_BYTES: Final = "SELECT coalesce(sum(length(raw)), 0) FROM quarantine"


class QuarantineFullError(Exception):
    """The quarantine has reached its limit; the session must stop, because no event may be lost."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One quarantined event; `sink` is None if it is for no sink. `raw` is complete if `len(raw) == size`."""

    number: int
    session: str
    event: str | None
    offset: int
    size: int
    sink: str | None
    reason: str
    detail: str
    since: float
    raw: bytes = field(repr=False)


class Quarantine:
    """The quarantine of one state directory. When `add` has returned, the events are on disk (synchronous FULL)."""

    def __init__(self, path: Path, *, bytes_max: int, days_max: int) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._days_max = days_max
        self._connection, self.set_aside = open_database(path, SCHEMA)
        self._bytes = self._measure()

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _run(self, sql: str, values: Sequence[object] = ()) -> tuple[list[Any], int]:
        """Return the rows and how many were changed."""
        try:
            cursor = self._connection.execute(sql, values)
            return cursor.fetchall(), cursor.rowcount
        except DATABASE_ERRORS as error:
            if is_damage(error):  # the damaged file is set aside, and the new one is empty
                self._connection.close()
                self.set_aside = set_aside(self._path)
                self._connection, _ = open_database(self._path, SCHEMA)
                self._bytes = 0
                raise sqlite3.DatabaseError("malformed, set aside") from error
            raise

    def _measure(self) -> int:
        rows, _ = self._run(_BYTES)
        return int(rows[0][0])

    def add(self, session: str, sink: str | None, what: list[Unsendable], *, detail: str = "") -> int:
        """Store events durably, each once; return how many are new.

        Raises `QuarantineFullError` if the limit is reached and `sqlite3.Error` if the disk fails; in both cases
        nothing was stored and the caller must not move a mark past these events.
        """
        try:
            return self._add(session, sink, what, detail)
        except QuarantineFullError:
            if not self.expire():
                raise
            return self._add(session, sink, what, detail)

    def _add(self, session: str, sink: str | None, what: list[Unsendable], detail: str) -> int:
        now, added, added_bytes = time.time(), 0, 0
        try:
            self._run("BEGIN IMMEDIATE")
            for one in what:
                digest = hashlib.blake2b(one.raw, digest_size=16).digest()
                _, new = self._run(
                    "INSERT OR IGNORE INTO quarantine"
                    " (session, event, offset, size, sink, reason, detail, since, raw, hash)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (session, one.id, one.offset, one.size, sink or "", one.reason, detail, now, one.raw, digest),
                )
                added += new
                added_bytes += len(one.raw) if new else 0
            if added and self._bytes + added_bytes > self._bytes_max:
                raise QuarantineFullError
            self._run("COMMIT")
        except (sqlite3.Error, QuarantineFullError):
            self._connection.rollback()
            raise
        self._bytes += added_bytes
        return added

    def expire(self) -> int:
        """Delete the events older than the limit; return how many."""
        oldest = time.time() - self._days_max * 86_400
        _, gone = self._run("DELETE FROM quarantine WHERE since < ?", (oldest,))
        self._bytes = self._measure()
        return gone

    def count(self, *, session: str | None = None, sink: str | None = None) -> int:
        """Count the events in quarantine, of a session and for a sink (those for no sink count for every sink)."""
        rows, _ = self._run(
            "SELECT count(*) FROM quarantine WHERE (? IS NULL OR session = ?) AND (? IS NULL OR sink IN ('', ?))",
            (session, session, sink, sink),
        )
        return int(rows[0][0])

    def by_reason(self) -> dict[str, int]:
        """Count the events in quarantine by reason, the most frequent first."""
        rows, _ = self._run("SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY 2 DESC, 1")
        return {str(reason): int(count) for reason, count in rows}

    def ids(self, session: str, sink: str) -> set[str]:
        """Return the ids of a session's quarantined events that this sink lacks."""
        rows, _ = self._run(
            "SELECT event FROM quarantine WHERE session = ? AND sink IN ('', ?) AND event IS NOT NULL", (session, sink)
        )
        return {str(row[0]) for row in rows}

    def entries(self, *, numbers: list[int] | None = None) -> list[Quarantined]:
        """Return the events, oldest first; only those with the given numbers, if given."""
        if numbers is None:
            rows, _ = self._run(f"{_ENTRIES} ORDER BY n")
        else:
            found = (self._run(f"{_ENTRIES} WHERE n = ?", (number,))[0] for number in sorted(set(numbers)))
            rows = [row for some in found for row in some]
        return [Quarantined(*row) for row in rows]

    def entries_without_sink(self) -> list[Quarantined]:
        """Return the events that are for no sink, without their bytes."""
        rows, _ = self._run(
            "SELECT n, session, event, offset, size, NULL, reason, detail, since, x'' FROM quarantine WHERE sink = ''"
        )
        return [Quarantined(*row) for row in rows]

    def drop(self, numbers: list[int]) -> int:
        """Delete the events with these numbers; return how many there were."""
        gone = sum(self._run("DELETE FROM quarantine WHERE n = ?", (number,))[1] for number in numbers)
        self.expire()
        return gone
