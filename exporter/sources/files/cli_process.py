"""The CLI processes that hold sessions open: their lock files, whether they run, and their environments."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

_LOCK: Final = re.compile(r"inuse\.(\d{1,10})\.lock")
_ENVIRONMENT_BYTES_MAX: Final = 4 * 1024 * 1024
_PROC: Final = Path("/proc")


def lock_holders(root: Path) -> Iterator[int]:
    """Yield the process ids that the lock files of the sessions below `root` name; some may have ended."""
    with suppress(OSError), os.scandir(root) as sessions:
        for session in sessions:
            with suppress(OSError), os.scandir(session.path) as entries:
                yield from (int(found[1]) for entry in entries if (found := _LOCK.fullmatch(entry.name)))


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment that a process of this user was started with; nothing where that cannot be read."""
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
    """Tell whether the CLI left its lock behind and runs no more."""
    locks = _locks(directory)
    return bool(locks) and not any(map(_runs, locks))


def is_locked(directory: Path) -> bool:
    """Tell whether a process that runs holds the session open."""
    return any(map(_runs, _locks(directory)))


def _locks(directory: Path) -> list[int]:
    try:
        return [int(found[1]) for name in os.listdir(directory) if (found := _LOCK.fullmatch(name))]  # noqa: PTH208
    except OSError:
        return []


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
