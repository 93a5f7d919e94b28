"""Reports possible changes in watched directories, by the best means of this machine.

Rules that keep every watcher simple, and that the contract suite checks on each:
- A report is a hint, never a fact: its receiver checks the file. Several changes may be one report.
- Only the entries of a watched directory are reported, not what is below them.
- A change after `add` has returned is reported; so a caller adds first and looks afterwards.
- After `Changed(directory, "")` the directory is not watched any more; what was watched below it is reported likewise.
  A caller that still finds it adds it again, which is harmless whatever the state.
"""

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
    """Reports were lost: everything has to be looked at, and every directory added again."""


Report: TypeAlias = Changed | Lost
Deliver: TypeAlias = Callable[[list[Report]], None]


class Watcher(Protocol):
    """Watches directories and delivers reports in batches on the event loop's thread."""

    def add(self, directory: str) -> bool:
        """Watches `directory`; False: it is gone, or cannot be watched here (a limit, a network file system)."""

    def remove(self, directory: str) -> None:
        """Stops watching `directory`; nothing happens when it was not watched."""

    def start(self, deliver: Deliver) -> None:
        """Begins to deliver; called once, on the running event loop. What changed since `add` is delivered too."""

    def close(self) -> None:
        """Stops for good; nothing is delivered afterwards."""


class FallbackWatcher:
    """Two watchers as one: the second takes the directories that the first refuses."""

    def __init__(self, first: Watcher, second: Watcher) -> None:
        self._first = first
        self._second = second
        self._refused: set[str] = set()

    @property
    def refused(self) -> frozenset[str]:
        """The directories that only the fallback watches, for the status."""
        return frozenset(self._refused)

    def add(self, directory: str) -> bool:
        """False only when neither can watch the directory: it is gone."""
        if self._first.add(directory):
            if directory in self._refused:
                self._refused.discard(directory)
                self._second.remove(directory)
            return True
        watched = self._second.add(directory)
        if watched:
            self._refused.add(directory)
        else:
            self._refused.discard(directory)
        return watched

    def remove(self, directory: str) -> None:
        """Stops watching `directory` with both."""
        self._refused.discard(directory)
        self._first.remove(directory)
        self._second.remove(directory)

    def start(self, deliver: Deliver) -> None:
        """Begins to deliver the changes that either watcher reports."""
        self._first.start(deliver)
        self._second.start(lambda reports: self._relay(reports, deliver))

    def _relay(self, reports: list[Report], deliver: Deliver) -> None:
        for report in reports:
            if isinstance(report, Changed) and not report.name:
                self._refused.discard(report.directory)
        deliver(reports)

    def close(self) -> None:
        """Stops both."""
        self._first.close()
        self._second.close()


def best_watcher(root: str, poll_seconds: float, names: frozenset[str] | None = None) -> FallbackWatcher:
    """Watches below `root` with inotify (Linux) or watchfiles (elsewhere); polls the directories that these refuse.

    With `names`, changes of files called otherwise need not be reported; those of directories always are.
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
    """The type of the file system with this device number, as /proc/self/mountinfo has it."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mountinfo.splitlines():
        mount, separator, system = line.partition(" - ")
        if separator and mount.split()[2] == wanted:
            return system.split()[0]
    return None


def is_remote(system: str | None) -> bool:
    """True for a file system on which others may write without this machine's kernel knowing."""
    if system is None:
        return False
    return system in NETWORK_TYPES or (system.startswith("fuse.") and system not in LOCAL_FUSE_TYPES)
