"""Where the receiver keeps what it was sent: one thread writes in group commits, others read beside it.

A write is answered only after the transaction that holds it is committed and synced. Jobs that wait together share
one commit, and a job that fails takes nothing of another one with it. A job may be run twice, so it must do nothing
but read and write the database.
"""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from exporter.missioncontrol.store.sqlite.erase.pending import erase
from exporter.missioncontrol.store.sqlite.schema import connect, open_database

Result = TypeVar("Result")
Job = Callable[[sqlite3.Connection], Result]

_JOBS_PER_COMMIT_MAX: Final = 64
_READERS: Final = 2


@dataclass(frozen=True, slots=True)
class _Queued:
    job: Job[Any]
    answer: "Future[Any]"
    alone: bool = False


class Store:
    """The receiver's database. Open with a path or ":memory:"; `close` waits for what was already handed in."""

    def __init__(self, path: Path | str) -> None:
        self._path = None if str(path) == ":memory:" else Path(path)
        self.notices: list[str] = []
        self._database = open_database(self._path, self.notices.append)
        # For `erase` to look at. Closing it would end all locks that this process has on the database, after which any
        # other program that closes it last removes the log in use: so it is open until the database is closed.
        self._file = None if self._path is None else self._path.open("rb", buffering=0)
        self._queue: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="store-read")
        self._quick_reader = ThreadPoolExecutor(1, thread_name_prefix="store-read-quick")
        self._own = threading.local()
        self._reading: list[sqlite3.Connection] = []
        self._closed = False
        self._closing: list[Callable[[], None]] = []
        self.after_commit: Callable[[], None] = lambda: None
        self._writer = threading.Thread(target=self._write_forever, name="store-write", daemon=True)
        self._writer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> Path | None:
        """Where the database file is; None in memory."""
        return self._path

    def before_close(self, call: Callable[[], None]) -> None:
        """Call this once when the store is about to close, while it still answers."""
        self._closing.append(call)

    @property
    def size_bytes(self) -> int:
        """How large the database file is; 0 in memory."""
        return self._path.stat().st_size if self._path is not None else 0

    def submit(self, job: Job[Result]) -> "Future[Result]":
        """Hand in a write; the future answers after its commit, or with what the job raised."""
        answer: Future[Result] = Future()
        if self._closed:
            raise RuntimeError("the store is closed")
        self._queue.put(_Queued(job, answer))
        return answer

    async def write(self, job: Job[Result]) -> Result:
        """Run a write on the writer's thread and return its result once it is durable."""
        return await asyncio.wrap_future(self.submit(job))

    async def read(self, job: Job[Result], *, quick: bool = False) -> Result:
        """Run a read beside the writer; it sees every write that was answered before.

        `quick` is for what takes no time and must not wait for reads that do: whether somebody may come in.
        """
        if self._path is None:
            return await self.write(job)
        readers = self._quick_reader if quick else self._readers
        return await asyncio.get_running_loop().run_in_executor(readers, self._read, job)

    def do(self, job: Job[Result]) -> Result:
        """Run a write or a read and wait for it; not for use on an event loop."""
        return self.submit(job).result()

    def read_now(self, job: Job[Result]) -> Result:
        """Run a read from any thread but an event loop's, and wait for it."""
        return self.do(job) if self._path is None else self._read(job)

    def erase(self) -> "Future[bool]":
        """Clear what deleted sessions left in the file and the log; False while another program reads the store."""
        answer: Future[bool] = Future()
        self._queue.put(_Queued(lambda database: erase(database, self._file), answer, alone=True))
        return answer

    def close(self) -> None:
        """Finish what was handed in, then close every connection. A second call does nothing."""
        if self._closed:
            return
        for call in self._closing:
            call()
        self._closed = True
        self._queue.put(None)
        self._writer.join()
        self._readers.shutdown()
        self._quick_reader.shutdown()
        for database in self._reading:
            database.close()
        self._database.close()
        if self._file is not None:
            self._file.close()

    def _read(self, job: Job[Result]) -> Result:
        database: sqlite3.Connection | None = getattr(self._own, "database", None)
        if database is None:
            database = self._own.database = connect(self._path, read_only=True)
            self._reading.append(database)
        database.execute("BEGIN")
        try:
            return job(database)
        finally:
            database.execute("COMMIT")

    def _write_forever(self) -> None:
        while (first := self._queue.get()) is not None:
            jobs, ended = [first], False
            while len(jobs) < _JOBS_PER_COMMIT_MAX and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    ended = True
                    break
                jobs.append(following)
            self._commit(jobs)
            if ended:
                return

    def _commit(self, jobs: list[_Queued]) -> None:
        """Run the jobs in one transaction; when one fails, run each in its own.

        A savepoint per job would do the same, but SQLite then keeps a copy of every page that a job touches.
        """
        if any(queued.alone for queued in jobs):
            self._commit_apart(jobs)
            return
        try:
            results = self._transaction(jobs)
        except Exception as error:  # a task's edge: who asked gets the error, the writer lives on
            if len(jobs) == 1:
                _answer(jobs[0], None, error)
                return
            for queued in jobs:
                self._commit([queued])
            return
        for queued, result in zip(jobs, results, strict=True):
            _answer(queued, result, None)
        self.after_commit()

    def _commit_apart(self, jobs: list[_Queued]) -> None:
        """Run each job by itself, and what must be alone outside any transaction."""
        for queued in jobs:
            if not queued.alone:
                self._commit([queued])
                continue
            try:
                _answer(queued, queued.job(self._database), None)
            except Exception as error:  # a task's edge: who asked gets the error, the writer lives on
                _answer(queued, None, error)

    def _transaction(self, jobs: list[_Queued]) -> list[Any]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            results = [queued.job(self._database) for queued in jobs]
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise
        return results


def _answer(queued: _Queued, result: object, failure: Exception | None) -> None:
    if not queued.answer.set_running_or_notify_cancel():
        return
    if failure is None:
        queued.answer.set_result(result)
    else:
        queued.answer.set_exception(failure)
