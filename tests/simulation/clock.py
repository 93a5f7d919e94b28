"""An event loop in which time passes only when nothing is left to do."""

import asyncio
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

WALL: Final = 1_800_000_000.0
"""The wall clock at the begin of a schedule."""


class StalledError(Exception):
    """Everybody waits, and nothing is left that could happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without sockets. `now` jumps to the next timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.errors: list[str] = []
        self._selector = self
        self._clock_resolution = 1e-6
        self.set_exception_handler(lambda _, context: self.errors.append(str(context.get("exception") or context)))

    def time(self) -> float:
        return self.now

    def select(self, timeout: float | None) -> list[object]:
        """Let the time pass up to the next timer."""
        if timeout is None:
            raise StalledError
        if timeout > 0:
            self.now += timeout
        return []

    def _process_events(self, events: list[object]) -> None:
        pass


@contextmanager
def virtual_time(seed: int) -> Iterator[VirtualLoop]:
    """Run what asks for the time, or for chance, by a loop's clock and by a seed."""
    loop, chance = VirtualLoop(), random.getstate()
    before = time.monotonic, time.time, time.perf_counter
    random.seed(seed)
    time.monotonic = time.perf_counter = loop.time
    time.time = lambda: WALL + loop.now
    try:
        yield loop
    finally:
        time.monotonic, time.time, time.perf_counter = before
        random.setstate(chance)
        loop.close()
