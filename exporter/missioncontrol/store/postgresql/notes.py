"""Notes between receivers through a table that is not logged, and NOTIFY to wake those who wait.

A note is told after the commit of what it tells, together with others that wait: NOTIFY in the transaction of the
events would halve the commits. Where LISTEN is not to be had, behind a pooler, the table is looked at every second.
Numbers do not follow the order of commits, so rows of the last seconds are looked at again, and known ones left out.
"""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import psycopg

from exporter.errors import StateError
from exporter.missioncontrol.live.notes import Heard, Note, decode_notes, encode_notes
from exporter.missioncontrol.store.port import Database, Job, StoreError
from exporter.missioncontrol.store.postgresql.connection import Opened

CHANNEL: Final = "mission_control_notes"
KEPT_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.9
_BETWEEN_SECONDS: Final = 0.04
_AGAIN_SECONDS: Final = 5
_CLEAN_SECONDS: Final = 10.0
_WAITING_MAX: Final = 10_000
_AT_ONCE_MAX, _AT_ONCE_BYTES_MAX = 500, 4 << 20
_log: Final = logging.getLogger(__name__)


class PostgresNotes:
    """A thread tells, another one hears; both go on when the server was away."""

    def __init__(self, run: Callable[[Job[Any]], Any], connect: Callable[[], Opened], heard: Heard) -> None:
        """`run` runs a write of the store, `connect` opens a connection of its own for LISTEN."""
        self._run, self._connect, self._heard = run, connect, heard
        self._origin = secrets.token_bytes(8)
        self._waiting: deque[Note] = deque(maxlen=_WAITING_MAX)
        self._told = threading.Event()
        self._closed = threading.Event()
        self._cleaned = 0.0
        self._low = 0
        self._known: set[int] = set()
        self._threads = [
            threading.Thread(target=self._go_on(work), name=f"notes-{name}", daemon=True)
            for name, work in (("tell", self._tell_forever), ("hear", self._hear_forever))
        ]
        for thread in self._threads:
            thread.start()

    def tell(self, note: Note, /) -> None:
        """Queue a note; of too many the oldest are lost."""
        self._waiting.append(note)
        self._told.set()

    def close(self) -> None:
        """End both threads."""
        self._closed.set()
        self._told.set()
        for thread in self._threads:
            thread.join()

    def _go_on(self, work: Callable[[], None]) -> Callable[[], None]:
        def forever() -> None:
            while not self._closed.is_set():
                try:
                    work()
                except (StoreError, StateError, psycopg.Error) as error:
                    _log.debug("notes wait for the store", extra={"reason": str(error)})
                    self._closed.wait(_LOOK_SECONDS)

        return forever

    def _tell_forever(self) -> None:
        while not self._closed.is_set():
            self._told.wait(_LOOK_SECONDS)
            self._told.clear()
            notes, size = list[Note](), 0
            while self._waiting and len(notes) < _AT_ONCE_MAX and size < _AT_ONCE_BYTES_MAX:
                notes.append(self._waiting.popleft())
                size += sum(map(len, notes[-1].events))
            if self._waiting:
                self._told.set()
            if notes:
                self._run(self._telling(list(dict.fromkeys(notes))))
                self._closed.wait(_BETWEEN_SECONDS)

    def _telling(self, notes: list[Note]) -> Job[None]:
        cleans = time.monotonic() - self._cleaned > _CLEAN_SECONDS
        self._cleaned = time.monotonic() if cleans else self._cleaned

        def tell(database: Database) -> None:
            database.execute("SET LOCAL synchronous_commit = off")
            database.insert("notes", "origin, note", [(self._origin, encode_notes(notes))])
            if cleans:
                database.execute(f"DELETE FROM notes WHERE told_at < now() - interval '{KEPT_SECONDS} s'")  # noqa: S608
            database.execute(f"NOTIFY {CHANNEL}")

        return tell

    def _hear_forever(self) -> None:
        opened = self._connect()
        with opened.raw as raw:
            if not opened.behind_pooler:
                raw.execute(f"LISTEN {CHANNEL}")
            while not self._closed.is_set():
                for content in self._run(self._look):
                    for note in decode_notes(content):
                        self._heard(note)
                if opened.behind_pooler:
                    self._closed.wait(_LOOK_SECONDS)
                else:
                    with suppress(StopIteration):
                        next(raw.notifies(timeout=_LOOK_SECONDS, stop_after=1))

    def _look(self, database: Database) -> list[bytes]:
        rows = database.execute(
            f"SELECT n, told_at < now() - interval '{_AGAIN_SECONDS} s' FROM notes"  # noqa: S608  a number
            " WHERE n > ? AND origin <> ? ORDER BY n",
            (self._low, self._origin),
        ).fetchall()
        new = [n for n, _ in rows if n not in self._known]
        self._known = {n for n, is_old in rows if not is_old}
        self._low = max((n for n, is_old in rows if is_old), default=self._low)
        if not new:
            return []
        condition, values = database.among("n", new)
        found = database.execute(f"SELECT note FROM notes WHERE {condition} ORDER BY n", values)  # noqa: S608  a mark
        return [note for (note,) in found]
