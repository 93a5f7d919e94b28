"""What a receiver shows of its events with the package `otel`: traces, and the meaning of each event."""

from collections.abc import Iterable

import msgspec

from exporter.core.events.envelope import read_object
from exporter.core.events.projection import Projected
from exporter.version import VERSION


def make_trace(session: str, lines: Iterable[bytes], begun_by: str | None = None) -> bytes:
    """Return the spans of a session's events, or of the interaction that the event `begun_by` began, as OTLP JSON."""
    from otel.encode.trace_json import trace_json

    return msgspec.json.encode(trace_json(session, lines, VERSION, begun_by=begun_by))


def project(event_type: str, data: bytes, ephemeral: bool, /) -> Projected:
    """Return what an event means; only the data of a notification are read, because no other type depends on them."""
    from otel import projection

    found = projection.project(
        event_type, read_object(data) if event_type == projection.NOTIFICATION else None, ephemeral
    )
    return Projected(found.model_visible, found.ui_visible, found.durable, projection.is_known(event_type))
