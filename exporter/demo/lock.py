"""The lock of a session of the demo: as CLI 1.0.102 has it, so that everybody can tell that the session lives."""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

_AGE_SECONDS: Final = 60.0
"""A file that was made just now may not be held yet, and tells nothing."""
_held: Final[dict[Path, int]] = {}


def take(directory: Path) -> None:
    """Hold a session open by this process."""
    lock = directory / f"inuse.{os.getpid()}.lock"
    lock.write_text(str(os.getpid()), encoding="ascii")
    if sys.platform != "win32":
        hold = lock.with_suffix(".hold")
        _held[directory] = os.open(hold, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(_held[directory], fcntl.LOCK_EX)
        os.utime(hold, (time.time() - _AGE_SECONDS,) * 2)


def let_go(directory: Path) -> None:
    """End that, if it was so."""
    for end in ("lock", "hold"):
        (directory / f"inuse.{os.getpid()}.{end}").unlink(missing_ok=True)
    if directory in _held:
        with suppress(OSError):
            os.close(_held.pop(directory))
