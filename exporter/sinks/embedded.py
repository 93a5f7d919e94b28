"""The Mission Control in this process: asked as over the wire, but given its events as they are in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import unquote

from exporter.core.names import LOCAL
from exporter.sinks.mission_control import MissionControlSink, acknowledged, judge
from exporter.sinks.sink import Ack, Sent, no_token
from exporter.sinks.transport import ANSWER_BYTES_MAX, HttpAnswer, Transport

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message

_HOST: Final = "127.0.0.1"
_FIELDS: Final = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "scheme": "http",
    "root_path": "",
    "client": (_HOST, 0),
    "server": (_HOST, 80),
}

HandOver: TypeAlias = Callable[[str, Sequence[bytes], Sequence[str]], Awaitable[Ack | HttpAnswer]]
"""Gives a session's redacted events, and the ids that are gone, to the receiver; answers once they are durable."""


class Embedded(MissionControlSink):
    """See the module. What `hand_over` answers instead of an acknowledgement is judged like any answer."""

    def __init__(self, transport: Transport, hand_over: HandOver) -> None:
        super().__init__(LOCAL, LOCAL, transport, token=no_token, compression=False)
        self._hand_over = hand_over

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Hand over one batch in file order; `rewound` are ids that are gone from the file."""
        taken = await self._hand_over(remote_id, lines, rewound)
        return acknowledged(taken, ids) if isinstance(taken, Ack) else Sent(judge(taken, deletes=True))


class InProcessTransport:
    """Calls an application as a server would. What it raises is an answer of 500, as from a server."""

    def __init__(self, receiver: "ASGIApp", below: str = "/agents") -> None:
        self._receiver = receiver
        self._below = below

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> HttpAnswer:
        raw, _, query = (self._below + path).partition("?")
        sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        sent += [(b"host", _HOST.encode()), (b"content-length", str(len(body)).encode())]
        scope = {
            **_FIELDS,
            "method": method,
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "headers": sent,
        }
        exchange = _Exchange(body)
        try:
            await self._receiver(scope, exchange.receive, exchange.send)
        except Exception:  # starlette has logged it, and answered if it still could
            exchange.status = exchange.status or 500
        answer = b"".join(exchange.parts)
        return HttpAnswer(exchange.status, exchange.headers, answer[:answer_bytes_max], len(answer) <= answer_bytes_max)

    async def close(self) -> None:
        """Let go of nothing: the application stays its owner's."""


class _Exchange:
    """One request and its answer, as the application sees it."""

    def __init__(self, body: bytes) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self._body: bytes | None = body

    async def receive(self) -> "Message":
        if self._body is None:
            await asyncio.Event().wait()  # nobody hangs up
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: "Message") -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message["headers"]
            }
        else:
            self.parts.append(message.get("body", b""))
