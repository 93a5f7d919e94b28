"""Keeps the full-text index of a store up to date, and reads it.

A thread fills the index, or a process of its own while it is far behind: finding words keeps the interpreter busy, for
which the writer would have to wait. The process reads the store's file and writes the index's, both as the program
itself does, and ends when no new events arrive, when its parent has ended, or when it is terminated. Nothing depends
on how it ends.

Texts are read from the store when something is found. A session that is forgotten is removed and the index merged, so
that no word of it stays in the file.
"""

import logging
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from exporter.missioncontrol.search.fts5 import open_index, open_reader, path_beside
from exporter.missioncontrol.search.index import Row, TextIndex, read_on, rows_of
from exporter.missioncontrol.store.port import Job, Result, Store, StoreError
from exporter.missioncontrol.store.queries import identity, newest_event
from exporter.missioncontrol.store.sqlite.database import connect, engine_errors

_PAUSE_SECONDS: Final = 0.04
_BURST_SECONDS: Final = 3.0
_RETRY_SECONDS: Final = 5.0
_OPEN_SECONDS: Final = 5.0
_APART_EVENTS: Final = 5_000
_APART_AGAIN_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05
_NICE: Final = 5
_QUIET_SECONDS: Final = 0.5
_ENTRY: Final = "import sys; sys.path.insert(0, sys.argv[1]); from {name} import main; main(sys.argv[2], sys.argv[3])"
_log: Final = logging.getLogger(__name__)


class SearchIndex:
    """The index of one store. A thread fills it, from the first time that it is woken until the store closes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = store.path and path_beside(store.path)
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._lock = threading.Lock()
        self._requests: queue.SimpleQueue[tuple[Sequence[int], Future[bool]]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._last_wake = 0.0
        self._until = -1
        self._apart_after = 0.0
        self._reached = threading.Condition()
        self._memory: TextIndex | None = None
        store.after_commit.append(self.wake)
        store.before_close.append(self.close)

    def wake(self) -> None:
        """Index new events soon: as soon as no more arrive, at the latest within some seconds."""
        self._last_wake = time.monotonic()
        if self._thread is None and not self._closed:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="search-index", daemon=True)
                    self._thread.start()
        self._wake.set()

    def forget(self, sessions: Sequence[int]) -> "Future[bool]":
        """Remove sessions; they must be in the store until the future answers.

        It answers False while another program reads the index, so that words stay in its log: then forget `[]` later.
        """
        answer: Future[bool] = Future()
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

    def read(self, job: Callable[[TextIndex], Result]) -> Result:
        """Run a query on the index from any thread."""
        if self._path is None:
            with self._lock:
                if self._memory is None:
                    raise StoreError("the search index is not open yet")
                return job(self._memory)
        with closing(open_reader(self._path)) as index:
            return job(index)

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
            except StoreError as error:  # the store goes on without its index, which is tried again
                _log.warning("the search index failed", extra={"reason": str(error)})
                self._wake.clear()
                self._wake.wait(_RETRY_SECONDS)
        while not self._requests.empty():
            self._requests.get()[1].cancel()
        self._set_until(self._until)

    def _follow(self) -> None:
        index = self._open()
        try:
            while not self._closed:
                self._wake.clear()
                while not self._requests.empty():
                    self._forget(index, *self._requests.get())
                if self._is_far_behind():
                    self._fill_apart(index)
                elif not self._step(index):
                    self._wake.wait()
                    self._let_the_burst_pass()
        finally:
            if self._path is not None:
                index.close()

    def _let_the_burst_pass(self) -> None:
        """Leave the processor to the writer while events arrive; the index catches up soon afterwards."""
        end = time.monotonic() + _BURST_SECONDS
        while not self._closed and self._requests.empty() and not self._hurry.is_set():
            now = time.monotonic()
            if now >= end or now - self._last_wake >= _PAUSE_SECONDS:
                break
            self._hurry.wait(_PAUSE_SECONDS / 2)
        self._hurry.clear()

    def _open(self) -> TextIndex:
        index = open_index(self._path, self._store.read_now(identity))
        if self._path is None:
            self._memory = index
        self._set_until(index.reached())
        return index

    def _set_until(self, until: int) -> None:
        with self._reached:
            self._until = until
            self._reached.notify_all()

    def _step(self, index: TextIndex) -> bool:
        """Index the next events; tell whether there were any."""
        texts = read_on(index, self._store.read_now)
        if texts is None:
            return False
        with self._lock:
            index.put(texts)
        self._set_until(index.reached())
        return True

    def _is_far_behind(self) -> bool:
        if self._path is None or time.monotonic() < self._apart_after:
            return False
        return self._store.read_now(newest_event) - self._until > _APART_EVENTS

    def _fill_apart(self, index: TextIndex) -> None:
        """Let another process fill the index until it is done, or a session must be removed."""
        assert self._store.path is not None
        try:
            filling = _start_process(self._store.path.resolve())
        except OSError as error:
            self._apart_failed(str(error))
            return
        try:
            while filling.poll() is None and not self._closed and self._requests.empty():
                time.sleep(_LOOK_SECONDS)
                self._set_until(index.reached())
            if filling.returncode:
                self._apart_failed(f"it ended with {filling.returncode}")
        finally:
            filling.terminate()
            filling.wait()
        self._set_until(index.reached())

    def _apart_failed(self, reason: str) -> None:
        _log.warning("the search index is filled in this process", extra={"reason": reason})
        self._apart_after = time.monotonic() + _APART_AGAIN_SECONDS

    def _forget(self, index: TextIndex, sessions: Sequence[int], answer: "Future[bool]") -> None:
        if not answer.set_running_or_notify_cancel():
            return
        try:
            with self._lock:
                for session in sessions:
                    index.remove(session, partial(self._rows_of, session))
                is_cut = index.cut_log()
        except StoreError as error:
            answer.set_exception(error)
            raise
        answer.set_result(is_cut)

    def _rows_of(self, session: int, after: int, until: int) -> list[Row]:
        return self._store.read_now(lambda database: rows_of(database, session, after, until))


def _start_process(store: Path) -> "subprocess.Popen[bytes]":
    """Start the process for the index of this store; raises `OSError` where none can be started."""
    root = str(Path(__file__).parents[3])
    command = [sys.executable, "-I", "-c", _ENTRY.format(name=__name__), root, str(store), str(os.getpid())]
    nothing = subprocess.DEVNULL
    # In a group of its own, Ctrl-C does not reach it; in the same session its priority is one beside ours.
    return subprocess.Popen(  # noqa: S603  ourselves
        command, stdin=nothing, stdout=nothing, stderr=nothing, cwd=store.parent, process_group=0
    )


def main(store: str, parent: str) -> None:
    """Fill the index until no new events arrive for a moment."""
    path = Path(store)
    if hasattr(os, "nice"):
        os.nice(_NICE)  # storing comes first
    with closing(connect(path, read_only=True)) as database:

        def read(job: Job[Result]) -> Result:
            with engine_errors(), database.transaction(writes=False):
                return job(database)

        with closing(open_index(path_beside(path), read(identity))) as index:
            last = time.monotonic()
            while os.getppid() == int(parent):
                if (texts := read_on(index, read)) is not None:
                    index.put(texts)
                    last = time.monotonic()
                elif time.monotonic() - last > _QUIET_SECONDS:
                    return
                else:
                    time.sleep(_LOOK_SECONDS)
