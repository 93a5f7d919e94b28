"""Full-text search: an index in a file of its own, filled behind the store, and lost without harm.

The index holds words only (FTS5 without content and positions); texts are read from the store when something is
found. It remembers in the same transaction how far it has read, so a crash repeats nothing and misses nothing. A
session that is forgotten is taken out and the index merged, so that no word of it stays in the file.
"""

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from exporter.missioncontrol.payloads import whole
from exporter.missioncontrol.schema import connect, truncate_log
from exporter.missioncontrol.store import Store
from exporter.missioncontrol.texts import FORMAT, text_of

Result = TypeVar("Result")
Row = tuple[int, int, bytes]
_ROWS_MAX, _BYTES_MAX = 2000, 4 << 20
_PAUSE_SECONDS: Final = 0.04
_BURST_SECONDS: Final = 3.0
_RETRY_SECONDS: Final = 5.0
_OPEN_SECONDS: Final = 5.0
_log: Final = logging.getLogger(__name__)

_SCHEMA: Final = (
    "CREATE VIRTUAL TABLE words USING fts5(text, content='', detail=none, columnsize=0,"
    " tokenize='unicode61 remove_diacritics 0')",
    "INSERT INTO words (words, rank) VALUES ('hashsize', 8388608)",
    "CREATE TABLE indexed (until INTEGER NOT NULL, store INTEGER NOT NULL, format INTEGER NOT NULL)",
    "CREATE TABLE forgotten (session INTEGER PRIMARY KEY)",
)
_INSERT: Final = "INSERT INTO words (rowid, text) VALUES (?, ?)"
_REMOVE: Final = "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)"


class Search:
    """The index of one store. A thread fills it, from the first time that it is woken until the store closes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.path and store.path.with_name(f"{store.path.stem}-search{store.path.suffix}")
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._lock = threading.Lock()
        self._requests: queue.SimpleQueue[tuple[Sequence[int], Future[None]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._last_wake = 0.0
        self._until = -1
        self._reached = threading.Condition()
        self._memory: sqlite3.Connection | None = None
        store.after_commit = self.wake
        store.before_close(self.close)

    def wake(self) -> None:
        """Look for new events soon; at once when no more come, else within some seconds."""
        self._last_wake = time.monotonic()
        if self._thread is None and not self._closed:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="search-index", daemon=True)
                    self._thread.start()
        self._wake.set()

    def forget(self, sessions: Sequence[int]) -> "Future[None]":
        """Take sessions out for good; they must still be in the store until the future answers."""
        answer: Future[None] = Future()
        self._requests.put((sessions, answer))
        self.wake()
        return answer

    def catch_up(self, until: int, seconds: float) -> bool:
        """Wait until events up to this number can be found; tell whether they can."""
        self.wake()
        self._hurry.set()
        with self._reached:
            if self._until < 0:  # it is being opened, which a busy machine may take its time for
                self._reached.wait_for(lambda: self._until >= 0 or self._closed, _OPEN_SECONDS)
            return self._reached.wait_for(lambda: self._until >= until or self._closed, seconds)

    def read(self, job: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a query on the index from any thread."""
        if self._path is None:
            with self._lock:
                if self._memory is None:
                    raise sqlite3.OperationalError("the search index is not open yet")
                return job(self._memory)
        database = connect(self._path, read_only=True)
        try:
            return job(database)
        finally:
            database.close()

    @property
    def size_bytes(self) -> int:
        """How large the index file is; 0 in memory or before there is one."""
        return self._path.stat().st_size if self._path is not None and self._path.exists() else 0

    def close(self) -> None:
        """End the thread. A second call does nothing."""
        with self._lock:
            self._closed = True
            thread = self._thread
        self._wake.set()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while not self._closed:
            try:
                self._follow()
            except sqlite3.Error as error:  # the store goes on without its index, which is tried again
                _log.warning("the search index failed", extra={"reason": str(error)})
                self._wake.clear()
                self._wake.wait(_RETRY_SECONDS)
        while not self._requests.empty():
            self._requests.get()[1].cancel()
        with self._reached:
            self._reached.notify_all()

    def _follow(self) -> None:
        index = self._open()
        try:
            while not self._closed:
                self._wake.clear()
                while not self._requests.empty():
                    self._forget(index, *self._requests.get())
                if self._step(index) == 0:
                    self._wake.wait()
                    self._let_the_burst_pass()
        finally:
            if self._path is not None:
                index.close()

    def _let_the_burst_pass(self) -> None:
        """Leave the processor to who stores, while it goes on; what has come by then is soon caught up with."""
        end = time.monotonic() + _BURST_SECONDS
        while not self._closed and self._requests.empty() and not self._hurry.is_set():
            now = time.monotonic()
            if now >= end or now - self._last_wake >= _PAUSE_SECONDS:
                break
            self._hurry.wait(_PAUSE_SECONDS / 2)
        self._hurry.clear()

    def _open(self) -> sqlite3.Connection:
        identity = self._store.read_now(
            lambda database: database.execute("SELECT value FROM counters WHERE name = 'identity'").fetchone()[0]
        )
        try:
            index = _open_index(self._path, identity)
        except sqlite3.DatabaseError:
            _remove(self._path)
            index = _open_index(self._path, identity)
        if self._path is None:
            self._memory = index
        (until,) = index.execute("SELECT until FROM indexed").fetchone()
        self._set_until(until)
        return index

    def _set_until(self, until: int) -> None:
        with self._reached:
            self._until = until
            self._reached.notify_all()

    def _step(self, index: sqlite3.Connection) -> int:
        """Index the next events; return how many they were."""
        rows = self._store.read_now(lambda database: _unread(database, self._until))
        if not rows:
            return 0
        skipped = {session for (session,) in index.execute("SELECT session FROM forgotten")}
        texts = [(n, text_of(body)) for n, session, body in rows if session not in skipped]
        with self._lock:
            index.execute("BEGIN IMMEDIATE")
            index.executemany(_INSERT, texts)
            index.execute("UPDATE indexed SET until = ?", (rows[-1][0],))
            index.execute("COMMIT")
        self._set_until(rows[-1][0])
        return len(rows)

    def _forget(self, index: sqlite3.Connection, sessions: Sequence[int], answer: "Future[None]") -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            with self._lock:
                for session in sessions:
                    self._take_out(index, session)
                index.execute("INSERT INTO words (words) VALUES ('optimize')")
                truncate_log(index)
        except sqlite3.Error as error:
            answer.set_exception(error)
            raise
        answer.set_result(None)

    def _take_out(self, index: sqlite3.Connection, session: int) -> None:
        if index.execute("SELECT 1 FROM forgotten WHERE session = ?", (session,)).fetchone():
            return
        index.execute("BEGIN IMMEDIATE")
        last = 0
        while rows := self._store.read_now(
            lambda database, after=last: _indexed_of(database, session, after, self._until)  # type: ignore[misc]
        ):
            index.executemany(_REMOVE, ((n, text_of(body)) for n, _, body in rows))
            last = rows[-1][0]
        index.execute("INSERT INTO forgotten (session) VALUES (?)", (session,))
        index.execute("COMMIT")


