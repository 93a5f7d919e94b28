"""The Mission Control in this process: requests go to its application, and events are passed in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
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
"""Passes a session's redacted events, and the ids no longer in its file, to the receiver; returns when it is stored."""


class Embedded(MissionControlSink):
    """See the module. `hand_over` returns an acknowledgement, or an answer that is judged like any other."""

    def __init__(self, transport: Transport, hand_over: HandOver) -> None:
        super().__init__(LOCAL, LOCAL, transport, token=no_token, compression=False)
        self._hand_over = hand_over
        self.in_process = True

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Pass one batch in file order; `rewound` are ids that are no longer in the file."""
        before = self.changes
        taken = await self._hand_over(remote_id, lines, rewound)
        if not isinstance(taken, Ack):
            return Sent(judge(taken, deletes=True))
        self._note_epoch(taken.epoch, taken.changes, before)
        return acknowledged(taken, ids)


@dataclass(frozen=True, slots=True)
class InProcessTransport:
    """Calls an application as a server does; an exception becomes an answer of 500."""

    receiver: "ASGIApp"
    below: str = "/agents"

    async def request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        answer_bytes_max: int = ANSWER_BYTES_MAX,
    ) -> HttpAnswer:
        to_read, status, answered, parts = [body], 0, dict[str, str](), list[bytes]()

        async def receive() -> "Message":
            if not to_read:
                await asyncio.Event().wait()  # this client never disconnects
            return {"type": "http.request", "body": to_read.pop(), "more_body": False}

        async def send(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                for name, value in message["headers"]:
                    answered[name.decode("latin-1").lower()] = value.decode("latin-1")
            else:
                parts.append(message.get("body", b""))

        try:
            await self.receiver(_scope(method, self.below + path, headers, len(body)), receive, send)
        except Exception:  # starlette has logged it, and answered if it still could
            status = status or 500
        answer = b"".join(parts)
        return HttpAnswer(status, answered, answer[:answer_bytes_max], len(answer) <= answer_bytes_max)

    async def close(self) -> None:
        """Do nothing: the application belongs to its owner."""


def _scope(method: str, target: str, headers: Mapping[str, str], length: int) -> dict[str, object]:
    """Return a request's scope of ASGI."""
    raw, _, query = target.partition("?")
    return {
        **_FIELDS,
        "method": method,
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": query.encode(),
        "headers": [
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            *((b"host", _HOST.encode()), (b"content-length", str(length).encode())),
        ],
    }
