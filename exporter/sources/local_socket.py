"""A Unix socket for this user alone: where it is, how it is made, and who is at its other end."""

import os
import socket
import stat
import struct
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

from exporter.errors import StateError

_PATH_LENGTH_MAX: Final = 100
_BACKLOG: Final = 100
_PEER: Final = struct.Struct("iII")


def socket_path(state_dir: Path, name: str) -> Path:
    """Return where a socket of a state directory is; a path too long for a socket moves to a runtime directory.

    Raises `StateError` when there is no such directory that only this user can write to.
    """
    path = state_dir / name
    if len(os.fsencode(path)) <= _PATH_LENGTH_MAX:
        return path
    facts = state_dir.stat()
    return _runtime_directory() / f"exporter-{facts.st_dev:x}-{facts.st_ino:x}-{name}"


def _runtime_directory() -> Path:
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and _is_private(Path(given)):
        return Path(given)
    own = Path(tempfile.gettempdir()) / f"exporter-{os.getuid()}"
    with suppress(FileExistsError):
        own.mkdir(mode=0o700)
    if not _is_private(own):
        raise StateError(
            f"there is no place for a socket: {own} is not a directory of this user alone",
            hint="set state_dir to a shorter path, or XDG_RUNTIME_DIR to a directory with mode 0700",
        )
    return own


def _is_private(directory: Path) -> bool:
    """Tell whether it is a directory of this user, and no link, that nobody else can enter."""
    try:
        facts = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077


def listen(path: Path) -> socket.socket:
    """Return a socket that listens there for this user alone; one that a killed process left is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def is_same_user(connection: socket.socket) -> bool:
    """Tell whether this user, or root, is at the other end."""
    if sys.platform != "linux":
        return True  # the socket's mode 0600 is what keeps others out
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(peer)[1]) in (os.getuid(), 0)
