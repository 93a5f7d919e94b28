"""The exporter's own figures, sent to the OTLP endpoints that the settings want to have them."""

import asyncio
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from exporter.core.notice import Level, Notice
from exporter.daemon.status_report import sink_status
from exporter.sinks.otlp import Otlp
from exporter.state.marks import exporter_id
from exporter.version import VERSION
from exporter.wiring.sinks.otlp import endpoint_of

if TYPE_CHECKING:
    from config.settings import Otel
    from exporter.daemon.daemon import Daemon
    from exporter.pipeline.sink_workers import SinkWorkers
    from otel.bridge import Tally
    from otel.health import Figures, SinkFigures

_LOOK_SECONDS: Final = 5.0


async def send_health(endpoints: "Iterable[Otel]", daemon: "Daemon", tally: "Tally") -> None:
    """Send until cancelled. Figures are read here, where the daemon lives, and handed to the SDK's own threads."""
    from otel.health import Figures, Health

    latest = [Figures()]
    sending = []

    def failed(why: str) -> None:
        daemon.notice(Notice(Level.WARNING, "the exporter's own figures were not taken", fields={"why": why}))

    for one in endpoints:
        attributes = {"service.name": "session-exporter", "service.version": VERSION}
        attributes["service.instance.id"] = exporter_id(daemon.store)
        sending.append(
            Health(
                endpoint_of(one),
                lambda: latest[0],
                attributes | one.resource_attributes,
                VERSION,
                failed=failed,
                temporality=one.temporality,
            )
        )
    try:
        for health in sending:
            health.start()
        while True:
            latest[0] = _figures(daemon, tally)
            await asyncio.sleep(_LOOK_SECONDS)
    finally:
        latest[0] = _figures(daemon, tally)
        await asyncio.gather(*(asyncio.to_thread(health.stop) for health in sending))


def _figures(daemon: "Daemon", tally: "Tally") -> "Figures":
    from otel.health import Figures

    redactions: Counter[str] = Counter()
    for run in daemon.runs[:1]:
        for lane in run.lanes.values():
            redactions.update(lane.progress.rules)
    return Figures(
        {run.name: _sink_figures(run) for run in daemon.runs},
        redactions,
        dict(tally.unknown),
        tally.orphans,
        daemon.quarantine.count(),
        sum(tally.defects.values()),
    )


def _sink_figures(run: "SinkWorkers") -> "SinkFigures":
    from otel.health import SinkFigures

    status, sink = sink_status(run), run.sink_state.sink
    rejected, repeated = (sink.rejected, sink.repeated) if isinstance(sink, Otlp) else (0, 0)
    return SinkFigures(
        status.lag_events, status.lag_bytes, status.lag_seconds, run.waiting, status.retries, repeated, rejected
    )
