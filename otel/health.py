"""The exporter's own health metrics, sent by OpenTelemetry's SDK if configured.

The SDK reads the present figures at its own interval and sends them with its own exporter. A failure is reported to the
caller and loses nothing: the next request has the same figures.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from otel.model import Temporality
from otel.names import Attribute, Content, Instrument, InstrumentKind
from otel.send.answer import NoAnswer, readable
from otel.send.endpoint import Endpoint, EndpointError
from otel.send.grpc import OPTIONS, credentials_of, proxied, target_of

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter


def exporter_for(endpoint: Endpoint, temporality: Temporality) -> "MetricExporter":
    """Return an exporter that speaks the endpoint's protocol; raises EndpointError when the endpoint cannot be used."""
    from opentelemetry.sdk.metrics import Counter, Histogram, ObservableCounter
    from opentelemetry.sdk.metrics.export import AggregationTemporality

    chosen = AggregationTemporality.DELTA if temporality == "delta" else AggregationTemporality.CUMULATIVE
    temporalities: dict[type, AggregationTemporality] = dict.fromkeys((Counter, ObservableCounter, Histogram), chosen)
    if endpoint.protocol == "grpc":
        return _over_grpc(endpoint, temporalities)
    return _over_http(endpoint, temporalities)


def _over_http(endpoint: Endpoint, temporalities: dict[type, Any]) -> "MetricExporter":
    import requests
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    if endpoint.is_secure():
        endpoint.ssl_context()

    def give_headers(request: requests.PreparedRequest) -> requests.PreparedRequest:
        # The exporter adds headers of OTEL_EXPORTER_OTLP_HEADERS, which may be the secret of another endpoint.
        kept = ("content-type", "content-encoding", "content-length")
        ours = {name: value for name, value in request.headers.items() if name.lower() in kept}
        request.headers.clear()
        request.headers.update({"user-agent": endpoint.user_agent} | endpoint.headers_now() | ours)
        return request

    session = requests.Session()
    session.trust_env = False
    session.auth = give_headers
    exporter = OTLPMetricExporter(
        endpoint.url("metrics"),
        timeout=endpoint.timeout_seconds,
        compression=Compression.Gzip if endpoint.gzip else Compression.NoCompression,
        session=session,
        preferred_temporality=temporalities,
    )
    session.verify = endpoint.certificate_file or endpoint.roots or True
    if endpoint.proxy is not None:
        session.proxies = dict.fromkeys(("http", "https"), endpoint.proxy)
    session.cert = None
    if endpoint.client_certificate_file is not None and endpoint.client_key_file is not None:
        session.cert = (endpoint.client_certificate_file, endpoint.client_key_file)
    return exporter


def _over_grpc(endpoint: Endpoint, temporalities: dict[type, Any]) -> "MetricExporter":
    import grpc  # type: ignore[import-untyped]  # comes without types
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter

    options: Any = (*OPTIONS, ("grpc.primary_user_agent", endpoint.user_agent), *proxied(endpoint))
    try:
        headers = endpoint.headers_now()
    except NoAnswer as error:
        reason = str(error)
    else:
        return OTLPMetricExporter(
            f"{endpoint.parts().scheme}://{target_of(endpoint)}",
            insecure=not endpoint.is_secure(),
            credentials=credentials_of(grpc, endpoint) if endpoint.is_secure() else None,
            headers=headers or ",",  # no headers, but not those of the environment either
            timeout=endpoint.timeout_seconds,
            compression=grpc.Compression.Gzip if endpoint.gzip else grpc.Compression.NoCompression,
            preferred_temporality=temporalities,
            channel_options=options,
        )
    raise EndpointError(reason)


SINK: Final = Attribute("session_exporter.sink", str, Content.NONE, "exporter")  # the sink's name in settings
RULE: Final = Attribute("session_exporter.rule", str, Content.NONE, "exporter")  # the rule that masked
TYPE: Final = Attribute("session_exporter.event.type", str, Content.NONE, "exporter")  # a type that is unknown

