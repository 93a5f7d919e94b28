"""Reads files that users name: waits at no pipe, and follows no link out of the file's directory unless told to."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

_CAREFUL: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


def read_given(path: Path, *, follow: bool = False) -> bytes:
    """The content of a regular file; raises `OSError` for anything else."""
    real = Path(os.path.realpath(path))
    if not follow and Path(os.path.realpath(path.parent)) not in real.parents:
        raise OSError(errno.ELOOP, "it is a link out of its directory")
    with open(real, "rb", opener=lambda name, flags: os.open(name, flags | _CAREFUL)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()
