"""Watches directories through the watchfiles library, for macOS (FSEvents) and Windows (ReadDirectoryChangesW).

One recursive watch of the root serves every directory below it, so adding a directory costs nothing and is never too
late. The library does not report an overflow of the system's queue, so `Lost` is reported once a minute. On Linux,
where only the tests run it, the library may miss the first changes in a new directory.
"""

import asyncio
import os
import stat
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from exporter.sources.files.watch import Changed, Deliver, Lost, Report, Watcher

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP_MILLISECONDS: Final = 20
DEBOUNCE_MILLISECONDS: Final = 100
TIMEOUT_MILLISECONDS: Final = 1000
LOST_SECONDS: Final = 60.0


class NativeWatcher(Watcher):
    """A `Watcher` for the directories at and below `root`; refuses others."""

    def __init__(self, root: str, names: frozenset[str] | None = None, lost_seconds: float = LOST_SECONDS) -> None:
        self._root = os.path.realpath(root)
        self._names = names
        self._lost_seconds = lost_seconds
        self._notify: RustNotify | None = None
        self._stop: threading.Event = threading.Event()
        self._root_identity: tuple[int, int] | None = None
        self._paths: dict[str, dict[str, tuple[int, int]]] = {}
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
        super().start(deliver)
        self._listen()

    def close(self) -> None:
        """See `Watcher.close`."""
        self._ended = True
        self._deliver = None
        self._unwatch_root()
        self._paths.clear()

    def _watch_root(self) -> bool:
        """Begin the recursive watch, again if the root is another directory than before."""
        identity = identify(self._root)
        if self._notify is not None and identity == self._root_identity:
            return True
        self._unwatch_root()
        # Imported here because the library is installed only on the platforms that need it.
        from watchfiles._rust_notify import RustNotify

        try:
            self._notify = RustNotify([self._root], False, False, 0, True, True)
        except OSError:
            return False
        self._root_identity = identity
        self._listen()
        return True

    def _unwatch_root(self) -> None:
        self._stop.set()
        self._stop = threading.Event()
        if self._notify is not None and self._loop is None:  # otherwise its thread uses it, and closes it when done
            self._notify.close()
        self._notify = None

    def _listen(self) -> None:
        if self._loop is not None and self._notify is not None:
            arguments = (self._notify, self._stop, self._loop)
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
        """Refuse all directories after the library failed, so that the fallback watches them."""
        if stop.is_set():
            return
        self._ended = True
        directories = [directory for paths in self._paths.values() for directory in paths]
        self._paths.clear()
        self._report([Lost(), *(Changed(directory, "") for directory in directories)])

    def _hand_over(self, changes: set[str], lost: bool) -> None:
        reports: list[Report] = [Lost()] if lost else []
        # Not every system reports that the root itself was moved, so it is checked each time, at least once a second.
        if lost or identify(self._root) != self._root_identity:
            reports.extend(self._vanished(self._root))
        for path in changes:
            if path in self._paths:
                reports.extend(self._vanished(path))
            parent, name = os.path.split(path)
            if self._names is None or name in self._names or Path(path).is_dir() or not os.path.lexists(path):
                # The system may name a path through a link although the link itself was found below the root.
                real = parent if parent in self._paths else os.path.realpath(parent)
                reports.extend(Changed(directory, name) for directory in self._paths.get(real, ()))
        self._report(reports)

    def _vanished(self, path: str) -> list[Report]:
        """Drop the directories at or below `path` that are not those that were added."""
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
    """Return the device and inode of a directory, None if there is none."""
    try:
        status = os.stat(directory)  # noqa: PTH116 - one call per directory and report
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
