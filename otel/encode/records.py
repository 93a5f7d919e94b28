"""Spans, log records and metrics as OTLP's protobuf bytes, without the protobuf library.

Each becomes the field that it is in its request, so that a request is a join and a batch is measured by adding up
lengths. What a content level does not show is left out here, by the level that each attribute carries.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from struct import Struct, pack
from typing import Final, NamedTuple, TypeVar

from otel import names
from otel.encode.keyvalues import KeyValues, key_value
from otel.encode.sentences import sentence
from otel.encode.varint import INT64_MAX, INT64_MIN, UINT64_MAX, counted, utf8, varint
from otel.instruments import OF_RESOURCE
from otel.model import (
    Attributes,
    Exemplar,
    HistogramPoint,
    Link,
    LogRecord,
    Point,
    Span,
    SpanEvent,
    Status,
    Temporality,
)
from otel.names import Content, Instrument, Semconv

_Key = TypeVar("_Key")

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.44.0"
SCOPE_NAME: Final = "session-exporter"

_OWN_NAMES: Final = frozenset(one.name for one in (names.EXCEPTION, names.TOOL_EXCEPTION, names.INFERENCE_DETAILS))
_KEPT_ENTRIES_MAX: Final = 1024
_KEPT_BYTES_MAX: Final = 1024
_SEVERITIES: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_SEVERITY_TEXTS: Final = (b"", *(counted(b"\x1a", text.encode()) for text in _SEVERITIES for _ in range(4)))
_SCHEMA: Final = counted(b"\x1a", SCHEMA_URL.encode())
_STATUS: Final = (b"", b"\x7a\x02\x18\x01", b"\x7a\x02\x18\x02")
_SAMPLED: Final = 1  # in the trace flags: what is sent has been sampled

# Each is the tags and values of fields of a fixed size: ids cannot have another length, times are 64 bits.
_SPAN: Final = Struct("<2s16s2s8sBBBQBQ2sI").pack
_PARENT: Final = Struct("<2s8s").pack
_EVENT: Final = Struct("<BQ").pack
_LINK: Final = Struct("<2s16s2s8sBI").pack
_LOG: Final = Struct("<BQBQ").pack
_LOG_CONTEXT: Final = Struct("<2s16s2s8sBI").pack


class Origin(NamedTuple):
    """What wrote a session: the version of the CLI, and the login name of the user; None where that is not known."""

    version: str | None = None
    user: str | None = None


_UNKNOWN: Final = Origin()


def resource_bytes(
    attributes: Attributes, content: Content, semconv: Semconv, given: "Mapping[str, str] | None" = None
) -> bytes:
    """Return the resource of a request. Attributes that the user gave by name win over ours of that name."""
    given = given or {}
    ours = {a: v for a, v in attributes.items() if not any(key in given for key in a.spellings(semconv))}
    written = KeyValues(b"\x0a", content, semconv).written(ours.items())
    return counted(b"\x0a", written + b"".join([key_value(b"\x0a", key, value) for key, value in given.items()]))


def scope_bytes(version: str) -> bytes:
    """Return the scope of a request: this program and its version."""
    return counted(b"\x0a", counted(b"\x0a", SCOPE_NAME.encode()) + counted(b"\x12", utf8(version)))


def request_bytes(resource: bytes, scope: bytes, records: Iterable[bytes]) -> bytes:
    """Return the body of an export request of records of one signal; all three signals have the same layout."""
    scoped = b"".join((scope, *records, _SCHEMA))
    return counted(b"\x0a", b"".join((resource, b"\x12", varint(len(scoped)), scoped, _SCHEMA)))


@cache
def _record_of(version: str | None, user: str | None) -> "type[bytes]":
    return type("Record", (bytes,), {"__slots__": (), "origin": Origin(version, user)})


def of_origin(record: bytes, version: str | None, user: str | None) -> bytes:
    """Return a record that knows its origin; its bytes are the same."""
    return _record_of(version, user)(record) if version or user else record


def origin_of(record: bytes) -> Origin:
    """Return the origin of a record."""
    origin: Origin = getattr(type(record), "origin", _UNKNOWN)
    return origin


class _Kept(dict[_Key, bytes]):
    """Fields that come again and again, by what they are made of; long ones are made anew each time."""

    def __init__(self, make: Callable[[_Key], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: _Key) -> bytes:
        field = self._make(key)
        if len(field) <= _KEPT_BYTES_MAX:
            if len(self) >= _KEPT_ENTRIES_MAX:
                self.clear()
            self[key] = field
        return field


class Writer:
    """Encodes for one content level and one convention. Call `writer` to get one."""

    def __init__(self, content: Content, semconv: Semconv) -> None:
        self._content = content
        self._span_attributes = KeyValues(b"\x4a", content, semconv)
        self._event_attributes = KeyValues(b"\x1a", content, semconv)
        self._link_attributes = KeyValues(b"\x22", content, semconv)
        self._log_attributes = KeyValues(b"\x32", content, semconv)
        self._span_names = _Kept[str](lambda text: counted(b"\x2a", utf8(text)))
        self._event_names = _Kept[str](lambda text: counted(b"\x12", utf8(text)))
        self._log_heads = _Kept(self._log_head)
        self._log_sessions = _Kept(self._log_session)
        self._log_ids = self._log_attributes.before_text(names.LOG_EVENT_ID)
        self._log_parents = self._log_attributes.before_text(names.EVENT_PARENT_ID)
        self._shows_bodies = content >= Content.REDACTED

    def span(self, span: Span) -> bytes:
        """Return a finished span as a field of a request."""
        name = span.operation
        if span.target is not None and span.target_content <= self._content:
            name = f"{name} {span.target}"
        trace_id, span_id = span.context
        fixed = _SPAN(
            b"\x0a\x10", trace_id, b"\x12\x08", span_id, 0x30, span.kind,
            0x39, _moment(span.start_ns), 0x41, _moment(span.end_ns), b"\x85\x01", _SAMPLED,
        )  # fmt: skip
        written = fixed + self._span_names[name] + self._span_attributes.written(span.attributes.items())
        if span.parent_id is not None:
            written += _PARENT(b"\x22\x08", span.parent_id)
        if span.events:
            written += b"".join(map(self._event, span.events))
        if span.links:
            written += b"".join(map(self._link, span.links))
        written += self._status(span)
        return b"\x12" + varint(len(written)) + written

    def _status(self, span: Span) -> bytes:
        """Return the status of a span; what failed is described as far as the content level allows."""
        if span.status is not Status.ERROR or self._content < Content.METADATA:
            return _STATUS[span.status]
        said = span.failure if self._shows_bodies else None
        told = said or span.attributes.get(names.ERROR_TYPE)
        if not isinstance(told, str):
            return _STATUS[span.status]
        return counted(b"\x7a", counted(b"\x12", utf8(told)) + b"\x18\x02")

    def _event(self, event: SpanEvent) -> bytes:
        written = (
            _EVENT(0x09, _moment(event.time_ns))
            + self._event_names[event.name.name]
            + self._event_attributes.written(event.attributes.items())
        )
        return b"\x5a" + varint(len(written)) + written

    def _link(self, link: Link) -> bytes:
        trace_id, span_id = link.context
        ids = _LINK(b"\x0a\x10", trace_id, b"\x12\x08", span_id, 0x35, _SAMPLED)
        return counted(b"\x6a", ids + self._link_attributes.written(link.attributes.items()))

    def _log_head(self, head: tuple[int, str]) -> bytes:
        """Return what a severity and a type of event are in a log record."""
        severity, name = min(max(head[0], 0), 24), head[1]
        if name not in _OWN_NAMES:
            name = names.LOG_NAME_PREFIX + name
        field = bytes((0x10, severity)) + _SEVERITY_TEXTS[severity] + counted(b"\x62", utf8(name))
        return field + self._log_attributes.written([(names.EVENT_TYPE, head[1])])

    def _log_session(self, session: str) -> bytes:
        return self._log_attributes.written([(names.CONVERSATION_ID, session), (names.SESSION_ID, session)])

    def log(self, record: LogRecord, observed_ns: int) -> bytes:
        """Return a log record as a field of a request."""
        time_ns = record.time_ns
        if not (0 <= time_ns <= UINT64_MAX and 0 <= observed_ns <= UINT64_MAX):
            time_ns, observed_ns = _moment(time_ns), _moment(observed_ns)
        try:
            identity = record.event_id.encode()
            parent = record.parent_id.encode() if record.parent_id is not None else None
        except UnicodeEncodeError:
            identity = utf8(record.event_id)
            parent = utf8(record.parent_id) if record.parent_id is not None else None
        parts = [
            _LOG(0x09, time_ns, 0x59, observed_ns),
            self._log_heads[record.severity, record.event_type],
            self._log_ids[len(identity)],
            identity,
            self._log_sessions[record.session],
        ]
        if parent is not None:
            parts += (self._log_parents[len(parent)], parent)
        if record.agent_id is not None:
            parts.append(self._log_attributes[names.AGENT_INSTANCE_ID][record.agent_id])
        if record.details:
            parts.append(self._log_attributes.written(record.details.items()))
        if record.context is not None:
            trace_id, span_id = record.context
            parts.append(_LOG_CONTEXT(b"\x4a\x10", trace_id, b"\x52\x08", span_id, 0x45, _SAMPLED))
        said = sentence(record, self._content)
        if self._shows_bodies and record.body:
            body = record.body if record.body.isascii() else record.body.decode("utf-8", "replace").encode()
            parts.append(self._log_attributes.written([(names.SUMMARY, said)]))
        else:
            body = utf8(said)
        parts.append(counted(b"\x2a", counted(b"\x0a", body)))
        written = b"".join(parts)
        return b"\x12" + varint(len(written)) + written


def log_time_ns(record: bytes) -> int:
    """Return the time of a log record that a `Writer` encoded."""
    place = 1
    while record[place] & 0x80:
        place += 1
    return int.from_bytes(record[place + 2 : place + 10], "little")


@cache
def writer(content: Content, semconv: Semconv) -> Writer:
    """Return the writer for a content level and a convention."""
    return Writer(content, semconv)


def _moment(time_ns: int) -> int:
    """Return a time in the range of OTLP: not before 1970."""
    return time_ns if 0 <= time_ns <= UINT64_MAX else max(0, min(time_ns, UINT64_MAX))


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
        return labels.written([(names.OVERFLOW, True)])
    pairs = zip(instrument.labels, point.labels, strict=True)
    shown = [(label, value) for label, value in pairs if value is not None and label not in OF_RESOURCE]
    return labels.written(shown)


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
