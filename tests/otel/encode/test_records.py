"""Spans, records and requests as bytes: read back by opentelemetry-proto, field by field."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
from opentelemetry.proto.logs.v1.logs_pb2 import ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

from otel.encode.keyvalues import KEPT_ENTRIES_MAX, KeyValues
from otel.encode.records import request_bytes, resource_bytes, scope_bytes
from otel.encode.sentences import sentence
from otel.model import Attributes, Context, Kind, Link, LogRecord, Span, SpanEvent
from otel.names import SUMMARY, Attribute, Content, EventName, Semconv
from tests.otel.bodies import log_bytes, span_bytes
from tests.otel.written import CONTENTS, RECORDS, SEMCONVS, SPANS, TIMES, attributes_of, expected, read, readable

SECRET = "planted-secret"
SEVERITIES = ["", *(text for text in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL") for _ in range(4))]


def read_span(field: bytes) -> SpanMessage:
    message: SpanMessage
    (message,) = ScopeSpans.FromString(field).spans
    return message


def read_log(field: bytes) -> LogMessage:
    message: LogMessage
    (message,) = ScopeLogs.FromString(field).log_records
    return message


@given(SPANS, CONTENTS, SEMCONVS)
def test_a_span_is_read_back_field_by_field(span: Span, content: Content, semconv: Semconv) -> None:
    message = read_span(span_bytes(span, content, semconv))

    shown = span.target is not None and span.target_content <= content
    assert message.name == readable(f"{span.operation} {span.target}" if shown else span.operation)
    assert (message.trace_id, message.span_id) == span.context
    assert message.parent_span_id == (span.parent_id or b"")
    assert message.flags == 1
    assert int(message.kind) == span.kind.value
    assert (message.start_time_unix_nano, message.end_time_unix_nano) == (span.start_ns, span.end_ns)
    assert int(message.status.code) == span.status.value
    assert read(message.attributes) == expected(span.attributes, content, semconv)
    assert [(e.time_unix_nano, e.name, read(e.attributes)) for e in message.events] == [
        (e.time_ns, readable(e.name.name), expected(e.attributes, content, semconv)) for e in span.events
    ]
    assert [(link.trace_id, link.span_id, link.flags, read(link.attributes)) for link in message.links] == [
        (*link.context, 1, expected(link.attributes, content, semconv)) for link in span.links
    ]


@given(SPANS, CONTENTS, SEMCONVS)
def test_a_span_holds_nothing_that_opentelemetry_does_not_know(span: Span, content: Content, semconv: Semconv) -> None:
    message = read_span(span_bytes(span, content, semconv))

    size = message.ByteSize()
    message.DiscardUnknownFields()
    assert message.ByteSize() == size


@given(RECORDS, CONTENTS, SEMCONVS, TIMES)
def test_a_log_record_is_read_back_field_by_field(
    record: LogRecord, content: Content, semconv: Semconv, observed_ns: int
) -> None:
    message = read_log(log_bytes(record, content, semconv, observed_ns))

    assert (message.time_unix_nano, message.observed_time_unix_nano) == (record.time_ns, observed_ns)
    assert message.severity_number == min(max(record.severity, 0), 24)
    assert message.severity_text == SEVERITIES[message.severity_number]
    assert message.event_name == readable("github.copilot." + record.event_type)
    assert (message.trace_id, message.span_id) == (record.context or (b"", b""))
    assert message.flags == (1 if record.context else 0)
    said = readable(sentence(record, content))
    has_line = content == Content.REDACTED and bool(record.body)
    summary: Attributes = {SUMMARY: said} if has_line else {}
    assert read(message.attributes) == expected({**attributes_of(record), **summary}, content, semconv)
    assert message.body.string_value == (record.body.decode("utf-8", "replace") if has_line else said)


@given(
    st.sampled_from([Content.NONE, Content.METADATA]),
    SEMCONVS,
    st.sampled_from([str, int, bool, float, tuple]),
    st.sampled_from([str, tuple]),
)
def test_nothing_of_a_higher_content_level_is_in_the_bytes(
    content: Content, semconv: Semconv, declared: type, holds: type
) -> None:
    level = Content(content + 1)
    value: Any = SECRET if holds is str else (SECRET, "more")
    hidden: Attributes = {Attribute(f"{SECRET}.key", declared, level, "1", legacy=f"{SECRET}.old"): value}
    place = Context(b"t" * 16, b"s" * 8)
    happened = EventName("happened", "1")
    span = Span(
        place, None, "chat", SECRET, level, Kind.CLIENT, 1, 2, "e", hidden,
        [SpanEvent(1, happened, hidden)], [Link(place, hidden)],
    )  # fmt: skip
    record = LogRecord(1, "e", "user.message", 9, place, "s", details=hidden, body=SECRET.encode())

    written = span_bytes(span, content, semconv) + log_bytes(record, content, semconv, 1)
    written += resource_bytes(hidden, content, semconv)

    assert SECRET.encode() not in written
    assert SECRET.encode() in span_bytes(span, level, semconv)


@given(st.lists(SPANS, max_size=3), st.lists(RECORDS, max_size=3), st.text(max_size=20))
def test_requests_hold_resource_scope_schema_and_records(
    spans: list[Span], records: list[LogRecord], version: str
) -> None:
    name = Attribute("service.name", str, Content.NONE, "1")
    resource = resource_bytes({name: "github-copilot"}, Content.NONE, "cli", {"team": "a", "deployment": "é"})
    scope = scope_bytes(version)
    span_fields = [span_bytes(span, Content.METADATA, "cli") for span in spans]
    log_fields = [log_bytes(record, Content.METADATA, "cli", 1) for record in records]

    traces = ExportTraceServiceRequest.FromString(request_bytes(resource, scope, span_fields))
    logs = ExportLogsServiceRequest.FromString(request_bytes(resource, scope, log_fields))

    (spans_part,), (logs_part,) = traces.resource_spans, logs.resource_logs
    (span_scope,), (log_scope,) = spans_part.scope_spans, logs_part.scope_logs
    assert list(span_scope.spans) == [read_span(field) for field in span_fields]
    assert list(log_scope.log_records) == [read_log(field) for field in log_fields]
    for part in (spans_part, span_scope, logs_part, log_scope):
        assert part.schema_url == "https://opentelemetry.io/schemas/1.44.0"
    for scoped in (span_scope.scope, log_scope.scope):
        assert (scoped.name, scoped.version) == ("session-exporter", version)
    for told in (spans_part.resource, logs_part.resource):
        assert [(pair.key, pair.value.string_value) for pair in told.attributes] == [
            ("service.name", "github-copilot"), ("team", "a"), ("deployment", "é"),
        ]  # fmt: skip


def test_a_resource_attribute_that_the_user_gave_replaces_ours() -> None:
    name = Attribute("service.name", str, Content.NONE, "1")

    field = resource_bytes({name: "github-copilot"}, Content.NONE, "cli", {"service.name": "mine"})

    assert field.count(b"service.name") == 1
    assert b"mine" in field
    assert b"github-copilot" not in field


@given(st.integers(), st.integers())
@example(-1, 1 << 64)
def test_a_time_that_otlp_cannot_tell_becomes_the_nearest_that_it_can(start_ns: int, end_ns: int) -> None:
    span = Span(Context(b"t" * 16, b"s" * 8), None, "chat", None, Content.NONE, Kind.CLIENT, start_ns, end_ns, "e")

    message = read_span(span_bytes(span, Content.NONE, "cli"))

    assert message.start_time_unix_nano == min(max(start_ns, 0), (1 << 64) - 1)
    assert message.end_time_unix_nano == min(max(end_ns, 0), (1 << 64) - 1)


def test_values_that_are_no_values_of_ours_cost_no_more_than_themselves() -> None:
    name = Attribute("name", str, Content.NONE, "1")
    strange: Any = {name: ["a", {"b": 1}], Attribute("none", str, Content.NONE, "1"): None}
    record = LogRecord(1, "e", "x", 9, None, "s", details=strange)

    message = read_log(log_bytes(record, Content.NONE, "cli", 1))

    assert [pair.key for pair in message.attributes][4:] == ["name"]
    assert [item.string_value for item in message.attributes[4].value.array_value.values] == ["a", "{'b': 1}"]


def test_equal_values_of_other_types_do_not_borrow_each_others_bytes() -> None:
    whole, flag, double = (Attribute(kind.__name__, kind, Content.NONE, "1") for kind in (int, bool, float))
    kept = KeyValues(b"\x0a", Content.NONE, "cli")

    for order in ([True, 1, 1.0, 0.0, -0.0], [-0.0, 0.0, 1.0, 1, True]):
        for attribute in (whole, flag, double):
            for value in order:
                fresh = KeyValues(b"\x0a", Content.NONE, "cli")
                assert kept.written([(attribute, value)]) == fresh.written([(attribute, value)])


def test_what_is_kept_for_speed_has_a_limit() -> None:
    text, hidden = Attribute("text", str, Content.NONE, "1"), Attribute("hidden", str, Content.REDACTED, "1")
    kept = KeyValues(b"\x0a", Content.NONE, "cli")

    for number in range(3 * KEPT_ENTRIES_MAX):
        kept.written([(text, f"value {number}"), (hidden, "long" * 1000 + str(number))])
    kept.written([(text, "x" * 100_000), (text, "é" * 200)])

    assert len(kept[text]) + len(kept[hidden]) <= KEPT_ENTRIES_MAX
    assert max(len(str(value)) for value in kept[text]) < 300
