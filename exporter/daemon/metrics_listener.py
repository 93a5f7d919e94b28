"""The port of `[metrics] listen`: what a monitor asks of a running exporter, by HTTP.

One request per connection, of which only the first line and three headers are read. Nobody can make it hold much: a
head is small and has to come soon, and connections are few.
"""

import asyncio
import errno
import hmac
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from exporter.errors import SettingsError

_HEAD_BYTES_MAX: Final = 8_192
_SECONDS: Final = 10.0
_CONNECTIONS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: `accept` is what the client reads, `is_trusted` whether it has the token where one is needed."""

    accept: str
    is_trusted: bool
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Told:
    """An answer."""

    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Page: TypeAlias = Callable[[Asked], Told]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where to listen, and for whom. `token` returns the token that pages other than those of `open_pages` need.

    `name` is what errors call it.
    """

    host: str
    port: int
    token: Callable[[], str | None] = lambda: None
    open_pages: frozenset[str] = frozenset()
    name: str = "[metrics]"

    @property
    def hint(self) -> str:
        """What helps when the address cannot be had."""
        return f"choose another port in {self.name} listen"


@asynccontextmanager
async def listening(where: Listening, pages: Mapping[str, Page]) -> AsyncIterator[int]:
    """Answer requests for these pages while in the block; yield the port.

    Raises `SettingsError` where the address cannot be had.
    """
    sockets = await _bound(where)
    working: dict[asyncio.Task[None], None] = {}

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is met in a task"
        if len(working) >= _CONNECTIONS_MAX:  # who says nothing holds up nobody
            next(iter(working)).cancel()
        working[task] = None
        task.add_done_callback(lambda task: working.pop(task, None))
        try:
            async with asyncio.timeout(_SECONDS):
                await _converse(reader, writer, where, pages)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    servers = [await asyncio.start_server(meet, sock=one, limit=_HEAD_BYTES_MAX) for one in sockets]
    try:
        yield sockets[0].getsockname()[1]
    finally:
        for server in servers:
            server.close()
        for task in list(working):
            task.cancel()


async def _bound(where: Listening) -> list[socket.socket]:
    """Return a socket for every address that the host is."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise SettingsError(f"{where.name} cannot listen on {where.host}: {error.strerror}", hint=where.hint) from None
    sockets: list[socket.socket] = []
    for family, kind, protocol, _, address in found if where.port else found[:1]:
        one = socket.socket(family, kind, protocol)
        sockets.append(one)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind(address)
        except OSError as error:
            for each in sockets:
                each.close()
            is_taken = error.errno == errno.EADDRINUSE
            why = f"port {where.port} is in use" if is_taken else f"{where.host}:{where.port}: {error.strerror}"
            raise SettingsError(f"{where.name} cannot listen: {why}", hint=where.hint) from None
    return sockets


async def _converse(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, where: Listening, pages: Mapping[str, Page]
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    told, is_head = _answer(head, where, pages)
    reason = HTTPStatus(told.status).phrase
    more = "WWW-Authenticate: Bearer\r\n" if told.status == HTTPStatus.UNAUTHORIZED else ""
    lines = (
        f"HTTP/1.1 {told.status} {reason}\r\nContent-Type: {told.content_type}\r\n{more}"
        f"Content-Length: {len(told.body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    )
    writer.write(lines.encode("latin-1") + (b"" if is_head else told.body))
    await writer.drain()
    with suppress(OSError):
        writer.write_eof()


def _answer(head: list[str], where: Listening, pages: Mapping[str, Page]) -> tuple[Told, bool]:
    method, _, rest = head[0].partition(" ")
    path, _, version = rest.partition(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    if not version.startswith("HTTP/1."):
        return Told(HTTPStatus.BAD_REQUEST, b"this is no HTTP request\n"), False
    page = pages.get(path.partition("?")[0])
    if page is None:
        return Told(HTTPStatus.NOT_FOUND, f"there are {', '.join(pages)}\n".encode()), method == "HEAD"
    if method not in ("GET", "HEAD"):
        return Told(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET and HEAD\n"), False
    if _is_local(where.host) and not _is_local(_without_port(headers.get("host", "localhost"))):
        # A page of another site whose name was made to mean this machine.
        return Told(HTTPStatus.FORBIDDEN, b"this is served to this machine, by its own names\n"), method == "HEAD"
    token = where.token()
    given = headers.get("authorization", "").partition(" ")
    is_trusted = token is None or (
        given[0].lower() == "bearer" and hmac.compare_digest(given[2].strip().encode(), token.encode())
    )
    if not is_trusted and path not in where.open_pages:
        return Told(
            HTTPStatus.UNAUTHORIZED, f"the token of {where.name} token_file is needed\n".encode()
        ), method == "HEAD"
    query = dict(parse_qsl(path.partition("?")[2]))
    return page(Asked(headers.get("accept", ""), is_trusted, query)), method == "HEAD"


def _without_port(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host


def _is_local(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host.lower() == "localhost"
