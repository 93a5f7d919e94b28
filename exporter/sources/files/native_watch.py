"""Watches directories through the watchfiles library, for macOS (FSEvents) and Windows (ReadDirectoryChangesW).

One recursive watch of the root serves every directory below it, so adding a directory costs nothing and cannot be too
late. The library does not tell when the system's queue overflowed, therefore everything is declared lost once a minute.
(On Linux, where only its tests run, the library itself may miss the first instant of a new directory's life.)
"""

import asyncio
import os
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from exporter.sources.files.watch import Changed, Deliver, Lost, Report

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP_MILLISECONDS: Final = 20
DEBOUNCE_MILLISECONDS: Final = 100
TIMEOUT_MILLISECONDS: Final = 1000
LOST_SECONDS: Final = 60.0


class NativeWatcher:
    """A `Watcher` for the directories at and below `root`; refuses others."""

    def __init__(self, root: str, names: frozenset[str] | None = None, lost_seconds: float = LOST_SECONDS) -> None:
        self._root = os.path.realpath(root)
        self._names = names
        self._lost_seconds = lost_seconds
        self._notify: RustNotify | None = None
        self._stop: threading.Event = threading.Event()
        self._root_identity: tuple[int, int] | None = None
        self._paths: dict[str, dict[str, tuple[int, int]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deliver: Deliver | None = None
        self._ended = False

    def add(self, directory: str) -> bool:
        """See `Watcher.add`."""
        real = os.path.realpath(directory)
        identity = identify(real)
        below = real == self._root or real.startswith(self._root.rstrip(os.sep) + os.sep)
        if self._ended or identity is None or not below or not self._watch_root():
            self.remove(directory)
            return False
        self._paths.setdefault(real, {})[directory] = identity
        return True

    def remove(self, directory: str) -> None:
        """See `Watcher.remove`."""
        for real in [real for real, paths in self._paths.items() if directory in paths]:
            del self._paths[real][directory]
            if not self._paths[real]:
                del self._paths[real]

    def start(self, deliver: Deliver) -> None:
        """See `Watcher.start`."""
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        if self._notify is not None:
            self._listen(self._notify)

    def close(self) -> None:
        """See `Watcher.close`."""
        self._ended = True
        self._deliver = None
        self._unwatch_root()
        self._paths.clear()

    def _watch_root(self) -> bool:
        """Begins the recursive watch, anew when the root is not the directory it was."""
        identity = identify(self._root)
        if self._notify is not None and identity == self._root_identity:
            return True
        self._unwatch_root()
        # Imported here because the library is there on the platforms that need it only.
        from watchfiles._rust_notify import RustNotify

        try:
            self._notify = RustNotify([self._root], False, False, 0, True, True)
        except OSError:
            return False
        self._root_identity = identity
        if self._loop is not None:
            self._listen(self._notify)
        return True

    def _unwatch_root(self) -> None:
        self._stop.set()
        self._stop = threading.Event()
        if self._notify is not None and self._loop is None:  # otherwise its thread uses it, and closes it when done
            self._notify.close()
        self._notify = None

    def _listen(self, notify: "RustNotify") -> None:
        assert self._loop is not None
        arguments = (notify, self._stop, self._loop)
        threading.Thread(target=self._run, args=arguments, name="watchfiles", daemon=True).start()

    def _run(self, notify: "RustNotify", stop: threading.Event, loop: asyncio.AbstractEventLoop) -> None:
        lost_at = time.monotonic() + self._lost_seconds
        timeout = min(TIMEOUT_MILLISECONDS, int(self._lost_seconds * 1000))
        with notify, suppress(RuntimeError):  # the library failed, or the loop was closed before this watcher
            while not stop.is_set():
                answer = notify.watch(DEBOUNCE_MILLISECONDS, STEP_MILLISECONDS, timeout, stop)
                lost = time.monotonic() >= lost_at
                if lost:
                    lost_at = time.monotonic() + self._lost_seconds
                changes = set() if isinstance(answer, str) else {path for _, path in answer}
                loop.call_soon_threadsafe(self._hand_over, changes, lost)
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._thread_ended, stop)

    def _thread_ended(self, stop: threading.Event) -> None:
        """Refuses all directories after the library failed, so that the fallback watches them."""
        if stop.is_set():
            return
        self._ended = True
        directories = [directory for paths in self._paths.values() for directory in paths]
        self._paths.clear()
        if self._deliver is not None:
            self._deliver([Lost(), *(Changed(directory, "") for directory in directories)])

    def _hand_over(self, changes: set[str], lost: bool) -> None:
        reports: list[Report] = [Lost()] if lost else []
        # Not every system reports that the root itself was moved, so it is asked each time; one call a second at least.
        if lost or identify(self._root) != self._root_identity:
            reports.extend(self._vanished(self._root))
        for path in changes:
            if path in self._paths:
                reports.extend(self._vanished(path))
            parent, name = os.path.split(path)
            if self._names is None or name in self._names or self._may_be_directory(path):
                # The system may name a path through a link where the link itself was found below the root.
                real = parent if parent in self._paths else os.path.realpath(parent)
                reports.extend(Changed(directory, name) for directory in self._paths.get(real, ()))
        if reports and self._deliver is not None:
            self._deliver(reports)

    @staticmethod
    def _may_be_directory(path: str) -> bool:
        return Path(path).is_dir() or not os.path.lexists(path)

    def _vanished(self, path: str) -> list[Report]:
        """Drops what is at or below `path` and is not the directory that was added."""
        below = path.rstrip(os.sep) + os.sep
        reports: list[Report] = []
        for real in [real for real in self._paths if real == path or real.startswith(below)]:
            now = identify(real)
            for directory, identity in list(self._paths[real].items()):
                if identity != now:
                    self.remove(directory)
                    reports.append(Changed(directory, ""))
        return reports


def identify(directory: str) -> tuple[int, int] | None:
    """Device and inode of a directory; None when there is none."""
    try:
        status = os.stat(directory)  # noqa: PTH116 - one call per directory and report
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