def _unread(database: sqlite3.Connection, until: int) -> list[Row]:
    rows = database.execute(
        "SELECT n, session, body, cuts FROM events WHERE n > ? ORDER BY n LIMIT ?", (until, _ROWS_MAX)
    )
    return _some(database, rows)


def _indexed_of(database: sqlite3.Connection, session: int, after: int, until: int) -> list[Row]:
    # The plus keeps SQLite from walking through all events by their number.
    rows = database.execute(
        "SELECT n, session, body, cuts FROM events WHERE session = ? AND +n > ? AND +n <= ? ORDER BY n LIMIT ?",
        (session, after, until, _ROWS_MAX),
    )
    return _some(database, rows)


def _some(database: sqlite3.Connection, rows: Iterable[tuple[int, int, bytes, bytes | None]]) -> list[Row]:
    """Return the rows with their events as delivered, until they are many bytes."""
    found: list[Row] = []
    size = 0
    for n, session, body, cuts in rows:
        found.append((n, session, whole(database, body, cuts)))
        size += len(found[-1][2])
        if size > _BYTES_MAX:
            break
    return found


def _open_index(path: Path | None, identity: int) -> sqlite3.Connection:
    if path is not None:
        path.touch(mode=0o600)
    index = connect(path)
    try:
        for name, value in {
            "journal_mode": "WAL",
            "synchronous": "NORMAL",
            "secure_delete": "ON",
            "cache_size": "-4000",
            "journal_size_limit": str(16 << 20),
        }.items():
            index.execute(f"PRAGMA {name} = {value}")
        if not index.execute("SELECT 1 FROM sqlite_master WHERE name = 'indexed'").fetchone():
            index.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                index.execute(statement)
            index.execute("INSERT INTO indexed VALUES (0, ?, ?)", (identity, FORMAT))
            index.execute("COMMIT")
        if index.execute("SELECT store, format FROM indexed").fetchone() != (identity, FORMAT):
            raise sqlite3.DatabaseError("the index is of another store or format")
    except BaseException:
        index.close()
        raise
    return index


def _remove(path: Path | None) -> None:
    for suffix in ("", "-wal", "-shm"):
        if path is not None:
            with suppress(FileNotFoundError):
                path.with_name(path.name + suffix).unlink()
