"""What OTLP endpoints are sent besides the sessions: health metrics, metrics of live events, logs of agent hosts.

None of it is stored: it belongs to no mark, and what has not been accepted when this program ends is lost. Imported
only where an endpoint is configured.
"""

import asyncio
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Final

import msgspec

from config.settings import Settings
from exporter.core.delivery.verdict import WORTH_REPEATING
from exporter.core.events.envelope import REFUSALS, Envelope
from exporter.core.events.redaction import Masked, RedactEvent, Refused
from exporter.core.notice import Level, Notice, NoticeName
from exporter.daemon.daemon import Daemon
from exporter.daemon.status_report import sink_status
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sinks.otlp import Otlp
from exporter.state.marks import MarkStore, exporter_id
from exporter.version import VERSION
from exporter.wiring.otlp_endpoint import EndpointSums, OtlpEndpoint, endpoint_of
from otel.bridge import Tally
from otel.encode.host_logs import log_request
from otel.health import Figures, Health, SinkFigures
from otel.machines.metrics.live import LiveMetering
from otel.machines.metrics.measurements import pack
from otel.model import Measurement

METHOD: Final = "otlp/exportLogs"
GATHER_SECONDS: Final = 0.5
PAUSE_SECONDS: Final = (1.0, 60.0)
HELD_BYTES_MAX: Final = 4 << 20
REQUEST_BYTES_MAX: Final = 1 << 20
SEND_SECONDS: Final = 10.0
LAST_SECONDS: Final = 2.0
_MEASUREMENTS_MAX: Final = 4096
_LOOK_SECONDS: Final = 5.0


def _is_refused(status: int) -> bool:
    """Tell whether an endpoint will not accept a request later either."""
    return 400 <= status < 500 and status not in WORTH_REPEATING


# ---- health metrics ---------------------------------------------------------------------------------------------


async def send_health(settings: Settings, daemon: Daemon, tally: Tally) -> None:
    """Send health metrics until cancelled. Figures are read here, on the daemon's loop; the SDK's threads send them."""
    endpoints = [one for one in settings.otel.values() if one.health]
    if not endpoints:
        return
    present = Figures()

    def failed(why: str) -> None:
        text = "the exporter's own figures were not taken"
        daemon.notice(Notice(NoticeName.TELEMETRY_REJECTED, Level.WARNING, text, fields={"why": why}))

    attributes = {"service.name": "session-exporter", "service.version": VERSION}
    attributes["service.instance.id"] = exporter_id(daemon.store)
    host = {"host.name": settings.host_name or socket.gethostname()}
    sending = [
        Health(
            endpoint_of(one),
            lambda: present,
            attributes | (host if one.host_name and one.content != "none" else {}) | one.resource_attributes,
            VERSION,
            failed=failed,
            temporality=one.temporality,
        )
        for one in endpoints
    ]
    try:
        for health in sending:
            health.start()
        while True:
            present = figures(daemon, tally)
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        present = figures(daemon, tally)
        await asyncio.gather(*(asyncio.to_thread(health.stop) for health in sending))


def figures(daemon: Daemon, tally: Tally | None) -> Figures:
    """Return the present figures; without `tally` nothing is known of telemetry."""
    redactions: Counter[str] = Counter()
    for run in daemon.runs[:1]:
        for lane in run.lanes.values():
            redactions.update(lane.progress.rules)
    return Figures(
        {run.name: _sink_figures(run) for run in daemon.runs},
        redactions,
        dict(tally.unknown) if tally is not None else {},
        tally.orphans if tally is not None else 0,
        daemon.quarantine.count(),
        sum(daemon.defects.values()),
    )


def _sink_figures(run: SinkWorkers) -> SinkFigures:
    status, sink = sink_status(run), run.sink_state.sink
    rejected, repeated = (sink.rejected, sink.repeated) if isinstance(sink, Otlp) else (0, 0)
    return SinkFigures(
        status.lag_events, status.lag_bytes, status.lag_seconds, run.waiting, status.retries, repeated, rejected
    )


# ---- metrics of live events -------------------------------------------------------------------------------------


class LiveMetrics:
    """Measures the events that `tell` is given, and sends the sums every `SEND_SECONDS` while it runs."""

    def __init__(self, endpoints: list[OtlpEndpoint], instance: str, notice: Callable[[Notice], None]) -> None:
        self._endpoints = [(one, EndpointSums(one, None, notice)) for one in endpoints]
        self._instance = f"{instance}/live"  # a resource of its own: the times of each grow by themselves
        self._notice = notice
        self._metering = LiveMetering()
        self._measured: list[Measurement] = []
        self._failing: set[str] = set()

    def tell(self, session: str, envelope: Envelope) -> None:
        """Measure an ephemeral event."""
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
            for endpoint, _ in self._endpoints:
                endpoint.close()

    def _add(self) -> None:
        packed = pack(self._measured)
        self._measured = []
        for _, sums in self._endpoints:
            sums.add([packed])

    async def _send_all(self, until_ns: int | None) -> None:
        self._add()
        await asyncio.gather(*(self._send(endpoint, sums, until_ns) for endpoint, sums in self._endpoints))

    async def _send(self, endpoint: OtlpEndpoint, sums: EndpointSums, until_ns: int | None) -> None:
        """Send the sums that are complete; those that an endpoint does not accept now are sent again next time."""
        while points := sums.points(until_ns, repeats=True):
            body = endpoint.assemble(self._instance, points, is_metrics=True)
            status = await asyncio.to_thread(endpoint.status_of, "metrics", body)
            if 200 <= status < 300:
                self._failing.discard(endpoint.name)
            else:
                if endpoint.name not in self._failing:
                    self._failing.add(endpoint.name)
                    self._notice(endpoint.not_taken("counts of live events", status))
                if not _is_refused(status):
                    return
            sums.accepted()


