"""Making, filling and finishing spans: what all of them have in common.

The ids of traces and spans derive only from the session's id and the id of the event that opened them, so live
following, a later backfill and restarts give the same ids. Ids of tool calls and turns are not used: they are not
unique within a session.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import blake2b
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_type_hints

import msgspec

from otel import names
from otel.model import Attributes, Context, Kind, Link, Span, SpanEvent, Status
from otel.names import Attribute, Content, EventName, Semconv, Value
from otel.payloads import Number

_VERSION: Final = b"session-exporter/v1"
TEXT_BYTES_MAX: Final = 65_536
EVENTS_PER_SPAN_MAX: Final = 1_000
_CUT_MARK: Final = "… [cut]"
_INTEGER_MAX: Final = 2**63
# Operations whose target, the name of an agent, a workflow or a model, is not sent at content level `none`.
_METADATA_TARGETS: Final = frozenset((names.INVOKE_AGENT, names.INVOKE_WORKFLOW, names.CHAT))
# What `Context(…)` does, without the steps in between: it is done for every span.
_context: Final = partial(tuple.__new__, Context)


def trace_id(session: str, opened_by: str) -> bytes:
    """Return the 16 bytes of the trace of the interaction that an event opened."""
    return _hash(16, "trace", session, opened_by)


def span_id(kind: str, session: str, opened_by: str) -> bytes:
    """Return the 8 bytes of the span of an operation that an event opened."""
    return _hash(8, kind, session, opened_by)


def _hash(size: int, kind: str, session: str, opened_by: str) -> bytes:
    digest = blake2b(_begun(kind, session) + opened_by.encode("utf-8", "replace"), digest_size=size).digest()
    # All zeros mean "no id" in OTLP.
    return digest if digest.strip(b"\0") else bytes(size - 1) + b"\1"


@lru_cache(maxsize=256)
def _begun(kind: str, session: str) -> bytes:
    return b"\0".join((_VERSION, kind.encode("utf-8", "replace"), session.encode("utf-8", "replace"), b""))


@dataclass(slots=True)
class Spans:
    """Makes the spans of one session, in the shape of a convention; `content` adds their texts.

    `done` has the finished ones. `told` has what failed, each with its place, when that is for log records.
    """

    session: str
    semconv: Semconv
    content: bool
    done: list[Span] = field(default_factory=list)
    told: list[tuple[Context, SpanEvent]] = field(default_factory=list)
    _bases: dict[str, Attributes] = field(default_factory=dict)

    def begin(
        self,
        operation: str,
        opened_by: str,
        start_ns: int,
        parent: Context | None,
        target: str | None = None,
        kind: Kind = Kind.INTERNAL,
    ) -> Span:
        """Return a span that has begun; it begins a trace of its own when it has no parent. Its end is 0 for now."""
        context = _context((
            parent.trace_id if parent is not None else trace_id(self.session, opened_by),
            span_id(operation, self.session, opened_by),
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
        content = Content.METADATA if operation in _METADATA_TARGETS else Content.NONE
        return Span(context, above, operation, target, content, kind, start_ns, 0, opened_by, attributes)

    @property
    def legacy(self) -> bool:
        """Whether spans have the shape that CLI 1.0.48 gives them."""
        return self.semconv == "legacy"

    @property
    def genai(self) -> bool:
        """Whether spans have the shape that the GenAI conventions give them."""
        return self.semconv == "latest"

    def failed(self, span: Span, time_ns: int, said: Attributes) -> None:
        """Tell what failed: as an event of the span, or for a log record where the conventions want that."""
        if self.genai:
            name = names.TOOL_EXCEPTION if span.operation == names.EXECUTE_TOOL else names.EXCEPTION
            self.told.append((span.context, SpanEvent(time_ns, name, said)))
        else:
            add_event(span, time_ns, names.EXCEPTION, said)

    def pop_told(self) -> list[tuple[Context, SpanEvent]]:
        """Return and clear what log records are to tell."""
        told, self.told = self.told, []
        return told

    def end(self, span: Span, end_ns: int, error: str | None = None) -> None:
        """Finish a span and append it to `done`."""
        self.done.append(finish(span, end_ns, error))

    def pop_done(self) -> list[Span]:
        """Return and clear the finished spans."""
        done, self.done = self.done, []
        return done


def finish(span: Span, end_ns: int, error: str | None = None) -> Span:
    """End a span, never before it began; with an error type it has failed. Returns the span."""
    span.end_ns = end_ns if end_ns > span.start_ns else span.start_ns
    if error is not None:
        span.status = Status.ERROR
        span.attributes.setdefault(names.ERROR_TYPE, error)
    return span


def orphan(span: Span, end_ns: int, error: str) -> Span:
    """End a span whose end no event says, at the last event. Returns the span."""
    span.attributes[names.ORPHANED] = span.attributes[names.DURATION_UNKNOWN] = True
    span.attributes[names.ERROR_TYPE] = error
    return finish(span, end_ns, error)


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


T = TypeVar("T", bound=msgspec.Struct)

# For each type of attribute: the type that its field must have, and the statement that sets it.
_WRITTEN: Final[dict[type, tuple[Any, str]]] = {
    str: (str | None, "if value: attributes[{name}] = value if len(value) <= most and value.isascii() else cut(value)"),
    bool: (bool | None, "if value is not None: attributes[{name}] = value"),
    int: (Number | None, "if value is not None: attributes[{name}] = int(value)"),
    float: (Number | None, "if value is not None: attributes[{name}] = float(value)"),
}


def row(kind: type[T], *attributes: tuple[Attribute, str]) -> Callable[[T, Attributes], Attributes]:
    """Return a function that sets attributes from fields of a payload and returns them.

    Absent values and empty texts are left out; long texts are truncated. `part.field` names a field of a part.
    """
    lines = ["def fill_row(data, attributes):"]
    known: dict[str, object] = {"most": TEXT_BYTES_MAX, "cut": cut}
    for place, (attribute, path) in enumerate(attributes):
        hint, written = _WRITTEN[attribute.type]
        assert _hint(kind, path) == hint, f"{kind.__name__}.{path} does not fit {attribute.name}"
        known[f"name{place}"] = attribute
        outer, dot, inner = path.partition(".")
        lines.append(f"    value = data.{outer}")
        if dot:
            lines.append(f"    value = value.{inner} if value is not None else None")
        lines.append("    " + written.format(name=f"name{place}"))
    lines.append("    return attributes")
    exec("\n".join(lines), known)  # noqa: S102  # of this table and nothing else
    fill_row: Callable[[T, Attributes], Attributes] = known["fill_row"]  # type: ignore[assignment]  # compiled above
    return fill_row


def _hint(kind: type, path: str) -> object:
    """Return the type of a field, or of a field of a part."""
    name, dot, inner = path.partition(".")
    hint = get_type_hints(kind, include_extras=True)[name]
    if not dot:
        return hint
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return _hint(parts[0], inner)
