"""What agent hosts log of themselves, passed on to the OTLP endpoints that may have texts.

It is passed on as it came, with secrets masked, and owed to nobody: the oldest is dropped when an endpoint does not
take it, and what is there when this program ends is gone. It belongs to no session and moves no mark.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from exporter.core.delivery.verdict import WORTH_REPEATING
from exporter.core.events.envelope import REFUSALS
from exporter.core.events.redaction import Masked, RedactEvent, Refused
from exporter.core.notice import Level, Notice
from exporter.wiring.sinks.otlp import endpoint_of, status_of

if TYPE_CHECKING:
    from config.settings import Otel
    from otel.send.sender import Sender

METHOD: Final = "otlp/exportLogs"
GATHER_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = (1.0, 60.0)
HELD_BYTES_MAX: Final = 4 << 20
REQUEST_BYTES_MAX: Final = 1 << 20


class HostLogs:
    """Takes what hosts tell (`take`) and sends it while it runs. `dropped` counts what was not passed on."""

    def __init__(
        self, endpoints: "Iterable[tuple[str, Otel]]", redact: RedactEvent, notice: Callable[[Notice], None]
    ) -> None:
        self.dropped = 0
        self._redact = redact
        self._frames: deque[bytes] = deque()
        self._held = 0
        self._came = asyncio.Event()
        self._endpoints = [_Endpoint(name, one, notice) for name, one in endpoints]

    def take(self, method: str, frame: bytes) -> None:
        """Hold a notification of a host until its turn has come."""
        if method != METHOD or len(frame) > HELD_BYTES_MAX:
            self.dropped += 1
            return
        self._frames.append(frame)
        self._held += len(frame)
        while self._held > HELD_BYTES_MAX:
            self._held -= len(self._frames.popleft())
            self.dropped += 1
        self._came.set()

    async def run(self) -> None:
        """Mask and send until cancelled."""
        sending = [asyncio.create_task(one.run()) for one in self._endpoints]
        try:
            while True:
                await self._came.wait()
                self._came.clear()
                await asyncio.sleep(GATHER_SECONDS)
                while self._frames:
                    self._pass_on(self._frames.popleft())
                    await asyncio.sleep(0)
        finally:
            for task in sending:
                task.cancel()
            await asyncio.gather(*sending, return_exceptions=True)
            for one in self._endpoints:
                one.close()

    def _pass_on(self, frame: bytes) -> None:
        from otel.encode.host_logs import log_request

        self._held -= len(frame)
        logs = _logs(frame)
        shown = None if logs is None else self._redact(logs)
        if shown is None or isinstance(shown, Refused):
            self.dropped += 1
            return
        request = log_request(msgspec.json.decode(shown.line if isinstance(shown, Masked) else shown))
        for one in self._endpoints:
            self.dropped += one.add(request)


class _Endpoint:
    """What is on its way to one endpoint."""

    def __init__(self, name: str, one: "Otel", notice: Callable[[Notice], None]) -> None:
        self._name = name
        self._settings = one
        self._notice = notice
        self._sender: Sender | None = None
        self._requests: deque[bytes] = deque()
        self._held = 0
        self._came = asyncio.Event()
        self._failures = 0

    def add(self, request: bytes) -> int:
        """Hold a request; return how many older ones had to go for it."""
        self._requests.append(request)
        self._held += len(request)
        dropped = 0
        while self._held > HELD_BYTES_MAX:
            self._held -= len(self._requests.popleft())
            dropped += 1
        self._came.set()
        return dropped

    async def run(self) -> None:
        """Send what is held, and the same again while that may help."""
        from otel.send.sender import sender_for

        self._sender = sender_for(endpoint_of(self._settings), connections=1)
        while True:
            await self._came.wait()
            self._came.clear()
            while self._requests:
                body = self._next()
                while not self._is_over(await asyncio.to_thread(status_of, self._sender, "logs", body)):
                    shortest, longest = PAUSE_SECONDS
                    await asyncio.sleep(min(longest, shortest * 2 ** min(self._failures, 16)))

    def close(self) -> None:
        """Let go of the connection."""
        if self._sender is not None:
            self._sender.close()

    def _next(self) -> bytes:
        some = [self._requests.popleft()]
        while self._requests and sum(map(len, some)) + len(self._requests[0]) <= REQUEST_BYTES_MAX:
            some.append(self._requests.popleft())
        self._held -= sum(map(len, some))
        return b"".join(some)

    def _is_over(self, status: int) -> bool:
        """Tell whether a request was taken, or will not be taken later either."""
        if 200 <= status < 300:
            self._failures = 0
            return True
        self._failures += 1
        if self._failures == 1:
            why = f"answered {status}" if status else "no answer"
            self._notice(Notice(Level.WARNING, "logs of an agent host were not taken", None, self._name, {"why": why}))
        return 400 <= status < 500 and status not in WORTH_REPEATING


def _logs(frame: bytes) -> bytes | None:
    """Return the logs in a notification, None where there are none."""
    try:
        message: Any = msgspec.json.decode(frame)
        params = message.get("params") if isinstance(message, dict) else None
        given = params.get("payload", params) if isinstance(params, dict) else None
        logs = given.get("resourceLogs") if isinstance(given, dict) else None
        return msgspec.json.encode({"resourceLogs": logs}) if isinstance(logs, list) else None
    except REFUSALS:
        return None
