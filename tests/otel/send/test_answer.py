"""What an endpoint counts when it says how much it rejected."""

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ScopeLogs
from opentelemetry.proto.metrics.v1.metrics_pb2 import ScopeMetrics
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from otel.send.answer import weight


def test_spans_and_records_count_each() -> None:
    assert weight("traces", ScopeSpans(spans=[Span(name="one"), Span(name="two")]).SerializeToString()) == 2
    assert weight("logs", ScopeLogs(log_records=[LogRecord(event_name="one")]).SerializeToString()) == 1
    assert weight("logs", b"") == 0


def test_of_metrics_the_points_count() -> None:
    metrics = ScopeMetrics()
    for kind, points in (("sum", 3), ("histogram", 2), ("gauge", 4)):
        metric = metrics.metrics.add(name=kind, description="many", unit="1")
        for number in range(points):
            point = getattr(metric, kind).data_points.add(time_unix_nano=number + 1)
            point.attributes.add(key="a").value.int_value = number

    assert weight("metrics", metrics.SerializeToString()) == 9
