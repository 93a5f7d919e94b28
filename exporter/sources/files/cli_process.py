"""The CLI processes that hold sessions open: their lock files, whether they run, and their environments.

While the CLI has a session open, its directory has a lock file that is named after the process. A process that cannot
be found is dead only if it could have been found: the exporter may run in a container beside the CLI, share its files
and see none of its processes.
"""

import contextlib
import errno
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from exporter.sources.files.watch import file_system_type, is_remote

if sys.platform != "win32":
    import fcntl

_LOCK: Final = re.compile(r"inuse\.(\d{1,10})\.lock")
_ENVIRONMENT_BYTES_MAX: Final = 4 * 1024 * 1024
_PROC: Final = Path("/proc")
# What Linux calls the namespace of processes that all others are inside.
_OUTERMOST: Final = "pid:[4026531836]"
_KERNEL_THREAD: Final = 0x200000
# A process that wrote a lock began before; clocks may have been set by so much in between.
_CLOCK_SECONDS: Final = 10.0
# The CLI holds a file a moment after it made it. Only later is it looked at.
_HELD_SECONDS: Final = 5.0
_INNER_SECONDS: Final = 2.0


class Liveness(Enum):
    """What is known of the processes that have a session open."""

    CLOSED = "closed"  # no lock: none has it open
    RUNNING = "running"
    GONE = "gone"
    UNKNOWN = "unknown"  # its lock names a process that could not be seen from here


def lock_holders(root: Path) -> Iterator[int]:
    """Yield the process ids that the lock files of the sessions below `root` name; some may have ended."""
    for session in _names_in(root):
        yield from _locks(root / session)


def environment_of(pid: int) -> dict[str, str]:
    """Return the initial environment of a process of this user; empty if it cannot be read."""
    if sys.platform != "linux":
        return {}
    try:
        with (_PROC / str(pid) / "environ").open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return {}
            content = file.read(_ENVIRONMENT_BYTES_MAX)
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in content.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, equals, value in pairs if equals}


def _namespace() -> str:
    """Return where this process sees others: the namespace of processes, and the boot of the machine."""
    if sys.platform != "linux":
        return _OUTERMOST
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{(_PROC / 'self/ns/pid').readlink()} {boot}"
    except OSError:
        return "unknown"


@dataclass(slots=True)
class Holders:
    """Tells whether the processes that hold sessions open run.

    `recall` and `remember` keep where a holder was seen over restarts of the exporter: in which namespace of processes
    of which boot of the machine. Where one was seen, others can be seen too.
    """

    recall: Callable[[], str | None] = lambda: None
    remember: Callable[[str], None] = lambda _: None
    _seen: bool | None = None
    _here: str = field(default_factory=_namespace)
    _inner: tuple[float, Mapping[int, float]] = (float("-inf"), {})

    def of(self, directory: Path) -> Liveness:
        """Return what is known of a session; of several locks the one that tells most for life counts."""
        told = {self._of_lock(directory, process) for process in _locks(directory)}
        ranked = (Liveness.RUNNING, Liveness.UNKNOWN, Liveness.GONE)
        return next((one for one in ranked if one in told), Liveness.CLOSED)

    def _of_lock(self, directory: Path, process: int) -> Liveness:
        try:
            written = (directory / f"inuse.{process}.lock").stat().st_mtime
        except OSError:  # it has gone meanwhile
            return Liveness.CLOSED
        held = _is_held(directory / f"inuse.{process}.hold")
        if held:
            return Liveness.RUNNING
        if held is False and not _is_shared(directory):
            return Liveness.GONE
        found = self._of_number(process, written)
        if found is Liveness.RUNNING:
            self._note_seen()
            return found
        if _is_shared(directory):  # with another machine, perhaps
            return Liveness.UNKNOWN
        if self._sees_all and (began := self._in_containers().get(process)) is not None:
            return _of_begin(began, written)
        return found if found is Liveness.UNKNOWN or self._sees_all or self._has_seen() else Liveness.UNKNOWN

    def _of_number(self, process: int, written: float) -> Liveness:
        """Return what the process says that has the number of a lock here, `GONE` where none can be its holder."""
        if not _is_there(process) or (process == 1 and self._sees_all):
            return Liveness.GONE
        if _is_of_own_tree(process):  # the holder may be in another container: both may have any low number
            return Liveness.UNKNOWN
        fields = _stat(process)
        if fields is None:
            return Liveness.RUNNING
        began = None if int(fields[6]) & _KERNEL_THREAD else _began(process)
        return Liveness.GONE if began is None else _of_begin(began, written)

    @property
    def _sees_all(self) -> bool:
        return self._here.startswith(_OUTERMOST)

    def _has_seen(self) -> bool:
        if self._seen is None:
            self._seen = self.recall() == self._here
        return self._seen

    def _note_seen(self) -> None:
        if not self._sees_all and not self._has_seen():
            self._seen = True
            self.remember(self._here)

    def _in_containers(self) -> Mapping[int, float]:
        """Return the ids that processes have in namespaces inside this one, and since when; of two seconds ago."""
        if time.monotonic() - self._inner[0] > _INNER_SECONDS:
            self._inner = (time.monotonic(), dict(sorted(_inner_numbers(), reverse=True)))
        return self._inner[1]


