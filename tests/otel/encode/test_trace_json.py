"""Spans as OTLP JSON are the spans that go over the wire."""

import base64
import json
from importlib.resources import files
from typing import Any, Final

from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]  # comes without types
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel.encode.records import request_bytes, resource_bytes, scope_bytes
from otel.encode.trace_json import spans_of, trace_json
from otel.names import Content
from tests.otel.bodies import span_bytes

_DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes().splitlines()


def _binary_ids(message: dict[str, Any]) -> dict[str, Any]:
    """Spell ids as protobuf's own JSON wants them; OTLP's JSON has them in hex."""

    def spelt(key: str, value: Any) -> Any:
        if key in ("traceId", "spanId", "parentSpanId"):
            return base64.b64encode(bytes.fromhex(value)).decode()
        if isinstance(value, dict):
            return {name: spelt(name, one) for name, one in value.items()}
        return [spelt("", one) for one in value] if isinstance(value, list) else value

    return {name: spelt(name, value) for name, value in message.items()}


def test_both_forms_tell_the_same() -> None:
    told = ParseDict(_binary_ids(json.loads(json.dumps(trace_json("s", _DEMO, "1")))), ExportTraceServiceRequest())
    finished, still_open = spans_of("s", _DEMO)
    encoded = [span_bytes(span, Content.REDACTED, "cli") for span in (*finished, *still_open)]
    body = request_bytes(resource_bytes({}, Content.REDACTED, "cli"), scope_bytes("1"), encoded)
    [expected] = ExportTraceServiceRequest.FromString(body).resource_spans

    [written] = told.resource_spans
    assert len(written.scope_spans[0].spans) == len(encoded) > 30
    for ours, theirs in zip(written.scope_spans[0].spans, expected.scope_spans[0].spans, strict=True):
        for link in theirs.links:
            link.ClearField("flags")
        if not ours.status.code:
            ours.ClearField("status")
        assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


def test_a_session_that_goes_on_shows_what_is_open() -> None:
    starts = next(index for index, line in enumerate(_DEMO) if b'"tool.execution_start"' in line)

    _, still_open = spans_of("s", _DEMO[: starts + 1])

    assert {span.operation for span in still_open} == {"invoke_agent", "execute_tool"}


def test_one_interaction_is_the_spans_of_its_trace_without_their_content() -> None:
    def spans(begun_by: str | None) -> list[dict[str, Any]]:
        [resource] = trace_json("s", _DEMO, "1", begun_by=begun_by)["resourceSpans"]
        return list(resource["scopeSpans"][0]["spans"])

    def outline(span: dict[str, Any]) -> dict[str, Any]:
        return {**span, "attributes": None, "events": [(one["timeUnixNano"], one["name"]) for one in span["events"]]}

    message = next(json.loads(line)["id"] for line in _DEMO if json.loads(line)["type"] == "user.message")
    wholes = {span["spanId"]: span for span in spans(None)}
    part = spans(message)

    assert 5 < len(part) <= len(wholes)
    assert len({span["traceId"] for span in part}) == 1
    assert all(outline(span) == outline(wholes[span["spanId"]]) for span in part)
    assert spans("nobody") == []
