"""Records as bytes, and one small request of each signal."""

from otel.encode.records import metric_bytes, request_bytes, resource_bytes, scope_bytes, writer
from otel.model import Context, Kind, LogRecord, Point, Span
from otel.names import Attribute, Content, Instrument, Semconv
from otel.send.answer import Signal

SPAN_ID = b"spanspan"
_PLACE = Context(b"tracetracetracet", SPAN_ID)


def span_bytes(span: Span, content: Content, semconv: Semconv) -> bytes:
    """Return a span as a field of a request."""
    return writer(content, semconv).span(span)


def log_bytes(record: LogRecord, content: Content, semconv: Semconv, observed_ns: int) -> bytes:
    """Return a log record as a field of a request."""
    return writer(content, semconv).log(record, observed_ns)


def body_of(signal: Signal) -> bytes:
    """A request of one record."""
    if signal == "traces":
        record = span_bytes(
            Span(_PLACE, None, "chat", None, Content.NONE, Kind.CLIENT, 1, 2, "e1"), Content.NONE, "cli"
        )
    elif signal == "logs":
        record = log_bytes(LogRecord(1, "e1", "user.message", 9, None, "s"), Content.NONE, "cli", 2)
    else:
        counter = Instrument("count", "counter", "1", "1")
        record = metric_bytes(counter, [Point((), 1, 2, 3)], "cumulative", Content.NONE, "cli")
    name = Attribute("service.name", str, Content.NONE, "1")
    resource = resource_bytes({name: "github-copilot"}, Content.NONE, "cli")
    return request_bytes(resource, scope_bytes("1"), [record])
