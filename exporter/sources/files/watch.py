"""The watcher interface, the watcher that polls, and the best watcher of this machine.

Every watcher follows these rules, which the contract suite checks:
- A report is a hint, not a fact: its receiver checks the file. Several changes may give one report.
- Only the entries of a watched directory are reported, not what is below them.
- A change after `add` has returned is reported, so a caller adds a directory before it looks at the files in it.
- After `Changed(directory, "")` the directory is no longer watched; directories that were watched below it are
  reported in the same way. A caller that still finds the directory adds it again, which is always harmless.

Polling is for network file systems and for directories beyond the kernel's limits. A separate thread polls, because one
`stat` on a network file system may block forever and other files must not wait. A round that takes long is followed by
a longer pause, so that polling takes at most a twentieth of the time.
"""

import errno
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    import asyncio

NETWORK_TYPES: Final = frozenset(
    {"9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "fuse", "gfs2", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"}
    | {"ocfs2", "orangefs", "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)
LOCAL_FUSE_TYPES: Final = frozenset({"fuse.encfs", "fuse.fuse-overlayfs", "fuse.gocryptfs"})


@dataclass(frozen=True, slots=True)
class Changed:
    """`name` in `directory` may have changed; an empty name: the directory itself vanished or was moved."""

    directory: str
    name: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Reports were lost: the receiver checks every file and adds every directory again."""


Report: TypeAlias = Changed | Lost
Deliver: TypeAlias = Callable[[list[Report]], None]


class Watcher(Protocol):
    """Watches directories and delivers reports in batches on the event loop's thread."""

    _deliver: Deliver | None = None
    _loop: "asyncio.AbstractEventLoop | None" = None

    def add(self, directory: str) -> bool:
        """Watch `directory`; return False if it is gone or cannot be watched here (a limit, a network file system)."""

    def remove(self, directory: str) -> None:
        """Stop watching `directory`; do nothing if it is not watched."""

    def start(self, deliver: Deliver) -> None:
        """Begin to deliver; called once, on the running event loop. Changes since `add` are delivered too."""
        self._deliver = deliver
        import asyncio  # who only asks about files, as `redact test` does, should not wait for it

        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Stop for good; nothing is delivered afterwards."""

    def _report(self, reports: list[Report]) -> None:
        """Deliver reports, if there are any and this watcher has been started and is not closed."""
        if reports and self._deliver is not None:
            self._deliver(reports)


class FallbackWatcher(Watcher):
    """Two watchers as one: the second watches the directories that the first one refuses, which are in `refused`."""

    def __init__(self, first: Watcher, second: Watcher) -> None:
        self.refused: set[str] = set()
        self._first = first
        self._second = second

    def add(self, directory: str) -> bool:
        """Watch `directory`; return False only if neither can watch it: it is gone."""
        refused = not self._first.add(directory)
        if not refused and directory in self.refused:
            self._second.remove(directory)
        watched = not refused or self._second.add(directory)
        self.refused.discard(directory)
        if refused and watched:
            self.refused.add(directory)
        return watched

    def remove(self, directory: str) -> None:
        """Stop watching `directory` with both."""
        self.refused.discard(directory)
        self._first.remove(directory)
        self._second.remove(directory)

    def start(self, deliver: Deliver) -> None:
        """Begin to deliver the changes that either watcher reports."""

        def relay(reports: list[Report]) -> None:
            self.refused -= {one.directory for one in reports if isinstance(one, Changed) and not one.name}
            deliver(reports)

        self._first.start(deliver)
        self._second.start(relay)

    def close(self) -> None:
        """Stop both."""
        self._first.close()
        self._second.close()


def file_system_type(mountinfo: str, device: int) -> str | None:
    """Return the type of the file system with this device number from the text of /proc/self/mountinfo."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mountinfo.splitlines():
        mount, separator, system = line.partition(" - ")
        if separator and mount.split()[2] == wanted:
            return system.split()[0]
    return None


def is_remote(system: str | None) -> bool:
    """Tell whether other machines may write to a file system of this type without this kernel knowing."""
    if system is None:
        return False
    return system in NETWORK_TYPES or (system.startswith("fuse.") and system not in LOCAL_FUSE_TYPES)


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

    def _run(self, loop: "asyncio.AbstractEventLoop") -> None:
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


def best_watcher(root: str, poll_seconds: float, names: frozenset[str] | None = None) -> FallbackWatcher:
    """Return a watcher that uses inotify (Linux) or watchfiles (elsewhere), and polls the directories these refuse.

    With `names`, only changes of files with these names and of directories have to be reported.
    """
    # Imported here because only the chosen one exists on this platform, and because each of them imports this module.
    from exporter.sources.files.watch import PollingWatcher

    polling = PollingWatcher(poll_seconds, names)
    # Imported here because only one of them works on this platform, and because each of them imports this module.
    platform: str = sys.platform  # a name of its own, so that mypy checks both branches
    if platform == "linux":
        from exporter.sources.files.inotify import InotifyWatcher

        return FallbackWatcher(InotifyWatcher(names), polling)
    from exporter.sources.files.native_watch import NativeWatcher

    return FallbackWatcher(NativeWatcher(root, names), polling)
