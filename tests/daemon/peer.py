"""An HTTP server on loopback whose every answer a test may script; behind the script stands a receiver.

It runs on a thread with an event loop of its own, as a real peer would, and speaks HTTP/1.1 by hand so that it can
misbehave below the level that frameworks reach: no answer, a reset in the middle of a body, a slow reader.
"""

import asyncio
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from tests.daemon.exchange import Reply, Request
from tests.daemon.receivers import Behind

Script = Callable[[Request], Reply | None]


class Peer:
    """The server. Requests are in `requests` in the order in which they arrived."""

    def __init__(
        self, behind: Behind, *, tls: ssl.SSLContext | None = None, listener: socket.socket | None = None
    ) -> None:
        """`listener` is a socket that listens already, such as one of another network namespace."""
        self.behind = behind
        self.requests: list[Request] = []
        self.script: Script = lambda request: None
        self.next_replies: deque[Reply] = deque()
        """Used up one by one by requests that carry events."""
        self.resets: int = 0
        """How many of the next bodies are cut off in the middle."""
        self.slow_seconds = 0.0
        """How long to wait before each further 64 KiB of a body."""
        self.keep_bodies = True
        self.open_requests: dict[str, int] = {}
        self.open_requests_max: dict[str, int] = {}
        self.open_max = 0
        self.connections = 0
        self.port = 0
        self._tls = tls
        self._listener = listener
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # ---- what a test asks -----------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}/agents"

    def event_requests(self, session: str | None = None) -> list[Request]:
        return [one for one in list(self.requests) if one.is_events and session in (None, one.session)]

    def ids(self, session: str = "s") -> list[str]:
        """Return the ids that the receiver shows of a session, in its order."""
        return [identity for identity, _ in self.behind.held(session)]

    def busy(self) -> bool:
        return any(self.open_requests.values())

    # ---- life -----------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self.behind.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        place: dict[str, Any] = {"sock": self._listener}
        if self._listener is None:
            place = {"host": "127.0.0.1", "port": self.port}
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connection, **place, ssl=self._tls, limit=1 << 20)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError, RuntimeError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            with suppress(Exception):
                writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        request = Request(method, path, headers, b"", time.monotonic())
        length = int(headers.get("content-length", "0"))
        if self.resets and request.is_events:
            self.resets -= 1
            await reader.readexactly(min(length, 100))
            writer.transport.abort()
            return False
        key = request.session
        self._count(key, 1)
        try:
            request.body = await self._body(reader, length)
            self.requests.append(request)
            reply = self._reply(request)
            heard = reply.status is None if reply.heard is None else reply.heard
            status, extra, body = await self.behind.answer(request) if heard else (200, {}, b"")
            if not self.keep_bodies:
                request.body = b""
            if reply.hang:
                await reader.read(1)
                return False
            if reply.delay:
                await asyncio.sleep(reply.delay)
            if reply.lost:
                writer.transport.abort()
                return False
            status = reply.status or status
            request.status, request.answered_at = status, time.monotonic()
            self._answer(writer, status, {**extra, **reply.headers}, body if reply.body is None else reply.body)
        finally:
            self._count(key, -1)
        await writer.drain()
        return True

    def _reply(self, request: Request) -> Reply:
        scripted = self.script(request)
        if scripted is None and request.is_events and self.next_replies:
            scripted = self.next_replies.popleft()
        return scripted or Reply()

    def _count(self, key: str, change: int) -> None:
        self.open_requests[key] = self.open_requests.get(key, 0) + change
        self.open_requests_max[key] = max(self.open_requests_max.get(key, 0), self.open_requests[key])
        self.open_max = max(self.open_max, sum(count for name, count in self.open_requests.items() if name))

    async def _body(self, reader: asyncio.StreamReader, length: int) -> bytes:
        if not self.slow_seconds:
            return await reader.readexactly(length)
        body = bytearray()
        while len(body) < length:
            if self.slow_seconds:
                await asyncio.sleep(self.slow_seconds)
            body += await reader.readexactly(min(65_536, length - len(body)))
        return bytes(body)

    def _answer(self, writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> None:
        lines = [f"HTTP/1.1 {status} Scripted", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
