"""Reads files that the settings are, or that they name; somebody else may have placed them."""

import errno
import os
import stat
from pathlib import Path

_CAREFUL = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def read_regular(file: str | Path, bytes_max: int = -1, *, follow: bool = True) -> tuple[bytes, int]:
    """The first bytes of a regular file, and its mode; raises OSError for anything else and waits at no pipe.

    Without `follow` it is a link to no file outside of its directory.
    """
    real = Path(os.path.realpath(file))
    if not follow and Path(os.path.realpath(Path(file).parent)) not in real.parents:
        raise OSError(errno.ELOOP, f"it is a link out of its directory, to {real}")
    with open(real, "rb", opener=lambda name, flags: os.open(name, flags | _CAREFUL)) as opened:
        mode = os.fstat(opened.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return opened.read(bytes_max), mode
