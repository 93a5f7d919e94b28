"""What a monitor is told of a running exporter: its metrics, that it is alive, and whether it is ready.

Metrics have the names under which Prometheus stores what `health = true` sends, so that dashboards and alerts hold for
both. Labels hold names of sinks, rules and types of events; never a session, a title or a path.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from config.token import latest, read_token
from config.url import host_and_port
from exporter.daemon.daemon import Daemon
from exporter.daemon.metrics_listener import Asked, Listening, Page, Told, listening
from exporter.daemon.status_report import sink_status
from exporter.pipeline.sink_state import UNWRITABLE
from exporter.state.marks import StoreDamagedError, StoreUnwritableError
from exporter.version import VERSION
from exporter.wiring.telemetry import figures
from otel import health
from otel.names import Instrument

if TYPE_CHECKING:
    from config.settings import Metrics
    from otel.bridge import Tally

_WRITE_SECONDS: Final = 30.0
_WRITTEN: Final = "monitored"


class Exposition(Collector):
    """The metrics, read anew for each request."""

    def __init__(self, daemon: Daemon, tally: "Tally | None", problems: Callable[[], list[str]]) -> None:
        self._daemon, self._tally, self._problems = daemon, tally, problems

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield InfoMetricFamily("session_exporter_build", "version of the exporter", {"version": VERSION})
        for row, values in (health.points(figures(self._daemon, self._tally)) | self._scraped()).items():
            family = _FAMILIES[row.kind](stored_name(row), row.meaning, labels=[_plain(one.name) for one in row.labels])
            for label, value in values.items():
                family.add_metric([label] if row.labels else [], value)
            yield family

    def _scraped(self) -> dict[Instrument, dict[str, float]]:
        daemon = self._daemon
        states = {run.name: sink_status(run).state for run in daemon.runs}
        successes = {run.name: run.sink_state.last_success for run in daemon.runs}
        accepted = {run.name: sum(lane.progress.events for lane in run.lanes.values()) for run in daemon.runs}
        return {
            health.PROBLEMS: {"": len(self._problems())},
            health.WAITING: {name: float(state == "waiting") for name, state in states.items()},
            health.REFUSED: {name: float(state == "refused") for name, state in states.items()},
            health.ACCEPTED: dict(accepted),
            health.LAST_SUCCESS: {name: last for name, last in successes.items() if last is not None},
            health.SESSIONS: {"": sum(file.identity is not None for file in daemon.files.values())},
            health.STARTED: {"": daemon.started},
        }


_FAMILIES: Final[dict[str, type[CounterMetricFamily | GaugeMetricFamily]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
}


def stored_name(row: Instrument) -> str:
    """Return the name under which Prometheus stores a row that comes by OTLP; `_total` is added to a counter's."""
    return _plain(row.name) + ("_seconds" if row.unit == "s" else "")


def _plain(name: str) -> str:
    return name.replace(".", "_")


class Readiness:
    """Whether the exporter follows and can remember; a sink that is away is no reason against it."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._asked_at = float("-inf")
        self._unwritable = ""

    def problems(self) -> list[str]:
        """Return why it is not ready; empty while it is."""
        found = [] if self._daemon.ready.is_set() else ["it does not follow yet"]
        if self._daemon.is_ending:
            found.append("it ends")
        if any(lane.progress.problem == UNWRITABLE for run in self._daemon.runs for lane in run.lanes.values()):
            found.append("the state directory cannot be written")
        elif why := self._cannot_write():
            found.append(why)
        return found

    def _cannot_write(self) -> str:
        """Write, now and then, as nothing else may for hours."""
        if time.monotonic() >= self._asked_at + _WRITE_SECONDS or self._unwritable:
            self._asked_at, self._unwritable = time.monotonic(), ""
            try:
                self._daemon.store.remember(_WRITTEN, str(int(time.time())))
            except (StoreUnwritableError, StoreDamagedError):
                self._unwritable = "the state directory cannot be written"
        return self._unwritable

    def told(self, asked: Asked) -> Told:
        """Answer /readyz: the sinks are in the body, for who may know them."""
        problems = self.problems()
        body: dict[str, Any] = {"status": "not ready" if problems else "ready", "problems": problems}
        if asked.is_trusted:
            body["sinks"] = {run.name: sink_status(run).state for run in self._daemon.runs}
        status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
        return Told(status, json.dumps(body).encode() + b"\n", "application/json")


def monitored(
    settings: "Metrics", address: str, daemon: Daemon, tally: "Tally | None"
) -> AbstractAsyncContextManager[int]:
    """Return what answers monitors at this address while it is entered, and yields its port."""
    host, port = host_and_port(address)
    ready, registry = Readiness(daemon), CollectorRegistry(auto_describe=False)
    registry.register(Exposition(daemon, tally, ready.problems))

    def metrics(asked: Asked) -> Told:
        encode, content_type = choose_encoder(asked.accept)
        return Told(HTTPStatus.OK, encode(registry), content_type)

    pages: dict[str, Page] = {
        "/metrics": metrics,
        "/healthz": lambda _: Told(HTTPStatus.OK, b'{"status": "ok"}\n', "application/json"),
        "/readyz": ready.told,
    }
    where = Listening(
        host=host,
        port=port,
        token=latest(partial(read_token, settings), read_token(settings)),
        open_pages=frozenset(("/healthz", "/readyz")),
    )
    return listening(where, pages)
