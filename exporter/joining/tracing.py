"""The traces that a receiver shows of what it holds."""

from collections.abc import Iterable

import msgspec

from exporter.version import VERSION


def make_trace(session: str, lines: Iterable[bytes]) -> bytes:
    """Return the spans of a session's events as OTLP JSON."""
    from otel.as_json import trace_json

    return msgspec.json.encode(trace_json(session, lines, VERSION))
