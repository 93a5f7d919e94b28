"""The port's `Store` on a SQLite file: one thread writes in group commits, others read beside it.

Writes that wait together share one commit. When one of them fails, each is run again in a transaction of its own.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from exporter.missioncontrol.store.port import DEFAULT_NUMBER, Job, Result, Store
from exporter.missioncontrol.store.sqlite.database import SqliteDatabase, connect, engine_errors, open_database
from exporter.missioncontrol.store.sqlite.erase import erase

_JOBS_PER_COMMIT_MAX: Final = 64
_READERS: Final = 2


def tenant_path(store: Path, number: int) -> Path:
    """Return where the file of a tenant is."""
    return store.with_name(f"{store.stem}-tenant-{number}{store.suffix}")


def files_of(store: Path) -> list[Path]:
    """Return the files that a store may have: itself, its index, and what SQLite keeps beside each."""
    index = store.with_name(f"{store.stem}-search{store.suffix}")
    return [path.with_name(path.name + suffix) for path in (store, index) for suffix in ("", "-wal", "-shm")]


@dataclass(frozen=True, slots=True)
class _Queued:
    job: Callable[[SqliteDatabase], Any]
    answer: "Future[Any]"
    alone: bool = False
    """Whether the job must run outside of any transaction."""


class SqliteStore(Store):
    """Open with a path or ":memory:". `Store` says what the methods promise."""

    def __init__(self, path: Path | str) -> None:
        self.notices, self.after_commit, self.before_close = [], [], []
        self.path = None if str(path) == ":memory:" else Path(path)
        self._database = open_database(self.path, self.notices.append)
        self.epoch = f"{self._database.counter('epoch'):x}"
        # For `erase` to look at. Closing it would end all locks that this process has on the database, after which any
        # other program that closes it last removes the log in use: so it is open until the database is closed.
        self._file = None if self.path is None else self.path.open("rb", buffering=0)
        self._queue: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")
        self._quick_reader = ThreadPoolExecutor(1, thread_name_prefix="store-read-quick")
        self._own = threading.local()
        self._reading: list[SqliteDatabase] = []
        self._tenants: dict[int, SqliteStore] = {}
        self._reads = 0
        self._closed = self._ended = False
        self._state = threading.Condition()
        self._writer = threading.Thread(target=self._write_forever, name="store-write", daemon=True)
        self._writer.start()

    def size_bytes(self) -> int:
        """Return how large the database file is; 0 in memory."""
        return self.path.stat().st_size if self.path is not None else 0

    def submit(self, job: Job[Result], /) -> "Future[Result]":
        """Queue a write."""
        return self._put(job)

    async def read(self, job: Job[Result], /, *, quick: bool = False) -> Result:
        """Run a read on a reader's thread, in the caller's context; in memory there is one connection, the writer's."""
        if self.path is None:
            return await self.write(job)
        readers = self._quick_reader if quick else self._readers
        return await asyncio.get_running_loop().run_in_executor(readers, copy_context().run, self._read, job)

    def read_now(self, job: Job[Result], /) -> Result:
        """Run a read on this thread."""
        return self.do(job) if self.path is None else self._read(job)

    def erase(self) -> "Future[bool]":
        """Remove the copies of deleted text from the file and the log, between two transactions."""
        return self._put(lambda database: erase(database, self._file), alone=True)

    def tenant(self, number: int, /) -> Store:
        """Return the store of a tenant, which is a file of its own beside this one."""
        if number == DEFAULT_NUMBER:
            return self
        with self._state:
            found = self._tenants.get(number)
            if found is None:
                if self._closed:
                    raise RuntimeError("the store is closed")
                path = ":memory:" if self.path is None else tenant_path(self.path, number)
                found = self._tenants[number] = SqliteStore(path)
            return found

    def add_tenant(self, name: str, now: str, /) -> int:
        """Note a tenant; its file is made when it is opened."""

        def add(database: SqliteDatabase) -> int:
            database.execute("INSERT INTO tenants (name, created) VALUES (?, ?)", (name, now))
            return int(database.execute("SELECT n FROM tenants WHERE name = ?", (name,)).fetchone()[0])

        return self._put(add).result()

    def remove_tenant(self, number: int, /) -> None:
        """Delete the tenant's tokens, so that a receiver that has its file open lets nobody in, and the file."""
        store = self.tenant(number)
        store.do(lambda database: (database.execute("DELETE FROM tokens"), database.execute("DELETE FROM shares")))
        self._put(lambda database: database.execute("DELETE FROM tenants WHERE n = ?", (number,))).result()
        store.close()
        with self._state:
            self._tenants.pop(number, None)
        for path in files_of(store.path) if store.path is not None else ():
            path.unlink(missing_ok=True)

    def clean(self, before: datetime) -> None:
        """Remove damaged files that were set aside and not written since then, and old entries of the audit log."""
        end = before.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.do(
            lambda database: database.execute(
                "DELETE FROM audit WHERE at < min(?, strftime('%Y-%m-%d', 'now', '-30 days'))", (end,)
            )
        )
        for path in self.path.parent.glob(f"{self.path.name}.corrupt-*") if self.path is not None else ():
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < before.timestamp():
                    path.unlink()

    def close(self) -> None:
        """Finish the queued writes and the reads, then close every connection.

        A connection that is closed while a thread is inside of it ends the process.
        """
        if self._closed:
            return
        for call in self.before_close:
            call()
        with self._state:
            self._closed = True
            self._queue.put(None)
            tenants = list(self._tenants.values())
        for store in tenants:
            store.close()
        self._writer.join()
        self._readers.shutdown()
        self._quick_reader.shutdown()
        with self._state:
            self._ended = True
            self._state.wait_for(lambda: not self._reads)
        for database in self._reading:
            database.close()
        self._database.close()
        if self._file is not None:
            self._file.close()

    def _put(self, job: Callable[[SqliteDatabase], Result], *, alone: bool = False) -> "Future[Result]":
        answer: Future[Result] = Future()
        with self._state:  # behind the end of the queue nothing is answered
            if self._closed:
                raise RuntimeError("the store is closed")
            self._queue.put(_Queued(job, answer, alone))
        return answer

    @contextmanager
    def _held_open(self) -> Iterator[None]:
        with self._state:
            if self._ended:
                raise RuntimeError("the store is closed")
            self._reads += 1
        try:
            yield
        finally:
            with self._state:
                self._reads -= 1
                self._state.notify_all()

    def _read(self, job: Job[Result]) -> Result:
        database: SqliteDatabase | None = getattr(self._own, "database", None)
        with self._held_open(), engine_errors():
            if database is None:
                database = self._own.database = connect(self.path, read_only=True)
                self._reading.append(database)
            with database.transaction(writes=False):
                return job(database)

    def _write_forever(self) -> None:
        ended = False
        while not ended:
            taken = [self._queue.get()]
            while taken[-1] is not None and len(taken) < _JOBS_PER_COMMIT_MAX and not self._queue.empty():
                taken.append(self._queue.get())
            ended = taken[-1] is None
            if jobs := [queued for queued in taken if queued is not None]:
                self._commit(jobs)

    def _commit(self, jobs: list[_Queued]) -> None:
        """Run the jobs in one transaction; when one fails, run each in its own.

        A savepoint per job would do the same, but SQLite then keeps a copy of every page that a job touches.
        """
        is_alone = any(queued.alone for queued in jobs)
        if is_alone and len(jobs) > 1:
            self._commit_each(jobs)
            return
        try:
            with engine_errors(), nullcontext() if is_alone else self._database.transaction():
                results = [queued.job(self._database) for queued in jobs]
        except Exception as error:  # a task's edge: the caller gets the error, the writer lives on
            if len(jobs) > 1:
                self._commit_each(jobs)
            else:
                _answer(jobs[0], None, error)
            return
        for queued, result in zip(jobs, results, strict=True):
            _answer(queued, result, None)
        for call in self.after_commit if not is_alone else ():
            call()

    def _commit_each(self, jobs: list[_Queued]) -> None:
        for queued in jobs:
            self._commit([queued])


def _answer(queued: _Queued, result: object, failure: Exception | None) -> None:
    if not queued.answer.set_running_or_notify_cancel():
        return
    if failure is None:
        queued.answer.set_result(result)
    else:
        queued.answer.set_exception(failure)
