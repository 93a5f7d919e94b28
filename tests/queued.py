"""How long a process was ready and had no processor: what a busy machine adds to the time of a test, nothing else.

A promise such as "ends within two seconds" is about the program. What it waited in the queue for a processor is
measured by the kernel and taken off; on an idle machine that is nothing, and the whole time counts.
"""

import os
import time
from pathlib import Path
from typing import Final

_TASKS: Final = "/proc/{}/task"
_NANOSECONDS: Final = 1e9


def queued_seconds(pid: int) -> float:
    """Return how long the threads of a process have waited for a processor; 0 where the kernel does not say."""
    waited = 0
    try:
        for task in Path(_TASKS.format(pid)).iterdir():
            waited += int((task / "schedstat").read_text().split()[1])
    except (OSError, IndexError):
        pass  # it has ended meanwhile
    return waited / _NANOSECONDS


class Stopwatch:
    """The time since it was made, without what this process and another one waited for a processor."""

    def __init__(self, pid: int | None = None) -> None:
        self._pids = {os.getpid(), pid or os.getpid()}
        self._begun = time.monotonic()
        self._queued = {one: queued_seconds(one) for one in self._pids}
        self._last = dict(self._queued)

    def look(self) -> None:
        """Read the queue of a process that may end soon: afterwards nobody can."""
        for one in self._pids:
            self._last[one] = max(self._last[one], queued_seconds(one))

    def seconds(self) -> float:
        """Return the time so far; a little too little where threads waited at the same time."""
        passed = time.monotonic() - self._begun
        self.look()
        return max(0.0, passed - sum(self._last[one] - self._queued[one] for one in self._pids))
