"""An event loop in which time passes only when nothing is left to do."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from heapq import heappop, heappush
from typing import Any, Final, TypeVarTuple

Values = TypeVarTuple("Values")
WALL: Final = 1_800_000_000.0
"""The wall clock at the begin of a schedule."""


class StalledError(Exception):
    """Everybody waits, and nothing is left that could happen."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without sockets and threads, in order and nothing else. `now` jumps to the next timer."""

    _ready: deque[Any]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.errors: list[str] = []
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._made = 0
        self._context = copy_context()  # nobody changes it
        self.set_exception_handler(lambda _, context: self.errors.append(str(context.get("exception") or context)))

    def time(self) -> float:
        return self.now

    def call_soon(
        self, callback: Callable[[*Values], object], *args: *Values, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, self._context if context is None else context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Values], object],
        *args: *Values,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, self._context if context is None else context)
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[*Values], object],
        *args: *Values,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass  # it is passed over when its time comes

    def _run_once(self) -> None:
        """Run what is ready; where nothing is, let the time pass up to the next timer."""
        timers, ready = self._timers, self._ready
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if not ready and not self._stopping:
            if not timers:
                raise StalledError
            self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            ready.append(heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                try:
                    handle._context.run(handle._callback, *handle._args)
                except Exception as error:
                    self.errors.append(str(error))

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
