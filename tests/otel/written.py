"""Spans, events, links and records of every shape for the tests of the wire, and what must be read back."""

import math
from collections.abc import Iterable
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from otel import names
from otel.model import Attributes, Context, Kind, Link, LogRecord, Span, SpanEvent, Status
from otel.names import Attribute, Content, EventName, Semconv

INT64: Final = (-(1 << 63), (1 << 63) - 1)
TIMES: Final = st.integers(0, (1 << 64) - 1)
TEXTS: Final = st.one_of(st.text(max_size=40), st.text(st.characters(), max_size=300), st.just("x" * 5000))
SEMCONVS: Final = st.sampled_from(["cli", "latest", "legacy", "both"])
CONTENTS: Final = st.sampled_from(list(Content))
CONTEXTS: Final = st.builds(Context, st.binary(min_size=16, max_size=16), st.binary(min_size=8, max_size=8))
VALUES: Final = st.one_of(
    TEXTS, st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.lists(TEXTS, max_size=4).map(tuple)
)
NAMES: Final = [
    Attribute(f"name.{kind.__name__}.{content.name.lower()}.{legacy}", kind, content, "1", legacy=legacy)
    for kind in (str, bool, int, float, tuple)
    for content in Content
    for legacy in (None, f"old.{kind.__name__}.{content.name.lower()}")
]
EVENT_NAMES: Final = [EventName("thing.happened", "1"), EventName("other\ud800", "1")]
ATTRIBUTES: Final[SearchStrategy[Attributes]] = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=12)
SPANS: Final = st.builds(
    Span,
    context=CONTEXTS,
    parent_id=st.none() | st.binary(min_size=8, max_size=8),
    operation=TEXTS,
    target=st.none() | TEXTS,
    target_content=CONTENTS,
    kind=st.sampled_from(Kind),
    start_ns=TIMES,
    end_ns=TIMES,
    opened_by=st.just("e1"),
    attributes=ATTRIBUTES,
    events=st.lists(st.builds(SpanEvent, TIMES, st.sampled_from(EVENT_NAMES), ATTRIBUTES), max_size=3),
    links=st.lists(st.builds(Link, CONTEXTS, ATTRIBUTES), max_size=2),
    status=st.sampled_from(Status),
)
RECORDS: Final = st.builds(
    LogRecord,
    time_ns=TIMES,
    event_id=TEXTS,
    event_type=TEXTS,
    severity=st.integers(-1, 30),
    context=st.none() | CONTEXTS,
    session=TEXTS,
    parent_id=st.none() | TEXTS,
    agent_id=st.none() | TEXTS,
    details=ATTRIBUTES,
    body=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")),
)


def attributes_of(record: LogRecord) -> Attributes:
    """All attributes of a record, in the order in which they are sent."""
    attributes: Attributes = {
        names.EVENT_TYPE: record.event_type,
        names.LOG_EVENT_ID: record.event_id,
        names.CONVERSATION_ID: record.session,
        names.SESSION_ID: record.session,
    }
    if record.parent_id is not None:
        attributes[names.EVENT_PARENT_ID] = record.parent_id
    if record.agent_id is not None:
        attributes[names.AGENT_INSTANCE_ID] = record.agent_id
    return attributes | record.details


def readable(text: str) -> str:
    """Text as UTF-8 can carry it."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def expected(attributes: Attributes, content: Content, semconv: Semconv) -> list[tuple[str, object]]:
    """Keys and values that must be read back, in order; a value is paired with its type."""
    return [
        (key, told(attribute, value))
        for attribute, value in attributes.items()
        if attribute.content <= content
        for key in attribute.spellings(semconv)
    ]


def told(attribute: Attribute, value: object) -> object:
    """A value as it must be read back: its type's name in OTLP and itself."""
    if isinstance(value, (bool, int, float)):
        if attribute.type is float:
            return "double_value", _double(value)
        if attribute.type is int and value == value // 1 and not math.isinf(value):
            return "int_value", max(INT64[0], min(INT64[1], int(value)))
        if attribute.type is bool and value in (0, 1):
            return "bool_value", bool(value)
    if isinstance(value, bool):
        return "bool_value", value
    if isinstance(value, int):
        return "int_value", max(INT64[0], min(INT64[1], value))
    if isinstance(value, float):
        return "double_value", _double(value)
    if isinstance(value, tuple):
        return "array_value", [("string_value", readable(item)) for item in value]
    assert isinstance(value, str)
    return "string_value", readable(value)


def read(pairs: Iterable[KeyValue]) -> list[tuple[str, object]]:
    """Keys and values as they were read, to be compared with `expected`."""
    return [(pair.key, _read(pair.value)) for pair in pairs]


def _read(value: AnyValue) -> object:
    kind: Any = value.WhichOneof("value")
    if kind == "array_value":
        return kind, [_read(item) for item in value.array_value.values]
    found = getattr(value, kind)
    return kind, _double(found) if kind == "double_value" else found


def _double(number: float) -> str:
    """A double as text: NaN equals NaN, and 0.0 differs from -0.0."""
    try:
        return repr(float(number))
    except OverflowError:
        return "inf" if number > 0 else "-inf"
