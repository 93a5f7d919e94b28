"""A proxy on loopback in front of a receiver: it passes on, answers 503, resets what comes, or is down."""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

Mode: TypeAlias = Literal["pass", "503", "reset", "down"]
MODES: Final[tuple[Mode, ...]] = ("503", "reset", "down")
_BUSY: Final = b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_RESET: Final = struct.pack("ii", 1, 0)


class Flapping:
    """The proxy of one receiver on `behind`, on a thread of its own. `turn` changes what it does."""

    def __init__(self, behind: int) -> None:
        self._behind = behind
        self._mode: Mode = "pass"
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.port = 0
        self._server: asyncio.Server | None = None
        self._do(self._listen())

    def turn(self, mode: Mode) -> None:
        """Do this from now on; every connection that is open ends."""
        self._do(self._turn(mode))

    def close(self) -> None:
        """End every connection and stop listening."""
        self.turn("down")
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, what: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(what, self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _turn(self, mode: Mode) -> None:
        self._mode = mode
        for writer in self._writers:
            writer.transport.abort()
        if mode == "down" and self._server is not None:
            self._server.close()
            self._server = None
        elif mode != "down" and self._server is None:
            await self._listen()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._serve(reader, writer)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode == "503":
            await reader.read(65_536)
            writer.write(_BUSY)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        elif self._mode == "reset":
            await reader.read(200)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        else:
            far, away = await asyncio.open_connection("127.0.0.1", self._behind)
            self._writers.add(away)
            try:
                there, back = asyncio.create_task(_pump(reader, away)), asyncio.create_task(_pump(far, writer))
                _, rest = await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
                for task in rest:
                    task.cancel()
                await asyncio.gather(there, back, return_exceptions=True)
            finally:
                self._writers.discard(away)
                away.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while some := await reader.read(65_536):
        writer.write(some)
        await writer.drain()
