"""The process of a daemon or receiver: the signals that end it, no core dumps, and the browser of its page."""

import asyncio
import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Coroutine
from typing import Any, Final

from exporter.core.notice import Level, Notice, NoticeName
from exporter.sources.files.session_file import NO_DESCRIPTOR

if sys.platform != "win32":
    import resource

_SAY_SECONDS: Final = 60.0


def leave_no_core() -> None:
    """Forbid core dumps of this process and its children: they would hold what was read and not redacted yet.

    A `core_pattern` with a program that ignores the limit is not covered.
    """
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class Stop(asyncio.Event):
    """Set when it is time to stop; `is_by_person` says that somebody pressed Ctrl-C."""

    is_by_person = False


def stop_on_signals() -> Stop:
    """Return what the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    stop, loop = Stop(), asyncio.get_running_loop()

    def asked(number: int) -> None:
        if stop.is_set():
            os._exit(128 + number)  # every mark is safe at any instant
        stop.is_by_person = number == signal.SIGINT
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, asked, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda number, _: loop.call_soon_threadsafe(asked, number))
    return stop


def tell_when_full(notice: Callable[[Notice], None]) -> None:
    """Have the running loop say, once a minute, that the process cannot open what it needs."""
    said_at = -_SAY_SECONDS

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        nonlocal said_at
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in NO_DESCRIPTOR:
            loop.default_exception_handler(context)
        elif loop.time() >= said_at + _SAY_SECONDS:
            said_at = loop.time()
            text, what = "too many open files (ulimit -n)", str(context["message"])
            notice(Notice(NoticeName.TOO_MANY_OPEN_FILES, Level.ERROR, text, fields={"what": what}))

    asyncio.get_running_loop().set_exception_handler(handle)


async def first_of(stop: asyncio.Event, work: Coroutine[Any, Any, int]) -> int | None:
    """Return what `work` returns, or None when it is time to stop before that."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    _, pending = await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return working.result() if working.done() else None


def open_in_browser(url: str | None) -> None:
    """Open an address in the user's browser, if there is an address; does not wait for it."""
    if url is not None:
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
