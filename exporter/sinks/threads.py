"""A few threads that make blocking calls for the event loop and do not delay the end of the program."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")
_Call: TypeAlias = tuple["Future[Any]", Callable[[], Any]]


class CallThreads:
    """Daemon threads, unlike those of a `ThreadPoolExecutor`: a call that hangs does not delay the program's end."""

    def __init__(self, count: int, name: str) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._limit = count
        self._name = name
        self._threads: list[threading.Thread] = []
        self._busy = 0

    async def call(self, work: Callable[[], Result]) -> Result:
        """Run `work` in a thread and return what it returns."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()  # the call is made even if its caller is cancelled
        self._busy += 1
        if self._busy > len(self._threads) and len(self._threads) < self._limit:
            thread = threading.Thread(target=self._serve, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._calls.put((future, work))
        try:
            return await asyncio.wrap_future(future)
        finally:
            self._busy -= 1

    def close(self) -> None:
        """Let every idle thread end; a busy one ends with its call or with the program."""
        for _ in self._threads:
            self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work = call
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del call, future, work
