"""A session's spans as OTLP JSON, which any trace viewer opens; from redacted events, complete as far as they go."""

from collections.abc import Iterable
from typing import Any, Final

from otel import names
from otel.encode.records import SCHEMA_URL, SCOPE_NAME
from otel.event import read
from otel.machines.traces.machine import Traces
from otel.model import Attributes, Link, Span
from otel.names import Content, Value

_RESOURCE: Final[Attributes] = {names.SERVICE_NAME: "github-copilot"}


def spans_of(session: str, lines: Iterable[bytes], *, content: bool = True) -> tuple[list[Span], list[Span]]:
    """Return the spans that a session's events finished, and those that are still open as they would end now."""
    machine = Traces(session, content=content)
    finished: list[Span] = []
    for line in lines:
        event = read(line)
        if event is not None:
            finished.extend(machine.take(event).spans)
    return finished, machine.process_died()


def trace_json(session: str, lines: Iterable[bytes], version: str, *, begun_by: str | None = None) -> dict[str, Any]:
    """Return the spans of a session as one OTLP JSON request; what is still open is marked by `orphaned`.

    With the id of an event only those of the interaction that it began, without their texts, arguments and results.
    """
    finished, still_open = spans_of(session, lines, content=begun_by is None)
    scope = {"name": SCOPE_NAME, "version": version}
    wanted = {span.context.trace_id for span in (*finished, *still_open) if begun_by in (None, span.opened_by)}
    spans = [_span(span) for span in (*finished, *still_open) if span.context.trace_id in wanted]
    scoped = {"scope": scope, "spans": spans, "schemaUrl": SCHEMA_URL}
    resource = {"attributes": _attributes(_RESOURCE)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped], "schemaUrl": SCHEMA_URL}]}


def _span(span: Span) -> dict[str, Any]:
    target = span.target if span.target_content <= Content.REDACTED else None
    written: dict[str, Any] = {
        "traceId": span.context.trace_id.hex(),
        "spanId": span.context.span_id.hex(),
        "name": f"{span.operation} {target}" if target is not None else span.operation,
        "kind": int(span.kind),
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _attributes(span.attributes),
        "events": [
            {"timeUnixNano": str(one.time_ns), "name": one.name.name, "attributes": _attributes(one.attributes)}
            for one in span.events
        ],
        "links": [_link(link) for link in span.links],
        "status": {"code": int(span.status)} if span.status else {},
        "flags": 1,
    }
    if span.parent_id is not None:
        written["parentSpanId"] = span.parent_id.hex()
    return written


def _link(link: Link) -> dict[str, Any]:
    ids = {"traceId": link.context.trace_id.hex(), "spanId": link.context.span_id.hex()}
    return {**ids, "attributes": _attributes(link.attributes)}


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for name, value in attributes.items() for key in name.spellings("cli")]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case tuple():
            return {"arrayValue": {"values": [_value(one) for one in value]}}
        case _:
            return {"stringValue": value.encode("utf-8", "replace").decode()}
