"""Watches directories by polling: for network file systems, and beyond the kernel's limits.

A separate thread polls, because one `stat` on a network file system may block forever and other files must not wait.
A round that takes long is followed by a longer pause, so that polling takes at most a twentieth of the time.
"""

import asyncio
import errno
import os
import threading
import time
from dataclasses import dataclass
from typing import Final, TypeAlias

from exporter.sources.files.watch import Changed, Deliver, Report, Watcher

PAUSE_PER_COST: Final = 20.0
PAUSE_SECONDS_MAX: Final = 30.0

Signature: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class DirectoryListing:
    """A directory as it was seen: its identity, and the signature (inode, size, time of change) of each entry."""

    identity: tuple[int, int]
    entries: dict[str, Signature]


NOT_SEEN: Final = DirectoryListing((0, 0), {})


class PollingWatcher(Watcher):
    """A `Watcher` that works on every machine; a change is reported after `poll_seconds` or a little later."""

    def __init__(self, poll_seconds: float, names: frozenset[str] | None = None) -> None:
        self._poll_seconds = poll_seconds
        self._names = names
        self._seen: dict[str, DirectoryListing] = {}
        self._guard = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, directory: str) -> bool:
        """See `Watcher.add`; return False only if the directory is gone, or after `close`."""
        try:
            seen = look(directory, self._names)
        except OSError as error:
            if is_gone(error):
                self.remove(directory)
                return False
            seen = NOT_SEEN
        with self._guard:
            known = self._seen.get(directory)
            if known is None or known.identity != seen.identity:
                self._seen[directory] = seen
        self._ensure_thread()
        return not self._closed.is_set()

    def remove(self, directory: str) -> None:
        """See `Watcher.remove`."""
        with self._guard:
            self._seen.pop(directory, None)

    def start(self, deliver: Deliver) -> None:
        """See `Watcher.start`."""
        super().start(deliver)
        self._ensure_thread()

    def close(self) -> None:
        """See `Watcher.close`; does not wait for a call that hangs."""
        self._deliver = None
        self._closed.set()

    def _ensure_thread(self) -> None:
        """Start the thread once there are directories to poll and a loop to report to."""
        if self._thread is None and self._seen and self._loop is not None and not self._closed.is_set():
            self._thread = threading.Thread(target=self._run, args=(self._loop,), name="polling", daemon=True)
            self._thread.start()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        pause = self._poll_seconds
        while not self._closed.wait(pause):
            began = time.monotonic()
            reports = self._round()
            pause = pause_after(time.monotonic() - began, self._poll_seconds)
            if reports:
                try:
                    loop.call_soon_threadsafe(self._report, reports)
                except RuntimeError:  # the loop was closed before this watcher
                    return

    def _round(self) -> list[Report]:
        with self._guard:
            directories = list(self._seen)
        reports: list[Report] = []
        for directory in directories:
            if self._closed.is_set():
                break
            reports.extend(self._changes(directory))
        return reports

    def _changes(self, directory: str) -> list[Report]:
        with self._guard:
            before = self._seen.get(directory)
        if before is None:
            return []
        try:
            now: DirectoryListing | None = look(directory, self._names)
        except OSError as error:
            if not is_gone(error):
                return []
            now = None
        with self._guard:
            if self._seen.get(directory) is not before:  # removed or added again while looking
                return []
            if now is None or before.identity not in (now.identity, NOT_SEEN.identity):
                del self._seen[directory]
                return [Changed(directory, "")]
            self._seen[directory] = now
        return [Changed(directory, name) for name in differing(before.entries, now.entries)]


def is_gone(error: OSError) -> bool:
    """Tell whether a directory is gone; not so for temporary errors (no descriptor, no permission, no answer)."""
    return error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESTALE}


def pause_after(cost_seconds: float, poll_seconds: float) -> float:
    """Return how long to wait after a round that took `cost_seconds`: as set, or longer after an expensive round."""
    return max(poll_seconds, min(cost_seconds * PAUSE_PER_COST, PAUSE_SECONDS_MAX))


def look(directory: str, names: frozenset[str] | None) -> DirectoryListing:
    """Look at a directory; raises OSError if it is gone or cannot be read. An entry that vanishes is left out."""
    status = os.stat(directory)  # noqa: PTH116 - called for thousands of directories a round
    entries: dict[str, Signature] = {}
    with os.scandir(directory) as listing:
        for entry in listing:
            try:
                if entry.is_dir(follow_symlinks=False):
                    entries[entry.name] = (entry.inode(), 0, 0)
                elif names is None or entry.name in names:
                    entries[entry.name] = signature(entry)
            except OSError:
                continue
    return DirectoryListing((status.st_dev, status.st_ino), entries)


def signature(entry: os.DirEntry[str]) -> Signature:
    """Return a value that changes when the file, or the target of a link, is written or replaced."""
    try:
        status = os.stat(entry.path)  # noqa: PTH116 - DirEntry.stat would keep an old answer on Windows
    except OSError:
        status = entry.stat(follow_symlinks=False)
    return status.st_ino, status.st_size, status.st_mtime_ns


def differing(before: dict[str, Signature], now: dict[str, Signature]) -> list[str]:
    """Return the names that are new, gone, or have another signature."""
    return [] if before == now else [name for name in now | before if before.get(name) != now.get(name)]
