"""One exporter owns a state directory: a lock that the kernel releases when its holder dies.

The lock is on a file, and on Linux also on a name that the kernel keeps: the directory may be deleted while its owner
runs, and a second exporter would make a new one and lock that.
"""

import errno
import hashlib
import os
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Final

from exporter.errors import LockedError, StateError

if sys.platform != "win32":
    import fcntl
else:
    import msvcrt

_HELD: Final = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
_PEER: Final = struct.Struct("iII")
_LET_GO_SECONDS: Final = 2.0
"""How long a lock is waited for whose owner has died: a process that it forked has it until it has closed it."""


def prepare_state_dir(path: Path) -> None:
    """Create the state directory, private to this user; raise `StateError` if that is impossible."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = path.stat()
    except OSError as error:
        raise StateError(
            f"the state directory {path} cannot be made: {error.strerror}",
            hint="set state_dir (or EXPORTER_STATE_DIR) to a directory this user can write",
        ) from error
    if not stat.S_ISDIR(facts.st_mode):
        raise StateError(f"{path} is not a directory", hint="set state_dir to a directory")
    if hasattr(os, "getuid"):
        if facts.st_uid != os.getuid():
            raise StateError(
                f"the state directory {path} belongs to another user",
                hint="run as that user, or set state_dir to a directory of your own",
            )
        if facts.st_mode & 0o077:
            path.chmod(0o700)
    probe = path / ".writable"
    try:
        probe.touch(mode=0o600)
        probe.unlink(missing_ok=True)  # another exporter that starts now may have deleted it
    except OSError as error:
        raise StateError(
            f"the state directory {path} cannot be written: {error.strerror}",
            hint="free some space or make it writable; nothing is sent without a place to remember what was sent",
        ) from error


class StateLock:
    """Holds the lock of a state directory in its `with` block; raises `LockedError` if another process holds it."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "lock"
        self._file: IO[str] | None = None
        self._name: socket.socket | None = None

    def acquire(self) -> None:
        """Take the lock at once or raise; only a process that has died is waited for."""
        end = time.monotonic() + _LET_GO_SECONDS
        while True:
            try:
                self._take()
            except LockedError:
                holder = self.holder()
                if holder is None or lives(holder) or sys.platform == "win32" or time.monotonic() > end:
                    raise
                time.sleep(0.01)
            else:
                return

    def _take(self) -> None:
        try:
            file = self._path.open("a+", encoding="ascii")
            self._path.chmod(0o600)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            if sys.platform != "win32":
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            else:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            holder = self.holder()
            file.close()
            if error.errno not in _HELD:
                raise self._unusable(error) from error
            raise LockedError(
                f"another exporter{f' (process {holder})' if holder else ''} holds {self._path.parent}",
                hint="ask it with `exporter status`, stop it, or give this one its own --state-dir",
            ) from error
        try:
            self._name = _claimed(self._path.parent)
        except LockedError:
            file.close()
            raise
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def _unusable(self, error: OSError) -> StateError:
        return StateError(
            f"{self._path} cannot be locked: {error.strerror}",
            hint="set state_dir to a directory of your own on a local disk",
        )

    def holder(self) -> int | None:
        """Return the process id that the last holder of the lock wrote."""
        try:
            return int(self._path.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            return None

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        for held in (self._name, self._file):
            if held is not None:
                held.close()
        self._name = self._file = None

    def __enter__(self) -> "StateLock":
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def lives(process: int) -> bool:
    """Tell whether there is a process of this number; on Windows, where asking would end it, never."""
    if sys.platform == "win32":
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def kernel_name(state_dir: Path) -> str:
    """Return the name in the kernel that the owner of a state directory holds; raises `OSError` without /proc."""
    # The same path is another directory in another container, which may share our network.
    place = f"{Path('/proc/self/ns/mnt').readlink()} {os.path.realpath(state_dir)}"
    return f"\0session-exporter-{os.getuid()}-{hashlib.blake2b(os.fsencode(place), digest_size=16).hexdigest()}"


def _claimed(state_dir: Path) -> socket.socket | None:
    """Hold a name made of the directory's path until the socket is closed; None where there are no such names.

    Raises `LockedError` if another process of this user holds it; another user cannot keep us from starting.
    """
    if sys.platform != "linux":
        return None
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(kernel_name(state_dir))
        held.listen(4096)  # whoever asks who holds the name stays in the queue, because nobody answers
        return held
    except OSError as error:
        held.close()
        if error.errno == errno.EADDRINUSE and (process := _our_process(kernel_name(state_dir))):
            raise _vanished(state_dir, process) from None
    return None


def _vanished(state_dir: Path, process: int) -> LockedError:
    return LockedError(
        f"another exporter (process {process}) uses {state_dir}, which was deleted or moved while it ran",
        hint=f"stop it (kill {process}), move the directory back if there still is one, and start again",
    )


def refuse_vanished(state_dir: Path) -> None:
    """Raise `LockedError` if a process uses this path and the lock in the directory is not its: only Linux tells."""
    if sys.platform == "linux":
        try:
            process = _our_process(kernel_name(state_dir))
        except OSError:  # without /proc nobody has such a name
            return
        if process and StateLock(state_dir).holder() != process:
            raise _vanished(state_dir, process)


def _our_process(name: str) -> int:
    """Return the process that holds a name, 0 if it ended meanwhile or is another user's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
        except OSError:
            return 0
        process, user, _ = _PEER.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(process) if user == os.getuid() else 0


@contextmanager
def owned(state_dir: Path) -> Iterator[None]:
    """Hold the lock of a state directory, created if necessary, for the duration of the block."""
    prepare_state_dir(state_dir)
    with StateLock(state_dir):
        yield


@contextmanager
def one_at_a_time(directory: Path) -> Iterator[None]:
    """Wait until no other process is in such a block for this directory; on Windows there is no wait."""
    with ExitStack() as ending:
        if sys.platform != "win32":
            descriptor = os.open(directory, os.O_RDONLY)
            ending.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