_PREFIX = "session_exporter."


def _row(kind: InstrumentKind, name: str, unit: str, meaning: str, *labels: Attribute) -> Instrument:
    return Instrument(_PREFIX + name, kind, unit, "exporter", labels=labels, meaning=meaning)


LAG_EVENTS: Final = _row("gauge", "sink.lag.events", "{event}", "events read and not yet accepted", SINK)
LAG_BYTES: Final = _row("gauge", "sink.lag.bytes", "By", "bytes read and not yet accepted", SINK)
LAG_TIME: Final = _row("gauge", "sink.lag.time", "s", "age of the oldest event not yet accepted", SINK)
QUEUE: Final = _row("gauge", "sink.queue", "{session}", "sessions that wait for their turn", SINK)
RETRIES: Final = _row("counter", "sink.retries", "{request}", "requests sent again", SINK)
REPEATED: Final = _row("counter", "sink.repeated", "{record}", "records sent again after a lost answer", SINK)
REJECTED: Final = _row("counter", "sink.rejected", "{record}", "records that the endpoint did not take", SINK)
QUARANTINED: Final = _row("gauge", "quarantined", "{event}", "events held back")
REDACTIONS: Final = _row("counter", "redactions", "{secret}", "secrets masked", RULE)
UNKNOWN_EVENTS: Final = _row("counter", "unknown_events", "{event}", "events of a type that is unknown", TYPE)
ORPHANS: Final = _row("counter", "orphans", "{span}", "spans ended by a crash and not by an event")
DEFECTS: Final = _row("counter", "defects", "{error}", "errors of the exporter that kept something from telemetry")

# In the order of the fields of `SinkFigures`.
_SINK_ROWS: Final = (LAG_EVENTS, LAG_BYTES, LAG_TIME, QUEUE, RETRIES, REPEATED, REJECTED)
TABLE: Final = (*_SINK_ROWS, QUARANTINED, REDACTIONS, UNKNOWN_EVENTS, ORPHANS, DEFECTS)
PROBLEMS: Final = _row("gauge", "problems", "{problem}", "reasons why it is not ready")
WAITING: Final = _row("gauge", "sink.waiting", "{sink}", "1 while the sink fails and is tried again", SINK)
REFUSED: Final = _row("gauge", "sink.refused", "{sink}", "1 while the sink refuses the token", SINK)
ACCEPTED: Final = _row("counter", "sink.accepted", "{event}", "events accepted", SINK)
LAST_SUCCESS: Final = _row("gauge", "sink.last_success.time", "s", "when the sink accepted something last", SINK)
SESSIONS: Final = _row("gauge", "sessions", "{session}", "sessions that are followed")
STARTED: Final = _row("gauge", "start.time", "s", "when the exporter started")
SCRAPED: Final = (PROBLEMS, WAITING, REFUSED, ACCEPTED, LAST_SUCCESS, SESSIONS, STARTED)
"""What `/metrics` tells besides `TABLE`."""
LABELS_MAX: Final = 100
"""The number of distinct sinks, rules and types; the rest is summed as `other`."""
LABEL_CHARACTERS_MAX: Final = 100
OTHER: Final = "other"


@dataclass(frozen=True, slots=True)
class SinkFigures:
    """The present figures of one sink; `retries`, `repeated` and `rejected` count since the start."""

    lag_events: int = 0
    lag_bytes: int = 0
    lag_seconds: float = 0.0
    queue: int = 0
    retries: int = 0
    repeated: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """The present figures; all but `quarantined` count since the start. Mappings keep the order of first occurrence."""

    sinks: Mapping[str, SinkFigures] = field(default_factory=dict)
    redactions: Mapping[str, int] = field(default_factory=dict)
    unknown_events: Mapping[str, int] = field(default_factory=dict)
    orphans: int = 0
    quarantined: int = 0
    defects: int = 0


