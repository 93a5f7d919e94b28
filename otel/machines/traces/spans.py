"""Making, filling and finishing spans: what all of them have in common."""

from functools import partial
from typing import Final

from otel import ids, names
from otel.model import Attributes, Context, Kind, Link, Span, SpanEvent, Status
from otel.name_types import Attribute, Content, EventName, Value

TEXT_BYTES_MAX: Final = 65_536
EVENTS_PER_SPAN_MAX: Final = 1_000
_CUT_MARK: Final = "… [cut]"
_INTEGER_MAX: Final = 2**63
# What `Context(…)` does, without the steps in between: it is done for every span.
_context: Final = partial(tuple.__new__, Context)


class Spans:
    """Makes the spans of one session; `legacy` gives them the shape of CLI 1.0.48, `content` their texts."""

    __slots__ = ("_bases", "content", "legacy", "session")

    def __init__(self, session: str, *, legacy: bool, content: bool) -> None:
        self.session = session
        self.legacy = legacy
        self.content = content
        self._bases: dict[str, Attributes] = {}

    def begin(
        self,
        operation: str,
        opened_by: str,
        start_ns: int,
        parent: Context | None,
        target: str | None = None,
        target_content: Content = Content.NONE,
        kind: Kind = Kind.INTERNAL,
    ) -> Span:
        """Return a span that has begun; it begins a trace of its own when it has no parent. Its end is 0 for now."""
        context = _context((
            parent.trace_id if parent is not None else ids.trace_id(self.session, opened_by),
            ids.span_id(operation, self.session, opened_by),
        ))  # fmt: skip
        above = parent.span_id if parent is not None else None
        base = self._bases.get(operation)
        if base is None:
            base = self._bases[operation] = {
                names.CONVERSATION_ID: self.session,
                names.SESSION_ID: self.session,
                names.OPERATION: operation,
            }
        attributes = base.copy()
        attributes[names.EVENT_ID] = opened_by
        return Span(context, above, operation, target, target_content, kind, start_ns, 0, opened_by, attributes)


def finish(span: Span, end_ns: int, error: str | None = None) -> Span:
    """End a span, never before it began; with an error type it has failed. Returns the span."""
    span.end_ns = end_ns if end_ns > span.start_ns else span.start_ns
    if error is not None:
        span.status = Status.ERROR
        span.attributes.setdefault(names.ERROR_TYPE, error)
    return span


def orphan(span: Span, end_ns: int) -> Span:
    """End a span whose process died, at the last event. Returns the span."""
    span.attributes[names.ORPHANED] = True
    span.attributes[names.ERROR_TYPE] = "process_crash"
    return finish(span, end_ns, "process_crash")


def add_event(span: Span, time_ns: int, name: EventName, attributes: Attributes) -> None:
    """Add a span event, unless the span has as many as one may have."""
    if len(span.events) < EVENTS_PER_SPAN_MAX:
        span.events.append(SpanEvent(time_ns, name, attributes))


def fill(attributes: Attributes, *pairs: tuple[Attribute, Value | None]) -> Attributes:
    """Set what is known and fits the type of its name; leave out None and empty texts. Returns the attributes.

    Attributes that are plain fields of a payload are set by `rows.row`.
    """
    for attribute, value in pairs:
        if value is None:
            continue
        wanted = attribute.type
        if wanted is str:
            if isinstance(value, str) and value:
                attributes[attribute] = value if len(value) <= TEXT_BYTES_MAX and value.isascii() else cut(value)
        elif wanted is bool or isinstance(value, bool):
            if type(value) is wanted:
                attributes[attribute] = value
        elif isinstance(value, (int, float)) and -_INTEGER_MAX < value < _INTEGER_MAX:
            attributes[attribute] = wanted(value)
    return attributes


def cut(text: str, bytes_max: int = TEXT_BYTES_MAX) -> str:
    """Return a text no longer than a value may be, marked when it was cut, and always valid in UTF-8."""
    if len(text) <= bytes_max and text.isascii():
        return text
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= bytes_max:
        return encoded.decode()
    room = bytes_max - len(_CUT_MARK.encode())
    return encoded[:room].decode("utf-8", "ignore") + _CUT_MARK


def link(context: Context, kind: str) -> Link:
    """Return a reference to another span, with the reason for it."""
    return Link(context, {names.LINK_TYPE: kind})


def parse_traceparent(text: str | None) -> Context | None:
    """Return the place that a W3C traceparent names, or None when it is none."""
    parts = (text or "").strip().split("-")
    if len(parts) < 4 or (len(parts[0]), len(parts[1]), len(parts[2])) != (2, 32, 16) or parts[0] == "ff":
        return None
    try:
        trace, span = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
    except ValueError:
        return None
    return Context(trace, span) if len(trace) == 16 and len(span) == 8 and any(trace) and any(span) else None
