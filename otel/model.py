"""What the machines produce: finished spans, log records and measurements, free of any wire format."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from otel.names import Attribute, Content, EventName, Instrument, Value

Attributes: TypeAlias = "dict[Attribute, Value]"
Temporality: TypeAlias = Literal["cumulative", "delta"]


class Kind(IntEnum):
    """The kinds of spans that we make, with OTLP's numbers."""

    INTERNAL = 1
    CLIENT = 3


class Status(IntEnum):
    """The status of a span, with OTLP's numbers."""

    UNSET = 0
    OK = 1
    ERROR = 2


class Context(NamedTuple):
    """The place in a trace that something belongs to: 16 and 8 bytes."""

    trace_id: bytes
    span_id: bytes


class SpanEvent(Struct, gc=False):
    """Something that happened at one moment of a span."""

    time_ns: int
    name: EventName
    attributes: Attributes = field(default_factory=dict)


class Link(Struct, gc=False):
    """A reference to a span of another trace, such as the previous interaction of the session."""

    context: Context
    attributes: Attributes = field(default_factory=dict)


class Span(Struct, gc=False):
    """A finished span. Its name is `operation`, followed by `target` where the content level allows it.

    `failure` is the text of its error, for content level `redacted`.

    `opened_by` is the id of the event that opened it: the ids derive from it and from nothing that may change.
    """

    context: Context
    parent_id: bytes | None
    operation: str
    target: str | None
    target_content: Content
    kind: Kind
    start_ns: int
    end_ns: int
    opened_by: str
    attributes: Attributes = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    status: Status = Status.UNSET
    failure: str | None = None


class LogRecord(Struct, gc=False):
    """One durable event as a log record; `body` is its redacted line and is sent at content level `redacted` only.

    Below that level the body is a sentence about the event, which is an attribute at `redacted`.

    `details` are the attributes from its data; those of every record (event, session, agent) have fields. `event_type`
    is the name of the record itself where it is not about the whole event.
    """

    time_ns: int
    event_id: str
    event_type: str
    severity: int
    context: Context | None
    session: str
    parent_id: str | None = None
    agent_id: str | None = None
    details: Attributes = field(default_factory=dict)
    body: bytes = b""


class Measurement(Struct, gc=False):
    """A number to be added to a counter or recorded in a histogram. `labels` are in the instrument's own order.

    None stands for a label that this measurement has not.
    """

    instrument: Instrument
    time_ns: int
    value: float
    labels: "tuple[Value | None, ...]"
    context: Context | None


class Exemplar(NamedTuple):
    """One measurement that a point was made of, and the span in which it was made."""

    time_ns: int
    value: float
    context: Context


@dataclass(slots=True)
class Point:
    """The sum of a counter, or the last value of an up-down counter, for one set of labels.

    `labels` are in the instrument's own order; None stands for a label that this point has not. A point with
    `overflow` stands for all the sets of labels that there was no room for; its labels are not sent.
    """

    labels: "tuple[Value | None, ...]"
    start_ns: int
    time_ns: int
    value: float
    exemplar: Exemplar | None = None
    overflow: bool = False


@dataclass(slots=True)
class HistogramPoint:
    """The distribution of one set of labels; `bucket_counts` has one entry more than the instrument has bounds."""

    labels: "tuple[Value | None, ...]"
    start_ns: int
    time_ns: int
    count: int
    total: float
    bucket_counts: tuple[int, ...]
    minimum: float
    maximum: float
    exemplar: Exemplar | None = None
    overflow: bool = False
