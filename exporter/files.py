"""Opens files that settings name, which somebody else may have placed; writes and copies files for this user alone."""

import errno
import os
import stat
from pathlib import Path
from typing import IO, BinaryIO, Final

_CHUNK_BYTES: Final = 1 << 20
_COPY_SECONDS: Final = 30.0
_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)


def open_regular(path: str | Path) -> BinaryIO:
    """Open a regular file to read its bytes; raises `OSError` for anything else and waits at no pipe."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | _NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(descriptor, "rb")


def write_private(path: Path, source: IO[bytes]) -> None:
    """Write a file for this user alone, durably: it is there as a whole or as it was before."""
    import shutil

    temporary = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def copy_database(source: Path, target: Path) -> int:
    """Copy a SQLite file as it is at one moment, also while another process writes; return its `user_version`.

    The copy is whole and for this user alone. Raises `OSError`.
    """
    import sqlite3
    from contextlib import closing

    temporary = target.with_name(f"{target.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o600))
        read = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True, timeout=_COPY_SECONDS)
        with closing(read), closing(sqlite3.connect(temporary)) as copy:
            read.backup(copy)  # in one step, of one snapshot: who writes meanwhile does not make it begin again
            copy.execute("PRAGMA journal_mode = DELETE")
            verdict = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
            version = int(copy.execute("PRAGMA user_version").fetchone()[0])
        if verdict != "ok":
            raise OSError(errno.EIO, f"it is damaged: {verdict}", str(source))
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    except (sqlite3.Error, OSError) as error:
        temporary.unlink(missing_ok=True)
        why = error.strerror if isinstance(error, OSError) else None
        raise OSError(errno.EIO, why or str(error), str(source)) from None
    return version
