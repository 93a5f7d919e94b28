"""The control socket of a daemon: one JSON line in, JSON lines out, for this user only."""

import asyncio
import os
import socket
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from exporter.errors import Exit, ExporterError, LockedError

NAME: Final = "control.sock"
_PATH_LENGTH_MAX: Final = 100
_REQUEST_BYTES_MAX: Final = 1 << 20
_PEER: Final = struct.Struct("iII")

Answer = Callable[[dict[str, Any], Callable[[dict[str, Any]], None]], Awaitable[dict[str, Any]]]


def socket_path(state_dir: Path) -> Path:
    """Return where the socket of a state directory is; a path too long for a socket moves to the runtime directory."""
    path = state_dir / NAME
    if len(os.fsencode(path)) <= _PATH_LENGTH_MAX:
        return path
    facts = state_dir.stat()
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    return runtime / f"exporter-{facts.st_dev:x}-{facts.st_ino:x}.sock"


@asynccontextmanager
async def control_socket(state_dir: Path, answer: Answer) -> AsyncIterator[None]:
    """Answer requests while in the block. A socket that a killed daemon left is replaced: the state lock allows it."""
    path = socket_path(state_dir)
    path.unlink(missing_ok=True)
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(partial(_serve, answer), str(path), limit=_REQUEST_BYTES_MAX)
    finally:
        os.umask(before)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _serve(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # A request that is under way when the daemon ends is cancelled; the client sees the closed connection.
    with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
        if _is_same_user(writer.get_extra_info("socket")):
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


def _is_same_user(connection: socket.socket) -> bool:
    if sys.platform != "linux":
        return True  # the socket's mode 0600 is what keeps others out
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(peer)[1]) in (os.getuid(), 0)


class _OtherError(ExporterError):
    """An error that the daemon answered."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(str(told.get("message")), hint=str(told.get("hint") or ""))
        self.kind = str(told.get("kind"))  # type: ignore[misc]  # as the daemon answered, not as the class says
        self.exit = Exit(int(told.get("exit", Exit.UNEXPECTED)))  # type: ignore[misc]  # as above


async def ask_daemon(
    state_dir: Path, request: dict[str, Any], progress: Callable[[dict[str, Any]], None]
) -> dict[str, Any] | None:
    """Ask the daemon of a state directory; return None when none runs there."""
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket_path(state_dir)), limit=1 << 30)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        return None
    try:
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
