"""What passes, told to the OTLP endpoints as metrics of their own, for as long as somebody looks on.

Nothing of it is kept: what was counted when this program ends is sent once more, and what then does not arrive is
gone. So it takes part in no mark, and spans and logs are what they are without it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from exporter.core.delivery.verdict import WORTH_REPEATING
from exporter.core.events.envelope import Envelope
from exporter.core.notice import Level, Notice
from exporter.wiring.sinks.otlp import LiveEndpoint, live_endpoint
from otel.machines.metrics.live import LiveMetering
from otel.machines.metrics.measurements import pack

if TYPE_CHECKING:
    from config.settings import Otel
    from otel.model import Measurement

SEND_SECONDS: Final = 10.0
LAST_SECONDS: Final = 2.0
_MEASUREMENTS_MAX: Final = 4096


class LiveMetrics:
    """Measures what `tell` is given, and sends it every `SEND_SECONDS` while it runs."""

    def __init__(
        self, endpoints: "Iterable[tuple[str, Otel]]", instance: str, notice: Callable[[Notice], None]
    ) -> None:
        self._endpoints = [live_endpoint(name, one, notice) for name, one in endpoints]
        self._instance = instance
        self._notice = notice
        self._metering = LiveMetering()
        self._measured: list[Measurement] = []
        self._failing: set[str] = set()

    def tell(self, session: str, envelope: Envelope) -> None:
        """Measure an event that passes."""
        self._measured += self._metering.measure(
            session, envelope.type, bytes(envelope.data), envelope.timestamp, time.time_ns()
        )
        if len(self._measured) >= _MEASUREMENTS_MAX:
            self._add()

    async def run(self) -> None:
        """Send until cancelled, and then once more."""
        try:
            while True:
                await asyncio.sleep(SEND_SECONDS)
                await self._send_all(time.time_ns())
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._send_all(None)
            for endpoint in self._endpoints:
                endpoint.close()

    def _add(self) -> None:
        packed = pack(self._measured)
        self._measured = []
        for endpoint in self._endpoints:
            endpoint.sums.add([packed])

    async def _send_all(self, until_ns: int | None) -> None:
        self._add()
        await asyncio.gather(*(self._send(endpoint, until_ns) for endpoint in self._endpoints))

    async def _send(self, endpoint: LiveEndpoint, until_ns: int | None) -> None:
        """Send what is over; what an endpoint does not take now is in the points of the next time."""
        while points := endpoint.sums.points(until_ns):
            status = await asyncio.to_thread(endpoint.send, self._instance, points)
            if not (200 <= status < 300):
                self._fail(endpoint.name, status)
                if status in WORTH_REPEATING or not 400 <= status < 500:
                    return
            else:
                self._failing.discard(endpoint.name)
            endpoint.sums.accepted()

    def _fail(self, name: str, status: int) -> None:
        if name not in self._failing:
            self._failing.add(name)
            why = f"answered {status}" if status else "no answer"
            self._notice(Notice(Level.WARNING, "counts of live events were not taken", None, name, {"why": why}))
