"""Metrics as bytes: read back by opentelemetry-proto, field by field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ScopeMetrics

from otel.encode.records import metric_bytes, request_bytes, resource_bytes, scope_bytes
from otel.instruments import OF_RESOURCE
from otel.model import Context, Exemplar, HistogramPoint, Point, Temporality
from otel.names import Attribute, Content, Instrument, Semconv
from tests.otel.written import CONTENTS, CONTEXTS, NAMES, SEMCONVS, TIMES, VALUES, expected, read

BOUNDS = (0.5, 1.0, 60.0)
COUNTER = Instrument("session.count", "counter", "{session}", "1", labels=tuple(NAMES), meaning="How many.")
GAUGE = Instrument("session.open", "up_down_counter", "{session}", "1", labels=tuple(NAMES))
HISTOGRAM = Instrument("session.duration", "histogram", "s", "1", labels=tuple(NAMES), bounds=BOUNDS)
LABELS = st.tuples(*[st.none() | VALUES for _ in NAMES])
EXEMPLARS = st.none() | st.builds(Exemplar, TIMES, st.integers(-9, 9) | st.floats(allow_nan=False), CONTEXTS)
WHOLE = st.integers(-(1 << 63), (1 << 63) - 1)
DOUBLES = st.floats(allow_nan=False)
TEMPORALITIES = st.sampled_from(["cumulative", "delta"])


def points(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Point]]:
    return st.lists(st.builds(Point, LABELS, TIMES, TIMES, values, EXEMPLARS, st.booleans()), min_size=1, max_size=3)


HISTOGRAM_POINTS = st.lists(
    st.builds(
        HistogramPoint,
        LABELS,
        TIMES,
        TIMES,
        st.integers(0, (1 << 64) - 1),
        DOUBLES,
        st.tuples(*[st.integers(0, (1 << 64) - 1) for _ in range(len(BOUNDS) + 1)]),
        DOUBLES,
        DOUBLES,
        EXEMPLARS,
        st.booleans(),
    ),
    min_size=1,
    max_size=3,
)


def read_metric(field: bytes) -> Metric:
    metric: Metric
    (metric,) = ScopeMetrics.FromString(field).metrics
    size = metric.ByteSize()
    metric.DiscardUnknownFields()
    assert metric.ByteSize() == size
    return metric


def labels_of(point: Point | HistogramPoint, content: Content, semconv: Semconv) -> list[tuple[str, object]]:
    if point.overflow:
        return [("otel.metric.overflow", ("bool_value", True))]
    pairs = zip(NAMES, point.labels, strict=True)
    shown = {name: value for name, value in pairs if value is not None and name not in OF_RESOURCE}
    return expected(shown, content, semconv)


def exemplars_of(point: Point | HistogramPoint) -> list[tuple[object, ...]]:
    return [(e.time_ns, e.value, *e.context) for e in [point.exemplar] if e is not None]


def read_exemplars(message: Any) -> list[tuple[object, ...]]:
    return [(e.time_unix_nano, getattr(e, e.WhichOneof("value")), e.trace_id, e.span_id) for e in message.exemplars]


@pytest.mark.parametrize("instrument", [COUNTER, GAUGE], ids=lambda instrument: instrument.kind)
@given(points(WHOLE) | points(DOUBLES) | points(WHOLE | DOUBLES), TEMPORALITIES, CONTENTS, SEMCONVS)
def test_a_sum_is_read_back_field_by_field(
    instrument: Instrument, given_points: list[Point], temporality: Temporality, content: Content, semconv: Semconv
) -> None:
    metric = read_metric(metric_bytes(instrument, given_points, temporality, content, semconv))

    assert (metric.name, metric.unit, metric.description) == (instrument.name, instrument.unit, instrument.meaning)
    assert metric.sum.is_monotonic == (instrument.kind == "counter")
    assert metric.sum.aggregation_temporality == {"delta": 1, "cumulative": 2}[temporality]
    whole = all(isinstance(point.value, int) for point in given_points)
    for point, message in zip(given_points, metric.sum.data_points, strict=True):
        assert message.WhichOneof("value") == ("as_int" if whole else "as_double")
        assert (message.as_int if whole else message.as_double) == (point.value if whole else float(point.value))
        assert (message.start_time_unix_nano, message.time_unix_nano) == (point.start_ns, point.time_ns)
        assert read(message.attributes) == labels_of(point, content, semconv)
        assert read_exemplars(message) == exemplars_of(point)


@given(HISTOGRAM_POINTS, TEMPORALITIES, CONTENTS, SEMCONVS)
def test_a_histogram_is_read_back_field_by_field(
    given_points: list[HistogramPoint], temporality: Temporality, content: Content, semconv: Semconv
) -> None:
    metric = read_metric(metric_bytes(HISTOGRAM, given_points, temporality, content, semconv))

    assert (metric.name, metric.unit) == ("session.duration", "s")
    assert metric.histogram.aggregation_temporality == {"delta": 1, "cumulative": 2}[temporality]
    for point, message in zip(given_points, metric.histogram.data_points, strict=True):
        assert (message.start_time_unix_nano, message.time_unix_nano) == (point.start_ns, point.time_ns)
        assert (message.count, message.sum) == (point.count, point.total)
        assert (message.min, message.max) == (point.minimum, point.maximum)
        assert message.HasField("sum")
        assert message.HasField("min")
        assert message.HasField("max")
        assert tuple(message.bucket_counts) == point.bucket_counts
        assert tuple(message.explicit_bounds) == BOUNDS
        assert read(message.attributes) == labels_of(point, content, semconv)
        assert read_exemplars(message) == exemplars_of(point)


@given(st.integers(), st.integers())
def test_a_number_beyond_64_bits_becomes_the_nearest_that_is_not(value: int, moment: int) -> None:
    exemplar = Exemplar(moment, value, Context(b"t" * 16, b"s" * 8))
    instrument = Instrument("name", "counter", "1", "1")

    metric = read_metric(
        metric_bytes(instrument, [Point((), moment, moment, value, exemplar)], "delta", Content.NONE, "cli")
    )

    (point,) = metric.sum.data_points
    assert point.as_int == point.exemplars[0].as_int == max(-(1 << 63), min(value, (1 << 63) - 1))
    assert point.time_unix_nano == point.start_time_unix_nano == max(0, min(moment, (1 << 64) - 1))


@pytest.mark.parametrize("content", [Content.NONE, Content.METADATA])
def test_nothing_of_a_higher_content_level_is_in_the_bytes(content: Content) -> None:
    label = Attribute("secret.key", str, Content(content + 1), "1", legacy="secret.old")
    for kind in ("counter", "up_down_counter", "histogram"):
        instrument = Instrument("name", kind, "1", "1", labels=(label,), bounds=(1.0,))
        point: Any = Point(("secret",), 1, 2, 3)
        if kind == "histogram":
            point = HistogramPoint(("secret",), 1, 2, 1, 1.0, (1, 0), 1.0, 1.0)

        assert b"secret" not in metric_bytes(instrument, [point], "delta", content, "both")
        assert b"secret" in metric_bytes(instrument, [point], "delta", Content(content + 1), "both")


def test_metrics_make_a_request() -> None:
    instrument = Instrument("name", "counter", "1", "1")
    fields = [metric_bytes(instrument, [Point((), 1, 2, 3)], "delta", Content.NONE, "cli")] * 2

    request = ExportMetricsServiceRequest.FromString(
        request_bytes(resource_bytes({}, Content.NONE, "cli"), scope_bytes("1.2"), fields)
    )

    (scope,) = request.resource_metrics[0].scope_metrics
    assert [metric.name for metric in scope.metrics] == ["name", "name"]
    assert (scope.scope.version, scope.schema_url) == ("1.2", "https://opentelemetry.io/schemas/1.44.0")
