"""An OTLP endpoint of the settings: its sinks, and what else is sent to it. Imported only where one is configured."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from config.errors import ConfigError
from config.proxy import proxy_for
from config.settings import Otel
from config.token import latest, read_headers
from config.url import is_loopback
from exporter.core.names import otlp_name
from exporter.core.notice import Level, Notice, NoticeName
from exporter.pipeline.metric_sender import MetricSender
from exporter.pipeline.record_feed import Mapper, RecordFeed
from exporter.sinks.otlp import LANES, LOG_LANES, RECORDS_MAX, Otlp, OtlpAnswer, Streams
from exporter.sinks.transport import NoAnswerError
from exporter.sources.files.session_file import SessionFile
from exporter.version import VERSION
from exporter.wiring.sinks.kind import BuiltSink, SinkParts, or_fault
from otel import names
from otel.bridge import Bridge, SignalOptions
from otel.encode.records import (
    Origin,
    log_time_ns,
    metric_bytes,
    of_origin,
    origin_of,
    request_bytes,
    resource_bytes,
    scope_bytes,
)
from otel.instruments import OF_RESOURCE
from otel.machines.metrics.aggregate import Aggregate, AnyPoint, Metrics, MetricStream
from otel.machines.metrics.measurements import pack, unpack
from otel.model import Attributes, Measurement
from otel.names import Content, Instrument
from otel.send.answer import NoAnswer, Signal, weight
from otel.send.endpoint import Endpoint, EndpointError
from otel.send.sender import sender_for

if TYPE_CHECKING:
    from exporter.sinks.http_transport import HttpClient

_METRICS_SECONDS: Final = 5.0
_POINTS_PER_METRIC: Final = 64
_ASK_SECONDS: Final = 5.0
_ASKED_BYTES_MAX: Final = 1 << 20
_METRICS_PER_REQUEST: Final = 8


def endpoint_of(one: Otel) -> Endpoint:
    """Return the address and transport of an endpoint of the settings; without headers while they cannot be read."""
    return Endpoint(
        one.endpoint,
        protocol=one.protocol,
        append_path=one.append_path,
        timeout_seconds=one.timeout_seconds,
        gzip=one.compression == "gzip" or (one.compression == "auto" and not is_loopback(one.endpoint)),
        certificate_file=one.certificate_file,
        client_certificate_file=one.client_certificate_file,
        client_key_file=one.client_key_file,
        proxy=proxy.url if (proxy := proxy_for(one.proxy, one.endpoint)) else None,
        roots=_roots(one),
        headers=latest(partial(read_headers, one), or_fault(partial(read_headers, one))[0] or {}),
        user_agent=f"session-exporter/{VERSION}",
    )


def _roots(one: Otel) -> str | None:
    if one.certificate_file or not one.endpoint.lower().startswith("https:"):
        return None
    from exporter.sinks.roots import system_roots

    return system_roots().path


def http_client(connections: int, endpoint: Endpoint) -> "HttpClient":
    """Return the HTTP client of an endpoint, which keeps so many idle connections; raises EndpointError."""
    from exporter.sinks.http_transport import HttpClient
    from exporter.sinks.roots import system_roots

    parts = endpoint.parts()
    return HttpClient(
        f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
        # As many as there are threads that send: waiting for one would look like an endpoint that does not answer.
        connections=None,
        kept=connections,
        timeout_seconds=endpoint.timeout_seconds,
        trust=endpoint.ssl_context(system_roots().context) if endpoint.is_secure() else None,
        proxy=endpoint.proxy,
    )


class OtlpEndpoint:
    """Encodes requests for one endpoint and sends them. The constructor raises ConfigError for unusable settings."""

    def __init__(self, name: str, one: Otel, connections: int = 1, host: str = "") -> None:
        self.name = otlp_name(name)
        self._host = host if one.host_name else ""
        self.settings = one
        content, traceparent = Content[one.content.upper()], os.environ.get("TRACEPARENT")
        self.options = SignalOptions(tuple(one.signals), content, one.semconv, traceparent, one.inference_details)
        self._scope = scope_bytes(VERSION)
        self._endpoint = endpoint_of(one)
        try:
            self._sender = sender_for(self._endpoint, partial(http_client, connections))
        except EndpointError as error:
            raise ConfigError(f"[{self.name}] {error}", key=self.name) from None

    def assemble(self, stream: str, records: Sequence[bytes], *, is_metrics: bool = False) -> bytes:
        """Return a request with these records, whose service.instance.id is `stream`.

        Each version of the CLI and each user is a resource. Of metrics each has an instance id of its own: not every
        backend keeps these as labels, and series of two versions or users would be one there.
        """
        by_origin: dict[Origin, list[bytes]] = {}
        for record in records:
            by_origin.setdefault(origin_of(record), []).append(record)
        return b"".join(
            [
                self._resource_of(_instance(stream, origin) if is_metrics else stream, origin, some)
                for origin, some in by_origin.items()
            ]
        )

    def _resource_of(self, instance: str, origin: Origin, records: Sequence[bytes]) -> bytes:
        attributes: Attributes = {names.SERVICE_NAME: self.settings.service_name, names.SERVICE_INSTANCE_ID: instance}
        if origin.version:
            attributes[names.SERVICE_VERSION] = origin.version
        if self._host:
            attributes[names.HOST_NAME] = self._host
        if origin.user:
            attributes[names.USER_NAME] = origin.user
        options = self.options
        resource = resource_bytes(attributes, options.content, options.semconv, self.settings.resource_attributes)
        return request_bytes(resource, self._scope, records)

    def post(self, signal: Signal, body: bytes) -> OtlpAnswer:
        """Send a request and return the answer; raises `NoAnswerError`. For threads."""
        try:
            answer = self._sender.send(signal, body)
        except NoAnswer as error:
            raise NoAnswerError(str(error), unsent=error.unsent) from None
        return OtlpAnswer(answer.status, answer.retry_after, answer.rejected, answer.message, answer.fault)

    def ask(self, path: str) -> str | None:
        """Return what a path of the endpoint's host answers to a question, None if nothing. For threads."""
        parts = self._endpoint.parts()
        host = replace(self._endpoint, address=f"{parts.scheme}://{parts.netloc}", timeout_seconds=_ASK_SECONDS)
        client = http_client(1, host)
        try:
            answer = client.request("GET", path, host.headers_now(), b"", answer_bytes_max=_ASKED_BYTES_MAX)
        except (NoAnswerError, NoAnswer):
            return None
        finally:
            client.close()
        return answer.body.decode("utf-8", "replace") if answer.status == 200 else None

    def status_of(self, signal: Signal, body: bytes) -> int:
        """Send a request and return the status of the answer, 0 if there is no sound one. For threads."""
        try:
            answer = self._sender.send(signal, body)
        except NoAnswer:
            return 0
        return 0 if answer.fault else answer.status

    def not_taken(self, what: str, status: int) -> Notice:
        """Return the warning about a request that was not accepted."""
        why = f"answered {status}" if status else "no answer"
        return Notice(
            NoticeName.TELEMETRY_REJECTED, Level.WARNING, f"{what} were not taken", None, self.name, fields={"why": why}
        )

    def close(self) -> None:
        """Close the connections."""
        self._sender.close()

    def sinks(self, parts: SinkParts) -> Iterator[BuiltSink]:
        """Yield a sink for every signal; the last one that is closed closes the connections."""
        streams, open_sinks = Streams(parts.exporter_id()), set[str](self.settings.signals)
        tally = parts.tally.for_endpoint() if parts.tally is not None else None
        mapper = Mapper(parts.reader, lambda file: Bridge(file.session, self.options, tally, self._user_of(file)))

        def close(signal: str) -> None:
            open_sinks.discard(signal)
            if not open_sinks:
                self.close()

        for signal in self.settings.signals:
            sink = Otlp(
                name=f"{self.name}:{signal}",
                url=self.settings.endpoint,
                place=self._endpoint.place(signal),
                post=partial(self.post, signal),
                assemble=partial(self.assemble, is_metrics=signal == "metrics"),
                streams=streams,
                weight=partial(weight, signal),
                token=lambda: "\n".join(f"{key}={value}" for key, value in sorted(self._endpoint.headers().items())),
                records_max=_METRICS_PER_REQUEST if signal == "metrics" else RECORDS_MAX,
                time_ns=log_time_ns if signal == "logs" else None,
                on_close=partial(close, signal),
                ask=self.ask,
                history_seconds=self.settings.history_days * 86_400.0,
            )
            if signal == "metrics":
                sums = partial(self._sums, parts.notice, streams)
                sender = MetricSender(sums, _METRICS_SECONDS, self.settings.metrics_repeat_seconds)
                feed = RecordFeed(mapper, signal, pack=_pack, sums=sender, endings=parts.endings)
            else:
                feed = RecordFeed(mapper, signal, repeats=signal != "logs", endings=parts.endings)
            yield BuiltSink(sink, LOG_LANES if signal == "logs" else LANES, feed)

    def _user_of(self, file: SessionFile) -> str | None:
        return file.owner if self.settings.user_name and self.options.content is not Content.NONE else None

    def _sums(
        self, notice: Callable[[Notice], None], streams: Streams, stream: str, state: bytes | None
    ) -> "EndpointSums":
        return EndpointSums(self, state, notice, partial(streams.is_live, stream))