# ---- logs of agent hosts ----------------------------------------------------------------------------------------


class HostLogs:
    """Redacts the logs that `take` is given and sends them while it runs."""

    def __init__(self, endpoints: list[OtlpEndpoint], redact: RedactEvent, notice: Callable[[Notice], None]) -> None:
        self._redact = redact
        self._queues = [_LogQueue(one, notice) for one in endpoints]

    def take(self, method: str, frame: bytes) -> None:
        """Redact the logs in a notification of a host and hold them until they are sent."""
        logs = _logs(frame) if method == METHOD and len(frame) <= HELD_BYTES_MAX else None
        shown = None if logs is None else self._redact(logs)
        if shown is None or isinstance(shown, Refused):
            return
        request = log_request(msgspec.json.decode(shown.line if isinstance(shown, Masked) else shown))
        for queue in self._queues:
            queue.add(request)

    async def run(self) -> None:
        """Send until cancelled."""
        try:
            await asyncio.gather(*(queue.run() for queue in self._queues), return_exceptions=True)
        finally:
            for queue in self._queues:
                queue.endpoint.close()


class _LogQueue:
    """The requests that wait for one endpoint, at most `HELD_BYTES_MAX` of them: the oldest ones are dropped."""

    def __init__(self, endpoint: OtlpEndpoint, notice: Callable[[Notice], None]) -> None:
        self.endpoint = endpoint
        self._notice = notice
        self._requests: deque[bytes] = deque()
        self._held = 0
        self._came = asyncio.Event()
        self._failures = 0

    def add(self, request: bytes) -> None:
        """Hold a request."""
        self._requests.append(request)
        self._held += len(request)
        while self._held > HELD_BYTES_MAX:
            self._held -= len(self._requests.popleft())
        self._came.set()

    async def run(self) -> None:
        """Send what waits, and again while that may help."""
        shortest, longest = PAUSE_SECONDS
        while True:
            await self._came.wait()
            self._came.clear()
            await asyncio.sleep(GATHER_SECONDS)
            while self._requests:
                body = self._next()
                while not self._is_over(await asyncio.to_thread(self.endpoint.status_of, "logs", body)):  # noqa: ASYNC110
                    await asyncio.sleep(min(longest, shortest * 2 ** min(self._failures, 16)))

    def _next(self) -> bytes:
        some = [self._requests.popleft()]
        while self._requests and sum(map(len, some)) + len(self._requests[0]) <= REQUEST_BYTES_MAX:
            some.append(self._requests.popleft())
        self._held -= sum(map(len, some))
        return b"".join(some)

    def _is_over(self, status: int) -> bool:
        """Tell whether a request was accepted, or will not be accepted later either."""
        if 200 <= status < 300:
            self._failures = 0
            return True
        self._failures += 1
        if self._failures == 1:
            self._notice(self.endpoint.not_taken("logs of an agent host", status))
        return _is_refused(status)


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


class SideTelemetry:
    """What is sent to the endpoints besides the sessions; `tally` counts for the health metrics.

    `tell` takes live events where there is a source of them and an endpoint that takes metrics. `take` takes logs of
    agent hosts where there is such a host and an endpoint that may have texts. Elsewhere they are None.
    """

    def __init__(
        self, settings: Settings, store: MarkStore, redact: RedactEvent, notice: Callable[[Notice], None]
    ) -> None:
        found = settings.otel.items() if settings.source else ()
        host = settings.host_name or socket.gethostname()
        metered = [OtlpEndpoint(name, one, host=host) for name, one in found if "metrics" in one.signals]
        if not any(one.url.startswith("ahp+") for one in settings.source):
            found = ()
        texts = [OtlpEndpoint(name, one) for name, one in found if one.content == "redacted" and "logs" in one.signals]
        self.tally = Tally()
        self._settings = settings
        self._live = LiveMetrics(metered, exporter_id(store), notice) if metered else None
        self._logs = HostLogs(texts, redact, notice) if texts else None
        self.tell = self._live.tell if self._live is not None else None
        self.take = self._logs.take if self._logs is not None else None

    def tasks(self, daemon: Daemon) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        """Return what is to run while the exporter is served."""
        daemon.defects = self.tally.defects
        tasks = [one.run for one in (self._live, self._logs) if one is not None]
        return [partial(send_health, self._settings, daemon, self.tally), *tasks]
