"""What goes on around a running daemon: signals, the control socket, reports, and the page if there is one."""

import asyncio
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from exporter.daemon.control_socket import Answer, ControlServer

if sys.platform != "win32":
    import resource


def leave_no_core() -> None:
    """Forbid core dumps of this process and its children: they would hold what was read and not redacted yet.

    What a system collects in another way (`core_pattern` with a program that ignores the limit) is not in our hands.
    """
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class ServedPage(Protocol):
    """A page that is being served."""

    def address(self) -> str: ...

    async def stop(self) -> None: ...


def stop_on_signals() -> asyncio.Event:
    """Return an event that the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def asked(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)  # every mark is safe at any instant
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, asked, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(asked, number))
    return stop


async def first_of(stop: asyncio.Event, work: Coroutine[Any, Any, int]) -> int | None:
    """Return what `work` returns, or None when it is time to stop before that."""
    stopping, working = asyncio.create_task(stop.wait()), asyncio.create_task(work)
    await asyncio.wait((stopping, working), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    return None


class Serving:
    """While in the block: the page is there, the control socket answers, and what goes on beside it runs."""

    def __init__(
        self,
        state_dir: Path,
        answer: Answer,
        beside: Sequence[Callable[[], Coroutine[Any, Any, None]]],
        open_page: Callable[[], Awaitable[ServedPage]] | None,
    ) -> None:
        self._control = ControlServer(state_dir, answer)
        self._beside = beside
        self._open_page = open_page
        self._page: ServedPage | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> None:
        if self._open_page is not None:
            self._page = await self._open_page()
        await self._control.start()
        self._tasks = [asyncio.create_task(work()) for work in self._beside]

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._control.close()
        if self._page is not None:
            await self._page.stop()


def open_in_browser(url: str | None) -> None:
    """Open an address in the person's browser, if there is one of either; never waits for it."""
    if url is not None:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