def _is_of_own_tree(process: int) -> bool:
    """Tell whether this process descends from another one, or that one from this."""
    own = os.getpid()
    return process == os.getppid() or process in _line(own) or own in _line(process)


def _line(process: int) -> set[int]:
    """Return a process and those that it descends from."""
    line = set[int]()
    while process > 0 and process not in line:
        line.add(process)
        fields = _stat(process)
        process = int(fields[1]) if fields else 0
    return line


def _inner_numbers() -> Iterator[tuple[int, float]]:
    """Yield every id that a process has in a namespace inside this one, and when the process began."""
    for name in _names_in(_PROC):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                _, _, line = (_PROC / name / "status").read_bytes().partition(b"NSpid:")
                inner = line.partition(b"\n")[0].split()[1:]
                began = _began(int(name)) if inner else None
                yield from ((int(number), began) for number in inner if began is not None)


def _locks(directory: Path) -> list[int]:
    return [int(found[1]) for name in _names_in(directory) if (found := _LOCK.fullmatch(name))]


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208
    except OSError:
        return []


def _is_shared(directory: Path) -> bool:
    """Tell whether other machines may have the directory too, so that their processes may hold what is in it."""
    if sys.platform != "linux":
        return False
    try:
        mounts = (_PROC / "self/mountinfo").read_text(encoding="utf-8", errors="replace")
        return is_remote(file_system_type(mounts, directory.stat().st_dev))
    except OSError:
        return True


def _is_held(hold: Path) -> bool | None:
    """Tell whether a running process holds a file, of whatever namespace; None if there is none that can tell.

    CLI 1.0.102 holds one beside its lock, by a lock of the kernel that ends with the process.
    """
    if sys.platform == "win32":
        return None
    try:
        if time.time() - hold.stat().st_mtime < _HELD_SECONDS:
            return None
        descriptor = os.open(hold, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return True if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    finally:
        os.close(descriptor)  # and lets go of it
    return False


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _of_begin(began: float, written: float) -> Liveness:
    """Return whether a process wrote a lock; one that began later may have its number, or the clock was set."""
    return Liveness.RUNNING if began <= written + _CLOCK_SECONDS else Liveness.UNKNOWN


def _began(process: int) -> float | None:
    """Return when a process began that has not ended, None where that cannot be told."""
    fields = _stat(process)
    if sys.platform != "linux" or fields is None or fields[0] in "ZX":
        return None
    age_seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return time.time() - age_seconds


def _stat(process: int) -> list[str] | None:
    """Return what the system says of a process from its state on, None where it cannot be read."""
    if sys.platform != "linux":
        return None
    try:
        # In a namespace of processes without a /proc of its own, the numbers are those of another one.
        if str((_PROC / "self").readlink()) != str(os.getpid()):
            return None
        return (_PROC / str(process) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
