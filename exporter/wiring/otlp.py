"""OTLP endpoints as the settings describe them, each of their signals a sink."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from config.errors import ConfigError
from config.token import read_headers
from exporter.core.names import otlp_name
from exporter.core.notice import Level, Notice
from exporter.pipeline.metric_sender import MetricSender, PendingSums
from exporter.pipeline.record_feed import Mapper, RecordFeed
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sinks.otlp import NoAnswerError, Otlp, OtlpAnswer, Streams
from exporter.version import VERSION

if TYPE_CHECKING:
    from config.otel import Otel
    from otel.bridge import SignalOptions, Tally
    from otel.machines.metrics.accumulator import AnyPoint
    from otel.model import Attributes, Measurement
    from otel.name_types import Instrument
    from otel.send.endpoint import Endpoint
    from otel.send.sender import Sender

LANES: Final = 4
"""How many sessions are sent at a time, per signal."""
_METRICS_SECONDS: Final = 5.0
_POINTS_PER_METRIC: Final = 64
_METRICS_PER_REQUEST: Final = 8


@dataclass(frozen=True, slots=True)
class OtlpSink:
    """One signal of an endpoint, with what makes its records."""

    sink: Otlp
    feed: RecordFeed


def otlp_sinks(
    name: str,
    one: "Otel",
    reader: SegmentReader,
    exporter_id: str,
    notice: Callable[[Notice], None],
    tally: "Tally | None" = None,
) -> Iterator[OtlpSink]:
    """Yield a sink for every signal; raises ConfigError. `tally` is told what the endpoint's machines come across."""
    from otel.bridge import Bridge
    from otel.send.answer import weight
    from otel.send.endpoint import EndpointError
    from otel.send.sender import sender_for

    endpoint = endpoint_of(one)
    try:
        sender = sender_for(endpoint, connections=LANES)
    except EndpointError as error:
        raise ConfigError(f"[{otlp_name(name)}] {error}", key=otlp_name(name)) from None
    telling, streams, open_sinks = _telling(one), Streams(exporter_id), set[str](one.signals)
    mapper = Mapper(reader, lambda session: Bridge(session, telling, tally))
    for signal in one.signals:
        sink = Otlp(
            otlp_name(name, signal),
            one.endpoint,
            _post(sender, signal),
            _assembler(one, telling, signal),
            streams,
            partial(weight, signal),
            token=lambda: "\n".join(f"{key}={value}" for key, value in sorted(endpoint.headers().items())),
            connections=LANES,
            records_max=_METRICS_PER_REQUEST if signal == "metrics" else None,
            stream_per_session=signal == "logs",
            close=_closing(sender, open_sinks, signal),
        )
        yield OtlpSink(sink, _feed(mapper, signal, one, telling, notice))


def _pack(measured: "Sequence[list[Measurement]]") -> bytes:
    """Return what many events added as the bytes that are counted."""
    from otel.machines.metrics.measurements import pack

    return pack([one for some in measured for one in some])


def _feed(
    mapper: Mapper, signal: str, one: "Otel", telling: "SignalOptions", notice: Callable[[Notice], None]
) -> RecordFeed:
    if signal != "metrics":
        return RecordFeed(mapper, signal, repeats=signal != "logs")
    sender = MetricSender(lambda state: _Sums(state, one, telling, notice), _METRICS_SECONDS)
    return RecordFeed(mapper, signal, pack=_pack, sums=sender)


@dataclass(frozen=True, slots=True)
class LiveEndpoint:
    """An endpoint that is told sums which are kept nowhere: those, what sends points of them, and what ends that."""

    name: str
    sums: PendingSums
    send: Callable[[str, Sequence[bytes]], OtlpAnswer]
    close: Callable[[], None]


def live_endpoint(name: str, one: "Otel", notice: Callable[[Notice], None]) -> LiveEndpoint:
    """Return an endpoint to tell of what passes; `send` is for threads and raises `NoAnswerError`."""
    from otel.send.sender import sender_for

    sender, telling = sender_for(endpoint_of(one), connections=1), _telling(one)
    post, assemble = _post(sender, "metrics"), _assembler(one, telling, "metrics")

    def send(instance: str, points: Sequence[bytes]) -> OtlpAnswer:
        return post(assemble(instance, points))

    return LiveEndpoint(otlp_name(name), _Sums(None, one, telling, notice), send, sender.close)


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
        headers=_headers_of(one),
        user_agent=f"session-exporter/{VERSION}",
    )


def _telling(one: "Otel") -> "SignalOptions":
    from otel.bridge import SignalOptions
    from otel.name_types import Content

    return SignalOptions(tuple(one.signals), Content[one.content.upper()], one.semconv, os.environ.get("TRACEPARENT"))


def _post(sender: "Sender", signal: str) -> Callable[[bytes], OtlpAnswer]:
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


def _headers_of(one: "Otel") -> Callable[[], dict[str, str]]:
    """Return what reads the headers before every request; ones that cannot be read now stay what they were."""
    last = [read_headers(one)]

    def headers() -> dict[str, str]:
        with suppress(ConfigError):
            last[0] = read_headers(one)
        return last[0]

    return headers


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
        from otel.encode.metrics import metric_bytes

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
