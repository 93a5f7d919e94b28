"""Watches directories through one inotify instance on the event loop. Linux only.

- A watch belongs to the inode of a directory, so several paths may share one (a link, a directory moved and added
  again). Every path of a watch gets its reports. When the inode is moved, each path is checked again.
- The kernel joins equal events that follow each other in its queue. If events come faster than once per
  `GATHER_SECONDS`, the reader pauses for that time: 5,000 writes a second then cost a few hundred reads, and a single
  write is still reported at once.
"""

import ctypes
import errno
import os
import struct
from asyncio import TimerHandle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NewType

from exporter.sources.files.watch import Changed, Deliver, Lost, Report, Watcher, file_system_type, is_remote

IN_MODIFY: Final = 0x2
IN_MOVED_FROM: Final = 0x40
IN_MOVED_TO: Final = 0x80
IN_CREATE: Final = 0x100
IN_DELETE: Final = 0x200
IN_DELETE_SELF: Final = 0x400
IN_MOVE_SELF: Final = 0x800
IN_UNMOUNT: Final = 0x2000
IN_Q_OVERFLOW: Final = 0x4000
IN_IGNORED: Final = 0x8000
IN_ONLYDIR: Final = 0x01000000
IN_EXCL_UNLINK: Final = 0x04000000
IN_ISDIR: Final = 0x40000000

# Not IN_ATTRIB (a change of mode or time is not a change of content), not IN_CLOSE_WRITE (IN_MODIFY came before it).
_OF_ENTRIES: Final = IN_MODIFY | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
MASK: Final = _OF_ENTRIES | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK
READ_BYTES: Final = 64 * 1024
RECORD_BYTES_MAX: Final = 16 + 256
GATHER_SECONDS: Final = 0.002
HEADER: Final = struct.Struct("iIII")

Watch = NewType("Watch", int)


