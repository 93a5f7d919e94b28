"""Metrics as OTLP's protobuf bytes: a metric with its data points becomes the field that it is in its request."""

from collections.abc import Sequence
from functools import cache
from struct import Struct, pack
from typing import Final

from otel.encode.keyvalues import KeyValues
from otel.encode.varint import INT64_MAX, INT64_MIN, UINT64_MAX, counted, utf8
from otel.model import Exemplar, HistogramPoint, Point, Temporality
from otel.name_types import Content, Instrument, Semconv
from otel.names import OVERFLOW

_TEMPORALITIES: Final[dict[Temporality, bytes]] = {"delta": b"\x10\x01", "cumulative": b"\x10\x02"}
_IS_MONOTONIC: Final = b"\x18\x01"
_TIMES: Final = Struct("<BQBQ").pack
_COUNT: Final = Struct("<BQBdBdBd").pack
_INT: Final = Struct("<Bq").pack
_DOUBLE: Final = Struct("<Bd").pack
_EXEMPLAR_IDS: Final = Struct("<2s8s2s16s").pack


def metric_bytes(
    instrument: Instrument,
    points: "Sequence[Point | HistogramPoint]",
    temporality: Temporality,
    content: Content,
    semconv: Semconv,
) -> bytes:
    """Return a metric as a field of a request.

    A label above the content level is left out, so points that differ in nothing else must have been added up before.
    The values of a metric are whole numbers when all of them are, else doubles.
    """
    head = counted(b"\x0a", utf8(instrument.name))
    if instrument.meaning:
        head += counted(b"\x12", utf8(instrument.meaning))
    head += counted(b"\x1a", utf8(instrument.unit))
    whole = all(isinstance(point, Point) and isinstance(point.value, int) for point in points)
    written = []
    for point in points:
        if isinstance(point, Point):
            written.append(_number(instrument, point, whole, _labels(b"\x3a", content, semconv)))
        else:
            written.append(_histogram(instrument, point, _labels(b"\x4a", content, semconv)))
    data = b"".join(written) + _TEMPORALITIES[temporality]
    if instrument.kind == "histogram":
        return counted(b"\x12", head + counted(b"\x4a", data))
    return counted(b"\x12", head + counted(b"\x3a", data + (_IS_MONOTONIC if instrument.kind == "counter" else b"")))


@cache
def _labels(tag: bytes, content: Content, semconv: Semconv) -> KeyValues:
    return KeyValues(tag, content, semconv)


def _attributes(instrument: Instrument, point: "Point | HistogramPoint", labels: KeyValues) -> bytes:
    if point.overflow:
        return labels.written([(OVERFLOW, True)])
    pairs = zip(instrument.labels, point.labels, strict=True)
    return labels.written([(label, value) for label, value in pairs if value is not None])


def _number(instrument: Instrument, point: Point, whole: bool, labels: KeyValues) -> bytes:
    written = _times(point) + _value(point.value, whole) + _attributes(instrument, point, labels)
    return counted(b"\x0a", written + _exemplar(b"\x2a", point.exemplar, whole))


def _histogram(instrument: Instrument, point: HistogramPoint, labels: KeyValues) -> bytes:
    counts = point.bucket_counts
    written = (
        _times(point)
        + _COUNT(0x21, point.count, 0x29, point.total, 0x59, point.minimum, 0x61, point.maximum)
        + counted(b"\x32", pack(f"<{len(counts)}Q", *counts))
        + _bounds(instrument.bounds)
        + _attributes(instrument, point, labels)
    )
    return counted(b"\x0a", written + _exemplar(b"\x42", point.exemplar, False))


@cache
def _bounds(bounds: tuple[float, ...]) -> bytes:
    return counted(b"\x3a", pack(f"<{len(bounds)}d", *bounds))


def _times(point: "Point | HistogramPoint") -> bytes:
    start_ns, time_ns = (max(0, min(moment, UINT64_MAX)) for moment in (point.start_ns, point.time_ns))
    return _TIMES(0x11, start_ns, 0x19, time_ns)


def _value(value: float, whole: bool) -> bytes:
    """Return the value of a point or exemplar, whose fields for it have the same numbers but for doubles."""
    return _INT(0x31, max(INT64_MIN, min(int(value), INT64_MAX))) if whole else _DOUBLE(0x21, value)


def _exemplar(tag: bytes, exemplar: Exemplar | None, whole: bool) -> bytes:
    if exemplar is None:
        return b""
    trace_id, span_id = exemplar.context
    whole = whole and isinstance(exemplar.value, int)
    value = _value(exemplar.value, True) if whole else _DOUBLE(0x19, exemplar.value)
    time = pack("<BQ", 0x11, max(0, min(exemplar.time_ns, UINT64_MAX)))
    return counted(tag, time + value + _EXEMPLAR_IDS(b"\x22\x08", span_id, b"\x2a\x10", trace_id))
