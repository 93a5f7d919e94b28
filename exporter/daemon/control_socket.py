"""The control socket of a daemon: one JSON line in, JSON lines out, for this user only.

One descriptor is kept for it, so that a process that has no other left still answers.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from exporter.errors import Exit, ExporterError, LockedError, StateError
from exporter.sources.local_socket import is_same_user, listen, socket_path

NAME: Final = "control.sock"
_REQUEST_BYTES_MAX: Final = 1 << 20
_FULL_SECONDS: Final = 0.2

Answer = Callable[[dict[str, Any], Callable[[dict[str, Any]], None]], Awaitable[dict[str, Any]]]


@asynccontextmanager
async def control_socket(state_dir: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer requests while in the block. A socket that a killed daemon left is replaced: the state lock allows it."""
    path = socket_path(state_dir, NAME)
    with listen(path) as listener:
        acceptor = _Acceptor(answer)
        accepting = asyncio.create_task(acceptor.accept(listener))
        try:
            yield
        finally:
            accepting.cancel()
            await asyncio.wait([accepting])
            acceptor.use_spare()
            path.unlink(missing_ok=True)


class _Acceptor:
    """Answers each connection in a task. The spare descriptor becomes a connection when there is no other left."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._tasks: set[asyncio.Task[None]] = set()
        self._spare: int | None = None

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        self._keep_spare()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                loop.call_exception_handler({"message": "a command cannot be answered", "exception": error})
                if not self.use_spare():
                    await asyncio.sleep(_FULL_SECONDS)
                continue
            self._keep_spare()
            task = loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def use_spare(self) -> bool:
        """Close the spare descriptor; return whether there was one."""
        spare, self._spare = self._spare, None
        if spare is not None:
            os.close(spare)
        return spare is not None

    def _keep_spare(self) -> None:
        with suppress(OSError):
            self._spare = os.open(os.devnull, os.O_RDONLY) if self._spare is None else self._spare

    async def _serve(self, connection: socket.socket) -> None:
        # A request that is under way when the daemon ends is cancelled; the client sees the closed connection.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=_REQUEST_BYTES_MAX)
            try:
                if is_same_user(connection):
                    await _answer_one(self._answer, reader, writer)
            finally:
                writer.close()
                await writer.wait_closed()
        self._keep_spare()


async def _answer_one(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    def say(kind: str, what: object) -> None:
        if not writer.is_closing():
            writer.write(msgspec.json.encode({kind: what}) + b"\n")

    try:
        request = msgspec.json.decode(await reader.readline(), type=dict[str, Any])
        say("result", await answer(request, lambda report: say("progress", report)))
    except ExporterError as error:
        say("error", {"kind": error.kind, "message": error.message, "hint": error.hint, "exit": int(error.exit)})
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError) as error:
        text = f"the request cannot be read: {type(error).__name__}"
        say("error", {"kind": "usage", "message": text, "hint": "", "exit": int(Exit.USAGE)})
    await writer.drain()


class _OtherError(ExporterError):
    """An error that the daemon answered."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(str(told.get("message")), hint=str(told.get("hint") or ""))
        self.kind = str(told.get("kind"))  # type: ignore[misc]  # as the daemon answered, not as the class says
        self.exit = Exit(int(told.get("exit", Exit.UNEXPECTED)))  # type: ignore[misc]  # as above


async def ask_daemon(
    state_dir: Path, request: dict[str, Any], progress: Callable[[dict[str, Any]], None]
) -> dict[str, Any] | None:
    """Ask the daemon of a state directory; return None when none runs there.

    Raises `StateError` when another user answers there.
    """
    try:
        path = str(socket_path(state_dir, NAME))
        reader, writer = await asyncio.open_unix_connection(path, limit=1 << 30)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        return None
    try:
        if not is_same_user(writer.get_extra_info("socket")):
            raise StateError(f"another user answers at {path}", hint="run as that user, or set another state_dir")
        writer.write(msgspec.json.encode(request) + b"\n")
        await writer.drain()
        while line := await reader.readline():
            told = msgspec.json.decode(line, type=dict[str, Any])
            if "result" in told:
                return dict(told["result"])
            if "error" in told:
                raise _OtherError(told["error"])
            progress(told.get("progress", {}))
    finally:
        writer.close()
    raise _OtherError({"kind": "unexpected", "message": "the daemon ended before it answered", "hint": "ask again"})


async def page_of_daemon(state_dir: Path) -> dict[str, Any] | None:
    """Return the `url` of the page that a running daemon serves and what it shows, None when no daemon runs."""
    answer = await ask_daemon(state_dir, {"do": "url"}, lambda _: None)
    if answer is None:
        return None
    if not answer.get("url"):
        raise LockedError(
            "an exporter runs already, and it has no page: it delivers to its sinks only",
            hint="see `exporter status`, or stop it and run `exporter up`",
        )
    return answer
