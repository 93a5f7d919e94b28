"""A few threads that make blocking calls for the event loop and never keep the program from ending."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

Result = TypeVar("Result")


class _Call(Generic[Result]):
    __slots__ = ("_future", "_loop", "_work")

    def __init__(self, work: Callable[[], Result], loop: asyncio.AbstractEventLoop) -> None:
        self._work = work
        self._loop = loop
        self._future: asyncio.Future[Result] = loop.create_future()

    def run(self) -> None:
        try:
            result = self._work()
        except BaseException as error:
            self._answer(self._fail, error)
        else:
            self._answer(self._succeed, result)

    def _answer(self, tell: Callable[..., None], what: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended; nobody waits any more
            self._loop.call_soon_threadsafe(tell, what)

    def _succeed(self, result: Result) -> None:
        if not self._future.done():
            self._future.set_result(result)

    def _fail(self, error: BaseException) -> None:
        if not self._future.done():
            self._future.set_exception(error)

    @property
    def future(self) -> "asyncio.Future[Result]":
        return self._future


class CallThreads:
    """Daemon threads, unlike those of `concurrent.futures`: a call that hangs does not delay the program's end."""

    def __init__(self, count: int, name: str) -> None:
        self._calls: SimpleQueue[_Call[object] | None] = SimpleQueue()
        self._limit = count
        self._name = name
        self._threads: list[threading.Thread] = []
        self._busy = 0

    async def call(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread and return what it returns."""
        call = _Call(work, asyncio.get_running_loop())
        self._busy += 1
        if self._busy > len(self._threads) and len(self._threads) < self._limit:
            thread = threading.Thread(target=self._serve, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put(call)  # type: ignore[arg-type]  # a call of any result
        try:
            return await call.future
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Let every idle thread end; a busy one ends with its call or with the program."""
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
            del call
