"""The port's `Store` on PostgreSQL: each job is a transaction of its own, on one of a few connections.

The server makes commits that wait together one, so a job does not wait for others here. A job is run again when the
server says that another transaction did the same at once, and when the connection was lost: then nobody knows whether
its commit was done, and the ids of what it stores make the second time harmless.
"""

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from datetime import datetime
from functools import partial
from typing import Final

import psycopg

from exporter.core.notice import Level, Notice, NoticeName
from exporter.errors import StateError
from exporter.missioncontrol.live.notes import Heard, Notes
from exporter.missioncontrol.store.port import Job, Result, Store, StoreAway, StoreError
from exporter.missioncontrol.store.postgresql.connection import AGAIN, error_of, open_connection
from exporter.missioncontrol.store.postgresql.database import EventNumbers, PostgresDatabase
from exporter.missioncontrol.store.postgresql.notes import PostgresNotes
from exporter.missioncontrol.store.postgresql.scan import ScannedEvents

_WRITERS: Final = 6
_READERS: Final = 4
_TRIES: Final = 6
_AWAY_SECONDS: Final = 1.0
"""How long nobody tries to connect after it failed."""


class PostgresStore(Store):
    """Open with a URL. `Store` says what the methods promise; no method holds a connection between two jobs."""

    index_of = staticmethod(ScannedEvents)

    def __init__(self, url: str, *, tenant: str = "default", may_be_away: bool = False) -> None:
        """Connect. With `may_be_away` a server that cannot be reached is no error: jobs fail until it can be."""
        self.notices, self.after_commit, self.before_close = [], [], []
        self.path = None
        self.url, self.tenant = url, tenant
        self._epoch = 0
        self._numbers = EventNumbers()
        self._idle: list[PostgresDatabase] = []
        self._used = 0
        self._lock = threading.Condition()
        self._away_until, self._away_reason = 0.0, ""
        self._closed = self._ended = False
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="store-write")
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")
        self._quick_reader = ThreadPoolExecutor(1, thread_name_prefix="store-read-quick")
        try:
            self._give_back(self._take())
        except StoreError as error:
            if not may_be_away or not isinstance(error, StoreAway):
                self.close()
                raise StateError(
                    f"PostgreSQL cannot be reached: {error}.", hint="Check --store and the server."
                ) from error
            text = f"PostgreSQL cannot be reached ({error}); uploads are answered 503 until it can be"
            self.notices.append(Notice(NoticeName.STORE_AWAY, Level.WARNING, text))
        except BaseException:
            self.close()
            raise

    @property
    def epoch(self) -> str:  # type: ignore[override]  # it is only read
        """The epoch that the newest connection found."""
        return f"{self._epoch:x}"

    def submit(self, job: Job[Result], /) -> "Future[Result]":
        """Run a write on a writer's thread."""
        if self._closed:
            raise RuntimeError("the store is closed")
        return self._writers.submit(copy_context().run, self._write, job)

    async def read(self, job: Job[Result], /, *, quick: bool = False) -> Result:
        """Run a read on a reader's thread, in the caller's context."""
        readers = self._quick_reader if quick else self._readers
        return await asyncio.get_running_loop().run_in_executor(
            readers, copy_context().run, partial(self._run, job, writes=False)
        )

    def read_now(self, job: Job[Result], /) -> Result:
        """Run a read on this thread."""
        return self._run(job, writes=False)

    def erase(self) -> "Future[bool]":
        """Answer at once: what is deleted was deleted with its session."""
        answer: Future[bool] = Future()
        answer.set_result(True)
        return answer

    def open_notes(self, heard: Heard, /) -> Notes:
        """Begin to tell and to hear through the database."""
        return PostgresNotes(partial(self._run, writes=True), partial(open_connection, self.url, self.tenant), heard)

    def size_bytes(self) -> int:
        """Return how much the tables take on the server's disk, in all tenants."""
        return self._run(
            lambda database: int(
                database.execute(
                    "SELECT coalesce(sum(pg_table_size(oid) + pg_indexes_size(oid)), 0)::bigint FROM pg_class"
                    " WHERE relnamespace = 'mission_control'::regnamespace AND relkind = 'r'"
                ).fetchone()[0]
            ),
            writes=False,
        )

    def clean(self, before: datetime) -> None:
        """Drop the partitions of events in which no session is left."""
        self._run(lambda database: database.execute("SELECT drop_empty_partitions()").fetchone(), writes=True)

    def close(self) -> None:
        """Finish the queued writes, then close every connection."""
        if self._closed:
            return
        for call in self.before_close:
            call()
        self._closed = True
        for threads in (self._writers, self._readers, self._quick_reader):
            threads.shutdown()
        with self._lock:
            self._ended = True
            self._lock.wait_for(lambda: not self._used)
        self._close_idle()

    def _write(self, job: Job[Result]) -> Result:
        result = self._run(job, writes=True)
        for call in self.after_commit:
            call()
        return result

    def _run(self, job: Job[Result], *, writes: bool) -> Result:
        """Run a job until it neither collides nor loses its connection, but not for ever."""
        for tries_left in reversed(range(_TRIES)):
            try:
                with self._connection() as database, database.transaction(writes=writes):
                    return job(database)
            except AGAIN as error:
                if not tries_left:
                    raise error_of(error) from error
            except psycopg.Error as error:
                found = error_of(error)
                if not isinstance(found, StoreAway) or not tries_left:
                    raise found from error
                self._close_idle()  # connections of a server that went away are all lost
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _connection(self) -> Iterator[PostgresDatabase]:
        try:
            database = self._take()
        except StateError as error:  # found at a later connection; at the first one it ends the program
            raise StoreAway(f"{error.message} {error.hint}") from error
        try:
            yield database
        finally:
            self._give_back(database)

    def _take(self) -> PostgresDatabase:
        with self._lock:
            if self._ended:
                raise RuntimeError("the store is closed")
            if self._idle:
                self._used += 1
                return self._idle.pop()
            if time.monotonic() < self._away_until:
                raise StoreAway(self._away_reason)
        try:
            opened = open_connection(self.url, self.tenant)
        except StoreAway as error:
            with self._lock:
                self._away_until, self._away_reason = time.monotonic() + _AWAY_SECONDS, str(error)
            raise
        self._epoch = opened.tenant.epoch
        with self._lock:
            self._used += 1
        return PostgresDatabase(opened, self._numbers)

    def _give_back(self, database: PostgresDatabase) -> None:
        with self._lock:
            self._used -= 1
            self._lock.notify_all()
            if database.is_usable():
                self._idle.append(database)
                return
        database.opened.raw.close()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for database in idle:
            database.opened.raw.close()
