"""Processes that deliver history beside this one, so that much of it takes the time of one core's share.

They are made by forking before anything is open here, share the redactor's memory and the state directory's lock, and
wait. Each builds parts of its own when it is given its first session. What they do is safe at any instant, as what the
exporter does is: one that dies leaves marks from which its sessions are gone on with here.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from exporter.daemon.running import RunningExporter

_HELPERS_MAX: Final = 3
_SESSIONS_EACH: Final = 3
_END_SECONDS: Final = 10.0


def helpers_possible() -> int:
    """Return how many helpers are of use on this machine: one for every core but ours."""
    if not sys.platform.startswith("linux"):  # elsewhere a fork is not safe
        return 0
    return min(_HELPERS_MAX, len(os.sched_getaffinity(0)) - 1)


@dataclass(slots=True)
class _Helper:
    process: BaseProcess
    connection: Connection
    given: set[str] = field(default_factory=set)


class Helpers:
    """The helpers of one backfill. Start them before there are threads, files or an open database."""

    def __init__(self, count: int, make: "Callable[[], RunningExporter]") -> None:
        self._helpers: list[_Helper] = []
        context = get_context("fork")
        for _ in range(count):
            ours, theirs = context.Pipe()
            inherited = [ours, *(helper.connection for helper in self._helpers)]
            process = context.Process(target=_help, args=(theirs, inherited, make), daemon=True)
            process.start()
            theirs.close()
            self._helpers.append(_Helper(process, ours))

    def give(self, session: str, request: dict[str, Any]) -> bool:
        """Give a session to a helper that has room for one; return whether there was such a helper."""
        for helper in sorted(self._helpers, key=lambda one: len(one.given)):
            if len(helper.given) < _SESSIONS_EACH:
                try:
                    helper.connection.send((session, request))
                except OSError:
                    continue
                helper.given.add(session)
                return True
        return False

    def heard(self) -> list[tuple[str, dict[str, Any] | None]]:
        """Return what came since: for a session its progress, its rows when it is done, or None when it failed."""
        found: list[tuple[str, dict[str, Any] | None]] = []
        for helper in tuple(self._helpers):
            try:
                while helper.connection.poll():
                    session, answer = helper.connection.recv()
                    found.append((session, answer))
                    if answer is None or "sessions" in answer:
                        helper.given.discard(session)
            except (EOFError, OSError):
                found.extend((session, None) for session in helper.given)
                self._helpers.remove(helper)
        return found

    def close(self) -> None:
        """Let them finish the requests that are under way, and end."""
        for helper in self._helpers:
            helper.connection.close()
        for helper in self._helpers:
            helper.process.join(_END_SECONDS)
            if helper.process.is_alive():
                helper.process.kill()
        self._helpers.clear()


def _help(connection: Connection, inherited: Sequence[Connection], make: "Callable[[], RunningExporter]") -> None:
    """Be a helper until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person means the process that was started
    for one in inherited:
        one.close()
    try:
        asyncio.run(_answer_all(connection, make))
    finally:
        connection.close()


async def _answer_all(connection: Connection, make: "Callable[[], RunningExporter]") -> None:
    requests: asyncio.Queue[tuple[str, dict[str, Any]] | None] = asyncio.Queue()

    def read() -> None:
        try:
            requests.put_nowait(connection.recv())
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(connection.fileno())
            requests.put_nowait(None)

    asyncio.get_running_loop().add_reader(connection.fileno(), read)
    first = await requests.get()
    if first is None:
        return
    running = make()
    try:
        running.daemon.start(deliver=False, sum_up=False)
        answering = {asyncio.create_task(_answer(running, connection, *first))}
        while (request := await requests.get()) is not None:
            answering = {task for task in answering if not task.done()}
            answering.add(asyncio.create_task(_answer(running, connection, *request)))
        for task in answering:
            task.cancel()
    finally:
        await running.close()


async def _answer(running: "RunningExporter", connection: Connection, session: str, request: dict[str, Any]) -> None:
    def tell(progress: dict[str, Any]) -> None:
        connection.send((session, {"progress": progress}))

    answer: dict[str, Any] | None = None
    with suppress(Exception):  # who gave us the session goes on with it, and finds the error there
        answer = await running.answers().answer(request, tell)
    connection.send((session, answer))