def _pack(measured: Sequence[list[Measurement]]) -> bytes:
    """Return the measurements of many events as the bytes that are counted."""
    return pack([one for some in measured for one in some])


class EndpointSums:
    """The `PendingSums` of one stream of an endpoint.

    What is live gets the times of its collections, as an SDK gives them; history has the times of its events.
    """

    def __init__(
        self,
        endpoint: OtlpEndpoint,
        state: bytes | None,
        notice: Callable[[Notice], None],
        is_live: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_live = is_live
        self._temporality = endpoint.settings.temporality
        self._options = endpoint.options
        one = endpoint.settings
        stream = MetricStream(
            self._temporality,
            self._options.content,
            self._options.semconv,
            repeat_ns=round(one.metrics_repeat_seconds * 1e9),
            repeats_idle=one.idle_metrics,
        )
        loaded = Aggregate.load(state, stream) if state is not None else None
        if state is not None and loaded is None:
            text = "the sums of metrics cannot be read and begin anew; some were not sent"
            notice(Notice(NoticeName.METRIC_SUMS_LOST, Level.ERROR, text))
        self._aggregate = loaded or Aggregate(stream)
        self.accepted = self._aggregate.accepted
        self.state = self._aggregate.dump

    def add(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self._aggregate.add(unpack(body))

    @property
    def waits(self) -> bool:
        return self._aggregate.waits

    @property
    def was_accepted(self) -> bool:
        return self._aggregate.was_accepted

    @property
    def repeated(self) -> bool:
        return self._aggregate.repeated

    def points(self, until_ns: int | None, *, repeats: bool = False) -> list[bytes]:
        is_live = self._temporality == "cumulative" and self._is_live()
        if is_live:
            found = self._aggregate.collect(time.time_ns(), repeats=repeats)
        else:
            found = self._aggregate.points(until_ns)
            if not found and until_ns is None:
                found = self._aggregate.close()
        by_origin = _by_origin(found)
        # A collection is one request, since the time of each has to grow; in parts, so that halving finds the culprit.
        parts = max(1, _METRICS_PER_REQUEST // max(1, len(by_origin)))
        lines = []
        for origin, gathered in by_origin.items():
            metrics = self._metrics(gathered)
            size = -(-len(metrics) // parts) if is_live else 1
            some = [b"".join(metrics[first : first + size]) for first in range(0, len(metrics), size)]
            lines += [of_origin(one, *origin) for one in some]
        return lines

    def _metrics(self, gathered: "dict[Instrument, list[AnyPoint]]") -> list[bytes]:
        content, semconv = self._options.content, self._options.semconv
        return [
            metric_bytes(instrument, points[first : first + _POINTS_PER_METRIC], self._temporality, content, semconv)
            for instrument, points in gathered.items()
            for first in range(0, len(points), _POINTS_PER_METRIC)
        ]


def _instance(stream: str, origin: Origin) -> str:
    return "".join([stream, f"+{origin.user}" if origin.user else "", f"@{origin.version}" if origin.version else ""])


def _by_origin(found: Metrics) -> "dict[Origin, dict[Instrument, list[AnyPoint]]]":
    """Return points by their origin, and then by instrument.

    A backend needs the points of each series in the order of time, but not those of all series.
    """
    gathered: dict[Origin, dict[Instrument, list[AnyPoint]]] = {}
    for instrument, points in found:
        for point in points:
            origin = Origin(*(one if isinstance(one, str) else None for one in point.labels[-len(OF_RESOURCE) :]))
            gathered.setdefault(origin, {}).setdefault(instrument, []).append(point)
    return gathered
