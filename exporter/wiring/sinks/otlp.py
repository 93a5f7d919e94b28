"""An OTLP endpoint: each of its signals is a sink."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config.errors import ConfigError
from config.token import latest, read_headers
from exporter.core.names import otlp_name
from exporter.core.notice import Level, Notice
from exporter.version import VERSION
from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts, or_fault

if TYPE_CHECKING:
    from config.otel import Otel
    from exporter.doctor.sinks import OtlpProbe
    from exporter.pipeline.metric_sender import PendingSums
    from exporter.pipeline.record_feed import Mapper, RecordFeed
    from exporter.sinks.otlp import OtlpAnswer
    from otel.bridge import SignalOptions
    from otel.machines.metrics.aggregate import AnyPoint
    from otel.model import Attributes, Measurement
    from otel.names import Instrument
    from otel.send.answer import Signal
    from otel.send.endpoint import Endpoint
    from otel.send.sender import Sender

LANES: Final = 4
"""How many sessions are sent at a time, per signal."""
_METRICS_SECONDS: Final = 5.0
_POINTS_PER_METRIC: Final = 64
_METRICS_PER_REQUEST: Final = 8


def _addresses(name: str, one: "Otel") -> dict[str, str]:
    return {otlp_name(name, signal): one.endpoint for signal in one.signals}


def _build(name: str, one: "Otel", parts: SinkParts) -> Iterator[BuiltSink]:
    """Yield a sink for every signal."""
    from exporter.pipeline.record_feed import Mapper
    from exporter.sinks.otlp import RECORDS_MAX, Otlp, Streams
    from otel.bridge import Bridge
    from otel.send.answer import weight
    from otel.send.endpoint import EndpointError
    from otel.send.sender import sender_for

    endpoint = endpoint_of(one)
    try:
        sender = sender_for(endpoint, connections=LANES)
    except EndpointError as error:
        raise ConfigError(f"[{otlp_name(name)}] {error}", key=otlp_name(name)) from None
    telling, streams, open_sinks = _telling(one), Streams(parts.exporter_id()), set[str](one.signals)
    tally = parts.tally()
    mapper = Mapper(parts.reader, lambda session: Bridge(session, telling, tally))
    for signal in one.signals:
        is_metrics = signal == "metrics"
        sink = Otlp(
            name=otlp_name(name, signal),
            url=one.endpoint,
            post=_post(sender, signal),
            assemble=_assembler(one, telling, signal),
            streams=streams,
            weight=partial(weight, signal),
            token=lambda: "\n".join(f"{key}={value}" for key, value in sorted(endpoint.headers().items())),
            connections=LANES,
            records_max=_METRICS_PER_REQUEST if is_metrics else RECORDS_MAX,
            stream_per_session=signal == "logs",
            on_close=_closing(sender, open_sinks, signal),
        )
        yield BuiltSink(sink, LANES, _feed(mapper, signal, one, telling, parts.notice))


def _pack(measured: "Sequence[list[Measurement]]") -> bytes:
    """Return what many events added as the bytes that are counted."""
    from otel.machines.metrics.measurements import pack

    return pack([one for some in measured for one in some])


def _feed(
    mapper: "Mapper", signal: str, one: "Otel", telling: "SignalOptions", notice: Callable[[Notice], None]
) -> "RecordFeed":
    from exporter.pipeline.metric_sender import MetricSender
    from exporter.pipeline.record_feed import RecordFeed

    if signal != "metrics":
        return RecordFeed(mapper, signal, repeats=signal != "logs")
    sender = MetricSender(lambda state: _Sums(state, one, telling, notice), _METRICS_SECONDS)
    return RecordFeed(mapper, signal, pack=_pack, sums=sender)


@dataclass(frozen=True, slots=True)
class LiveEndpoint:
    """An endpoint that is told sums which are kept nowhere: those, what sends points of them, and what ends that."""

    name: str
    sums: "PendingSums"
    send: Callable[[str, Sequence[bytes]], int]
    close: Callable[[], None]


def live_endpoint(name: str, one: "Otel", notice: Callable[[Notice], None]) -> LiveEndpoint:
    """Return an endpoint to tell of what passes; `send` is for threads and returns what `status_of` does."""
    from otel.send.sender import sender_for

    sender, telling = sender_for(endpoint_of(one), connections=1), _telling(one)
    assemble = _assembler(one, telling, "metrics")

    def send(instance: str, points: Sequence[bytes]) -> int:
        return status_of(sender, "metrics", assemble(instance, points))

    return LiveEndpoint(otlp_name(name), _Sums(None, one, telling, notice), send, sender.close)


def status_of(sender: "Sender", signal: "Signal", body: bytes) -> int:
    """Send a request and return the status of the answer, 0 when none came. For threads."""
    from otel.send.answer import NoAnswer

    try:
        return sender.send(signal, body).status
    except NoAnswer:
        return 0


def _closing(sender: "Sender", open_sinks: set[str], signal: str) -> Callable[[], None]:
    """Return what a sink does when it is closed: the last one of an endpoint closes the sender they share."""

    def close() -> None:
        open_sinks.discard(signal)
        if not open_sinks:
            sender.close()

    return close


def endpoint_of(one: "Otel") -> "Endpoint":
    """Return where and how an endpoint of the settings is spoken to; raises ConfigError without its headers."""
    from otel.send.endpoint import Endpoint

    return Endpoint(
        one.endpoint,
        protocol=one.protocol,
        append_path=one.append_path,
        timeout_seconds=one.timeout_seconds,
        gzip=one.compression == "gzip",
        certificate_file=one.certificate_file,
        client_certificate_file=one.client_certificate_file,
        client_key_file=one.client_key_file,
        headers=latest(partial(read_headers, one), read_headers(one)),
        user_agent=f"session-exporter/{VERSION}",
    )


def _telling(one: "Otel") -> "SignalOptions":
    from otel.bridge import SignalOptions
    from otel.names import Content

    return SignalOptions(tuple(one.signals), Content[one.content.upper()], one.semconv, os.environ.get("TRACEPARENT"))


def _post(sender: "Sender", signal: str) -> "Callable[[bytes], OtlpAnswer]":
    from exporter.sinks.otlp import OtlpAnswer
    from exporter.sinks.transport import NoAnswerError
    from otel.send.answer import NoAnswer

    def post(body: bytes) -> OtlpAnswer:
        try:
            answer = sender.send(signal, body)  # type: ignore[arg-type]  # the settings allow signals only
        except NoAnswer as error:
            raise NoAnswerError(str(error)) from None
        return OtlpAnswer(answer.status, answer.retry_after, answer.rejected, answer.message)

    return post


def _assembler(one: "Otel", telling: "SignalOptions", signal: str) -> Callable[[str, Sequence[bytes]], bytes]:
    from otel import names
    from otel.encode.records import request_bytes, resource_bytes, scope_bytes

    scope = scope_bytes(VERSION)

    def assemble(stream: str, records: Sequence[bytes]) -> bytes:
        attributes: Attributes = {
            names.SERVICE_NAME: one.service_name,
            names.SERVICE_VERSION: VERSION,
            names.SERVICE_INSTANCE_ID: stream,
        }
        resource = resource_bytes(attributes, telling.content, telling.semconv, one.resource_attributes)
        return request_bytes(resource, scope, records)

    return assemble


class _Sums:
    """The sums of one stream of an endpoint, as `MetricSender` wants them."""

    def __init__(
        self, state: bytes | None, one: "Otel", telling: "SignalOptions", notice: Callable[[Notice], None]
    ) -> None:
        from otel.machines.metrics.aggregate import Aggregate, MetricStream

        stream: MetricStream = MetricStream(
            temporality=one.temporality, content=telling.content, semconv=telling.semconv
        )
        loaded = Aggregate.load(state, stream) if state is not None else None
        if state is not None and loaded is None:
            notice(Notice(Level.ERROR, "the sums of metrics cannot be read and begin anew; some were not sent"))
        self._aggregate: Aggregate = loaded or Aggregate(stream)
        self._one = one
        self._telling = telling

    def add(self, bodies: list[bytes]) -> None:
        from otel.machines.metrics.measurements import unpack

        for body in bodies:
            self._aggregate.add(unpack(body))

    @property
    def waits(self) -> bool:
        return self._aggregate.waits

    def points(self, until_ns: int | None) -> list[bytes]:
        from otel.encode.records import metric_bytes

        content, semconv = self._telling.content, self._telling.semconv
        temporality = self._one.temporality
        # By instrument, and only then by time: a backend wants each series in its order, and nothing of the others.
        gathered: dict[Instrument, list[AnyPoint]] = {}
        for instrument, points in self._aggregate.points(until_ns):
            gathered.setdefault(instrument, []).extend(points)
        return [
            metric_bytes(instrument, points[first : first + _POINTS_PER_METRIC], temporality, content, semconv)
            for instrument, points in gathered.items()
            for first in range(0, len(points), _POINTS_PER_METRIC)
        ]

    def accepted(self) -> None:
        self._aggregate.accepted()

    def state(self) -> bytes:
        return self._aggregate.dump()


def _probe(name: str, one: "Otel") -> "OtlpProbe":
    from exporter.doctor.sinks import OtlpProbe

    headers, fault = or_fault(lambda: read_headers(one))
    return OtlpProbe(
        name,
        one.endpoint,
        one.protocol,
        one.append_path,
        tuple(one.signals),
        headers or {},
        Path(one.headers_file) if one.headers_file else None,
        fault,
        one.certificate_file,
        one.client_certificate_file,
        one.client_key_file,
    )


def _secrets(one: "Otel") -> Iterator[str]:
    for value in read_headers(one).values():
        yield from (value, *value.split())  # `Bearer TOKEN`: the token alone, too


KIND: Final = SinkKind(
    section="otel",
    what="traces, metrics and logs made of the events, to an OTLP endpoint ([what becomes what](telemetry.md))",
    addresses=_addresses,
    build=_build,
    probe=_probe,
    secrets=_secrets,
    secret_file=lambda one: one.headers_file,
)
