"""Opens files that settings name, which somebody else may have placed."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file to read its bytes; raises `OSError` for anything else and waits at no pipe."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | _NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(descriptor, "rb")