class Kernel:
    """The three inotify calls of the C library; each raises OSError."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)

    def open(self) -> int:
        """Return the descriptor of a new instance, non-blocking and closed on exec."""
        return self._checked(self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def watch(self, instance: int, directory: str) -> Watch:
        """Return the watch of the inode that `directory` leads to; an inode has one watch only."""
        path, mask = os.fsencode(directory), ctypes.c_uint32(MASK)
        return Watch(self._checked(self._library.inotify_add_watch(instance, path, mask)))

    def forget(self, instance: int, watch: Watch) -> None:
        """End a watch; raises OSError with EINVAL if the kernel has ended it already."""
        self._checked(self._library.inotify_rm_watch(instance, watch))

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


class InotifyWatcher(Watcher):
    """A `Watcher` on inotify; refuses directories beyond the kernel's limits and on network file systems."""

    def __init__(
        self, names: frozenset[str] | None = None, kernel: Kernel | None = None, mountinfo: str = "/proc/self/mountinfo"
    ) -> None:
        self._names = None if names is None else frozenset(os.fsencode(name) for name in names)
        self._kernel = kernel or Kernel()
        self._mountinfo = Path(mountinfo)
        self._instance: int | None = None
        self._watches: dict[str, Watch] = {}
        self._paths: dict[Watch, list[str]] = {}
        self._remote_devices: dict[int, bool] = {}
        self._resting: TimerHandle | None = None
        self._read_at = 0.0
        self._closed = False

    def add(self, directory: str) -> bool:
        """See `Watcher.add`."""
        try:
            if self._closed or self._is_remote(directory):
                return False
            watch = self._kernel.watch(self._opened(), directory)
        except OSError:  # ENOSPC, EMFILE: a limit; ENOENT, ENOTDIR, EACCES, ELOOP: not a directory that can be read
            self.remove(directory)
            return False
        if self._watches.get(directory) != watch:
            self.remove(directory)
            self._watches[directory] = watch
            self._paths.setdefault(watch, []).append(directory)
        return True

    def remove(self, directory: str) -> None:
        """See `Watcher.remove`."""
        watch = self._watches.pop(directory, None)
        if watch is None:
            return
        paths = self._paths[watch]
        paths.remove(directory)
        if not paths:
            del self._paths[watch]
            self._forget(watch)

    def start(self, deliver: Deliver) -> None:
        """See `Watcher.start`."""
        super().start(deliver)
        self._listen()

    def close(self) -> None:
        """See `Watcher.close`."""
        self._closed = True
        self._deliver = None
        if self._resting is not None:
            self._resting.cancel()
        if self._instance is not None:
            if self._loop is not None:
                self._loop.remove_reader(self._instance)
            os.close(self._instance)
            self._instance = None
        self._watches.clear()
        self._paths.clear()

    def _opened(self) -> int:
        """Return the instance, opened when it is needed: none may be free for one directory and one for the next."""
        if self._instance is None:
            self._instance = self._kernel.open()
            self._listen()
        return self._instance

    def _listen(self) -> None:
        if self._loop is not None and self._instance is not None:
            self._loop.add_reader(self._instance, self._read)

    def _is_remote(self, directory: str) -> bool:
        device = os.stat(directory).st_dev  # noqa: PTH116 - called for thousands of directories at start
        remote = self._remote_devices.get(device)
        if remote is None:
            try:
                mountinfo = self._mountinfo.read_text(errors="surrogateescape")
            except FileNotFoundError:  # without /proc it is unknown, and local is more likely
                mountinfo = ""
            remote = self._remote_devices[device] = is_remote(file_system_type(mountinfo, device))
        return remote

    def _read(self) -> None:
        assert self._loop is not None and self._instance is not None
        try:
            records = os.read(self._instance, READ_BYTES)
        except BlockingIOError:
            return
        now = self._loop.time()
        if now - self._read_at < GATHER_SECONDS and len(records) < READ_BYTES - RECORD_BYTES_MAX:
            self._loop.remove_reader(self._instance)
            self._resting = self._loop.call_later(GATHER_SECONDS, self._listen)
        self._read_at = now
        self._report(self._reports(records))

    def _reports(self, records: bytes) -> list[Report]:
        reports: list[Report] = []
        for watch, mask, name in unpack(records, self._names):
            paths = list(self._paths.get(watch, ()))
            if mask & IN_Q_OVERFLOW:
                reports.append(Lost())
                reports.extend(self._check(list(self._watches)))
            elif mask & (IN_DELETE_SELF | IN_UNMOUNT | IN_IGNORED):
                reports.extend(self._drop(paths))
            elif mask & IN_MOVE_SELF:
                moved = tuple(f"{path}{os.sep}" for path in paths)
                reports.extend(self._check([*paths, *(path for path in self._watches if path.startswith(moved))]))
            elif name:
                text = os.fsdecode(name)
                reports.extend(Changed(path, text) for path in paths)
                # A deleted directory that a process has open gives no report of its own until it is closed.
                if mask & IN_DELETE and mask & IN_ISDIR:
                    children = [f"{path}{os.sep}{text}" for path in paths]
                    reports.extend(self._check([child for child in children if child in self._watches]))
        return reports

    def _check(self, paths: list[str]) -> list[Report]:
        """Drop the paths that no longer lead to the directory they are watched for."""
        return self._drop([path for path in paths if not self._leads_to(path, self._watches[path])])

    def _leads_to(self, path: str, watch: Watch) -> bool:
        # Watching again asks the kernel itself: the same directory gives the same watch, if that still lives.
        try:
            found = self._kernel.watch(self._opened(), path)
        except OSError:
            return False
        if found != watch and found not in self._paths:
            self._forget(found)
        return found == watch

    def _drop(self, paths: list[str]) -> list[Report]:
        for path in paths:
            self.remove(path)
        return [Changed(path, "") for path in paths]

    def _forget(self, watch: Watch) -> None:
        assert self._instance is not None
        try:
            self._kernel.forget(self._instance, watch)
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: the kernel ended it first, because the directory is gone
                raise


def unpack(records: bytes, names: frozenset[bytes] | None) -> Iterator[tuple[Watch, int, bytes]]:
    """Yield the records of one read as watch, mask and name, without repetitions and without files not in `names`."""
    seen: set[tuple[int, int, bytes]] = set()
    header: Callable[[bytes, int], tuple[int, int, int, int]] = HEADER.unpack_from
    at = 0
    while at < len(records):
        watch, mask, _, length = header(records, at)
        at += 16
        padded = records[at : at + length]
        at += length
        if padded:
            key = (watch, mask & (IN_ISDIR | IN_DELETE), padded)
            if key in seen:
                continue
            seen.add(key)
            name = padded.rstrip(b"\0")
            if names is None or mask & IN_ISDIR or name in names:
                yield Watch(watch), mask, name
        else:
            yield Watch(watch), mask, b""
