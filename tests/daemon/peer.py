"""An HTTP server on loopback whose every answer a test may script; behind the script stands a receiver.

It runs on a thread with an event loop of its own, as a real peer would, and speaks HTTP/1.1 by hand so that it can
misbehave below the level that frameworks reach: no answer, a reset in the middle of a body, a slow reader.
"""

import asyncio
import gzip
import json
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import httpx
import zstandard

from exporter.missioncontrol import queries
from exporter.missioncontrol.app import create_app
from exporter.missioncontrol.ingest import DeletedSessionError, UnknownSessionError
from exporter.missioncontrol.store import Store

_EVENTS = re.compile(r"/agents/sessions/([^/?]+)/events")


@dataclass(slots=True)
class Request:
    """One request as it arrived; `at` is on the monotonic clock."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    answered_at: float = 0.0
    status: int | None = None

    @property
    def is_events(self) -> bool:
        return self.method == "POST" and _EVENTS.fullmatch(self.path) is not None

    @property
    def session(self) -> str:
        match = _EVENTS.fullmatch(self.path)
        return match[1] if match else ""

    def text(self) -> bytes:
        """Return the body without its content encoding."""
        match self.headers.get("content-encoding"):
            case "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(self.body)
            case "gzip":
                return gzip.decompress(self.body)
            case _:
                return self.body

    def json(self) -> Any:
        return json.loads(self.text())

    def ids(self) -> list[str]:
        """Return the ids of the events in the body."""
        return [event["id"] for event in self.json()["events"]]


@dataclass(slots=True)
class Reply:
    """What to do with one request. `status` None passes it to the receiver; a status alone is answered unheard.

    `heard` lets the receiver have it, whatever is answered. `lost` closes the connection instead of answering, and
    `hang` never answers.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    heard: bool | None = None
    lost: bool = False
    hang: bool = False


Script = Callable[[Request], Reply | None]


class Behind(Protocol):
    """A receiver that stands behind the script."""

    async def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]: ...

    def held(self, session: str) -> list[tuple[str, bytes]]: ...

    def close(self) -> None: ...


class Floor:
    """A receiver that offers nothing above the floor, and calls every session by a name of its own."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, bytes]] = {}
        self.remote_ids: dict[str, str] = {}

    async def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        path = request.path.removeprefix("/agents")
        if request.method == "POST" and path == "/sessions":
            session = request.json()["id"]
            remote = self.remote_ids.setdefault(session, f"remote-{session}")
            self.events.setdefault(remote, {})
            return 200, {}, json.dumps({"id": remote, "task_id": f"task-{session}"}).encode()
        remote = path.split("/")[2].partition("?")[0]
        if remote not in self.events:
            return 404, {}, b"{}"
        if request.is_events:
            for event in request.json()["events"]:
                self.events[remote].setdefault(event["id"], json.dumps(event).encode())
            return 200, {}, b""
        return 200, {}, json.dumps({"id": remote}).encode()

    def held(self, session: str) -> list[tuple[str, bytes]]:
        return list(self.events.get(self.remote_ids.get(session, ""), {}).items())

    def forget(self, session: str) -> None:
        """Lose a session, as a receiver does whose database was reset."""
        self.events.pop(self.remote_ids.pop(session), None)

    def close(self) -> None:
        pass


class Full:
    """The receiver of this project with every capability; `change` may alter what it answers to a registration."""

    def __init__(self, path: Path, change: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.path = path
        self.change = change
        self.open()

    def open(self) -> None:
        """Open the store, again after `close`: a restart of the receiver."""
        self.store = Store(self.path)
        self._client = httpx.AsyncClient(transport=httpx.ASGITransport(create_app(self.store)))

    async def answer(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        answer = await self._client.request(
            request.method, f"http://127.0.0.1{request.path}", headers=headers, content=request.body or None
        )
        body = answer.content
        if self.change is not None and answer.status_code == 200 and not request.is_events:
            changed = answer.json()
            if "capabilities" in changed:
                self.change(changed)
                body = json.dumps(changed).encode()
        return answer.status_code, {}, body

    def held(self, session: str) -> list[tuple[str, bytes]]:
        """Return what is shown of a session, in order: ids and exact bytes."""
        found: list[tuple[str, bytes]] = []
        page = queries.EventPage([], None)
        while not found or page.next is not None:
            try:
                page = self.store.do(partial(queries.events, session_id=session, after=page.next, limit=500))
            except (UnknownSessionError, DeletedSessionError):
                return []
            if not page.bodies:
                break
            found += [(json.loads(body)["id"], body) for body in page.bodies]
        return found

    def close(self) -> None:
        self.store.close()


class Peer:
    """The server. Requests are in `requests` in the order in which they arrived."""

    def __init__(self, behind: Behind, *, tls: ssl.SSLContext | None = None) -> None:
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
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connection, "127.0.0.1", self.port, ssl=self._tls, limit=1 << 20)
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
