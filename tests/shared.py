"""What all tests share: the compiled rules of the redactor, turns for tests that measure time, and real captures."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_PLACE: Final = "TESTS_CACHE_HOME"

if _PLACE not in os.environ:  # a worker of pytest has it from the process that started it
    os.environ[_PLACE] = tempfile.mkdtemp(prefix="xp-cache-")
    atexit.register(shutil.rmtree, os.environ[_PLACE], ignore_errors=True)

CACHE_HOME: Final = os.environ[_PLACE]
"""The cache directory of a person, as programs take it from XDG_CACHE_HOME."""
CACHE: Final = Path(CACHE_HOME, "exporter")
"""The same as an engine takes it: to load the rules takes a fortieth of the time that compiling them takes."""

REAL: Final = Path(os.environ.get("EXPORTER_SHARED") or Path(__file__).resolve().parents[2] / "shared") / "real"
"""Captures of real sessions, which are not in the repository: beside the checkout, or where the variable says."""


@contextmanager
def turn(*, alone: bool) -> Iterator[None]:
    """Waits until the other workers of the run are idle, and keeps them so; or until no one else wants that."""
    import fcntl

    with Path(CACHE_HOME, "queue").open("wb") as queue, Path(CACHE_HOME, "room").open("wb") as room:
        fcntl.flock(queue, fcntl.LOCK_EX)  # whoever waits for the room holds the queue, so that nobody goes in before
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # closing does not suffice where a child has the descriptor too
