"""A scripted agent host behind a real WebSocket."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus

from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from tests.core.ahp.scripted import STEPS, ScriptedHost

TOKEN = "made/up-token+of&a=host"


class Server:
    """A scripted host behind a WebSocket."""

    def __init__(self, host: ScriptedHost) -> None:
        self.host = host
        self.port = 0
        self.scheme = "ws"
        self.paths: list[str] = []
        self.connections: list[ServerConnection] = []
        self.say: Callable[[ServerConnection], Awaitable[None]] | None = None

    def do(self, *steps: str) -> None:
        for step in steps:
            STEPS[step](self.host)
        self.deliver()

    def deliver(self) -> None:
        for frame in self.host.told:
            for connection in self.connections:
                connection.protocol.send_text(json.dumps(frame).encode())
                connection.send_data()
        self.host.told.clear()

    def drop(self) -> None:
        self.host.drop()
        for connection in self.connections:
            connection.transport.abort()
        self.connections.clear()

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.paths.append(request.path)
        if request.path == "/?tkn=made%2Fup-token%2Bof%26a%3Dhost":
            return None
        return connection.respond(HTTPStatus.FORBIDDEN, f"wrong token {request.path}")

    async def serve(self, connection: ServerConnection) -> None:
        if self.say is not None:
            await self.say(connection)
            return
        self.connections.append(connection)
        async for frame in connection:
            asked = json.loads(frame)
            if "id" in asked and "method" in asked:
                answer = {"jsonrpc": "2.0", "id": asked["id"], **self.host.answer(asked["method"], asked["params"])}
                await connection.send(json.dumps(answer))
                self.deliver()


@asynccontextmanager
async def serving(host: ScriptedHost, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(host)
    quiet = logging.Logger("quiet", logging.CRITICAL + 1)
    serving = serve(server.serve, "127.0.0.1", 0, process_request=server.admit, logger=quiet, ssl=tls)
    async with serving as listening:
        server.port = next(iter(listening.sockets)).getsockname()[1]
        yield server
