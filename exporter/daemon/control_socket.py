"""The control socket of a daemon: one JSON line in, JSON lines out, for this user only."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from exporter.errors import Exit, ExporterError, LockedError, StateError
from exporter.sources.local_socket import is_same_user, listen, socket_path

NAME: Final = "control.sock"
_REQUEST_BYTES_MAX: Final = 1 << 20

Answer = Callable[[dict[str, Any], Callable[[dict[str, Any]], None]], Awaitable[dict[str, Any]]]


@asynccontextmanager
async def control_socket(state_dir: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer requests while in the block. A socket that a killed daemon left is replaced: the state lock allows it."""
    path = socket_path(state_dir, NAME)
    server = await asyncio.start_unix_server(partial(_serve, answer), sock=listen(path), limit=_REQUEST_BYTES_MAX)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _serve(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # A request that is under way when the daemon ends is cancelled; the client sees the closed connection.
    with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        if is_same_user(writer.get_extra_info("socket")):
            await _answer_one(answer, reader, writer)
    with suppress(ConnectionError, OSError):
        writer.close()


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
