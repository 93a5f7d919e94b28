"""An OTLP endpoint: each of its signals is a sink."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config.proxy import password_of, proxy_for
from config.token import read_headers
from exporter.core.names import otlp_name
from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts, or_fault

if TYPE_CHECKING:
    from config.settings import Otel
    from exporter.doctor.sinks import OtlpProbe
    from otel.send.answer import Signal

_GRPC_SECONDS: Final = 3.0


def _build(name: str, one: "Otel", parts: SinkParts) -> Iterator[BuiltSink]:
    from exporter.sinks.otlp import LANES
    from exporter.wiring.otlp_endpoint import OtlpEndpoint

    return OtlpEndpoint(name, one, LANES, parts.host).sinks(parts)


def _probe(name: str, one: "Otel") -> "OtlpProbe":
    from exporter.doctor.sinks import OtlpProbe
    from exporter.doctor.way import Way

    headers, fault = or_fault(lambda: read_headers(one))
    file = Path(one.headers_file) if one.headers_file else None
    proxy, way_fault = or_fault(lambda: proxy_for(one.proxy, one.endpoint))
    way = Way(one.certificate_file, one.client_certificate_file, one.client_key_file, proxy)
    what = one.endpoint, one.protocol, one.append_path, tuple(one.signals)
    asks = partial(_ask_grpc, one) if one.protocol == "grpc" else None
    return OtlpProbe(name, *what, asks, headers or {}, file, fault or way_fault, way)


def _ask_grpc(one: "Otel", signal: "Signal") -> int | str:
    """Send an empty request; return the status of the answer, or why none came."""
    from exporter.wiring.otlp_endpoint import endpoint_of
    from otel.send.answer import NoAnswer
    from otel.send.endpoint import EndpointError
    from otel.send.grpc import GrpcSender

    try:
        sender = GrpcSender(replace(endpoint_of(one), timeout_seconds=_GRPC_SECONDS))
    except EndpointError as error:
        return str(error)
    try:
        return sender.send(signal, b"").status
    except NoAnswer as error:
        return str(error)
    finally:
        sender.close()


def _secrets(one: "Otel") -> Iterator[str]:
    for value in read_headers(one).values():
        yield from (value, *value.split())  # `Bearer TOKEN`: the token alone, too
    yield from password_of(one.proxy, one.endpoint)


KIND: Final = SinkKind(
    section="otel",
    what="traces, metrics and logs made of the events, to an OTLP endpoint ([what becomes what](telemetry.md))",
    addresses=lambda name, one: {otlp_name(name, signal): one.endpoint for signal in one.signals},
    build=_build,
    probe=_probe,
    secrets=_secrets,
    secret_file=lambda one: one.headers_file,
)