def points(figures: Figures) -> "dict[Instrument, dict[str, float]]":
    """Return the values of every instrument by the value of its one label; "" where it has none."""
    of_sinks = zip(_SINK_ROWS, fields(SinkFigures), strict=True)
    return {
        **{row: {name: getattr(sink, one.name) for name, sink in figures.sinks.items()} for row, one in of_sinks},
        QUARANTINED: {"": figures.quarantined},
        REDACTIONS: _bounded(figures.redactions),
        UNKNOWN_EVENTS: _bounded(figures.unknown_events),
        ORPHANS: {"": figures.orphans},
        DEFECTS: {"": figures.defects},
    }


def _bounded(counts: Mapping[str, int]) -> dict[str, float]:
    """Bound the number of labels; the first ones are kept for good, because a counter must not decrease."""
    found: dict[str, float] = {}
    for name, count in counts.items():
        label = readable(name)[:LABEL_CHARACTERS_MAX] or OTHER
        if label not in found and len(found) >= LABELS_MAX:
            label = OTHER
        found[label] = found.get(label, 0) + count
    return found


@dataclass(slots=True)
class Health:
    """Sends what `figures` returns, every `interval_seconds` and once when it stops.

    `figures` is called on a thread of the SDK, for each row of `TABLE`, and does not raise. `failed` gets one line
    without secrets when a sending fails. `resource` has the attributes that tell this exporter from others.
    """

    endpoint: Endpoint
    figures: Callable[[], Figures]
    resource: Mapping[str, str]
    version: str
    _: KW_ONLY
    failed: Callable[[str], None]
    interval_seconds: float = 60.0
    temporality: Temporality = "cumulative"
    _log: "_Passing" = field(init=False)
    _provider: "MeterProvider | None" = field(init=False, default=None)

    def start(self) -> None:
        """Begin; raises EndpointError when the endpoint's address or certificates cannot be used."""
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource

        exporter = exporter_for(self.endpoint, self.temporality)
        self._log = _Passing(self.endpoint, self.failed)
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False  # or Python writes the SDK's complaints to standard error
        logger.addHandler(self._log)
        milliseconds = self.interval_seconds * 1000
        reader = PeriodicExportingMetricReader(
            exporter, milliseconds, export_timeout_millis=self.endpoint.timeout_seconds * 1000
        )
        self._provider = MeterProvider([reader], Resource(dict(self.resource)), shutdown_on_exit=False)
        meter = self._provider.get_meter("session-exporter", self.version)
        for row in TABLE:
            create = meter.create_observable_counter if row.kind == "counter" else meter.create_observable_gauge
            create(row.name, [self._reads(row)], row.unit, row.meaning)

    def stop(self, seconds: float = 2.0) -> None:
        """Send once more and end, within the time given: what hangs is left behind."""
        provider, self._provider = self._provider, None
        if provider is None:
            return
        provider.shutdown(timeout_millis=seconds * 1000)
        logger = logging.getLogger("opentelemetry")
        logger.removeHandler(self._log)
        logger.addHandler(logging.NullHandler())

    def _reads(self, row: Instrument) -> "Callable[[CallbackOptions], Iterable[Observation]]":
        from opentelemetry.metrics import Observation

        key = row.labels[0].name if row.labels else ""

        def read(_: "CallbackOptions") -> "Iterable[Observation]":
            for label, value in points(self.figures())[row].items():
                yield Observation(value, {key: label} if key else {})

        return read


class _Passing(logging.Handler):
    """Passes on what the SDK logs: one line, bounded, without secrets and without tracebacks."""

    def __init__(self, endpoint: Endpoint, failed: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._endpoint = endpoint
        self._failed = failed

    def emit(self, record: logging.LogRecord) -> None:
        password = self._endpoint.parts().password or ""
        self._failed(readable(record.getMessage(), (*self._endpoint.headers().values(), password)))
