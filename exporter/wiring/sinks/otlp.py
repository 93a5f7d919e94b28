"""An OTLP endpoint: each of its signals is a sink."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config.token import read_headers
from exporter.core.names import otlp_name
from exporter.wiring.sinks.kind import BuiltSink, SinkKind, SinkParts, or_fault

if TYPE_CHECKING:
    from config.settings import Otel
    from exporter.doctor.sinks import OtlpProbe


def _build(name: str, one: "Otel", parts: SinkParts) -> Iterator[BuiltSink]:
    from exporter.sinks.otlp import LANES
    from exporter.wiring.otlp_endpoint import OtlpEndpoint

    return OtlpEndpoint(name, one, LANES).sinks(parts)


def _probe(name: str, one: "Otel") -> "OtlpProbe":
    from exporter.doctor.sinks import OtlpProbe

    headers, fault = or_fault(lambda: read_headers(one))
    file = Path(one.headers_file) if one.headers_file else None
    certificates = one.certificate_file, one.client_certificate_file, one.client_key_file
    what = one.endpoint, one.protocol, one.append_path, tuple(one.signals)
    return OtlpProbe(name, *what, headers or {}, file, fault, *certificates)


def _secrets(one: "Otel") -> Iterator[str]:
    for value in read_headers(one).values():
        yield from (value, *value.split())  # `Bearer TOKEN`: the token alone, too


KIND: Final = SinkKind(
    section="otel",
    what="traces, metrics and logs made of the events, to an OTLP endpoint ([what becomes what](telemetry.md))",
    addresses=lambda name, one: {otlp_name(name, signal): one.endpoint for signal in one.signals},
    build=_build,
    probe=_probe,
    secrets=_secrets,
    secret_file=lambda one: one.headers_file,
)
