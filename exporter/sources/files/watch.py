"""The watcher interface, and the best watcher of this machine.

Every watcher follows these rules, which the contract suite checks:
- A report is a hint, not a fact: its receiver checks the file. Several changes may give one report.
- Only the entries of a watched directory are reported, not what is below them.
- A change after `add` has returned is reported, so a caller adds a directory before it looks at the files in it.
- After `Changed(directory, "")` the directory is no longer watched; directories that were watched below it are
  reported in the same way. A caller that still finds the directory adds it again, which is always harmless.
"""

import asyncio
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

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
    _loop: asyncio.AbstractEventLoop | None = None

    def add(self, directory: str) -> bool:
        """Watch `directory`; return False if it is gone or cannot be watched here (a limit, a network file system)."""

    def remove(self, directory: str) -> None:
        """Stop watching `directory`; do nothing if it is not watched."""

    def start(self, deliver: Deliver) -> None:
        """Begin to deliver; called once, on the running event loop. Changes since `add` are delivered too."""
        self._deliver = deliver
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


def best_watcher(root: str, poll_seconds: float, names: frozenset[str] | None = None) -> FallbackWatcher:
    """Return a watcher that uses inotify (Linux) or watchfiles (elsewhere), and polls the directories these refuse.

    With `names`, only changes of files with these names and of directories have to be reported.
    """
    # Imported here because only the chosen one exists on this platform, and because each of them imports this module.
    from exporter.sources.files.polling import PollingWatcher

    polling = PollingWatcher(poll_seconds, names)
    platform: str = sys.platform  # a name of its own, so that mypy checks both branches
    if platform == "linux":
        from exporter.sources.files.inotify import InotifyWatcher

        return FallbackWatcher(InotifyWatcher(names), polling)
    from exporter.sources.files.native_watch import NativeWatcher

    return FallbackWatcher(NativeWatcher(root, names), polling)


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
