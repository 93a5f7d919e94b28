"""The CLI processes that hold sessions open: their lock files, whether they run, and their environments."""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LOCK: Final = re.compile(r"inuse\.(\d{1,10})\.lock")
_ENVIRONMENT_BYTES_MAX: Final = 4 * 1024 * 1024
_PROC: Final = Path("/proc")


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


def has_crashed(directory: Path) -> bool:
    """Tell whether the CLI left its lock file behind and no longer runs."""
    locks = _locks(directory)
    return bool(locks) and not any(map(_runs, locks))


def is_locked(directory: Path) -> bool:
    """Tell whether a running process holds the session open."""
    return any(map(_runs, _locks(directory)))


def _locks(directory: Path) -> list[int]:
    return [int(found[1]) for name in _names_in(directory) if (found := _LOCK.fullmatch(name))]


def _names_in(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)  # noqa: PTH208
    except OSError:
        return []


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True
