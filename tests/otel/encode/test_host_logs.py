"""What an agent host logs is the same log in protobuf, whatever else it may send."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]  # comes without types
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel.encode.host_logs import log_request

# As VS Code's agent host wrote it, and beside it everything else that OTLP knows of a record.
PLAIN: dict[str, Any] = {
    "timeUnixNano": "1795039356448000000",
    "observedTimeUnixNano": "1795039356449000000",
    "severityNumber": 13,
    "severityText": "warn",
    "body": {"stringValue": "[git] > git rev-parse failed; full stderr:\nfatal: ü"},
}
FULL: dict[str, Any] = {
    **PLAIN,
    "attributes": [
        {"key": "yes", "value": {"boolValue": True}},
        {"key": "many", "value": {"intValue": "-9223372036854775808"}},
        {"key": "share", "value": {"doubleValue": 0.25}},
        {"key": "raw", "value": {"bytesValue": base64.b64encode(b"\0\xff").decode()}},
        {"key": "some", "value": {"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "7"}, {}]}}},
        {"key": "in", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}},
    ],
    "flags": 1,
    "traceId": "0123456789abcdef0123456789abcdef",
    "spanId": "0123456789abcdef",
    "eventName": "made.up",
}


def payload(*records: dict[str, Any]) -> dict[str, Any]:
    scope = {"name": "vscode.agentHost", "version": "1"}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "host"}}]}
    logs = {"scope": scope, "logRecords": list(records), "schemaUrl": "https://example.com/1"}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [logs]}]}


@pytest.mark.parametrize("record", [PLAIN, FULL], ids=["plain", "full"])
def test_a_record_is_what_it_was(record: dict[str, Any]) -> None:
    ids: dict[str, Any] = {}  # protobuf's own JSON, which is not OTLP's, has them in another spelling
    for name in ("traceId", "spanId"):
        if name in record:
            ids[name] = base64.b64encode(bytes.fromhex(record[name])).decode()
    expected = ParseDict(payload({**record, **ids}), ExportLogsServiceRequest())

    assert ExportLogsServiceRequest.FromString(log_request(payload(record))) == expected


def test_requests_put_together_are_one() -> None:
    both = ExportLogsServiceRequest.FromString(log_request(payload(PLAIN)) + log_request(payload(FULL)))

    assert [each.scope_logs[0].log_records[0].event_name for each in both.resource_logs] == ["", "made.up"]


KEYS = st.sampled_from(
    [*FULL, "resourceLogs", "scopeLogs", "logRecords", "resource", "scope", "key", "value", "values"]
)
VALUES = st.sampled_from(["stringValue", "intValue", "arrayValue", "kvlistValue", "bytesValue", "doubleValue"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | VALUES, inner, max_size=4),
    max_leaves=25,
)


@given(JSON, JSON, JSON)
def test_whatever_comes_is_a_request(record: Any, attributes: Any, whole: Any) -> None:
    for each in (whole, payload(record), payload({**PLAIN, "attributes": attributes, "body": record})):
        ExportLogsServiceRequest.FromString(log_request(each))


def test_what_is_nested_without_end_ends() -> None:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}

    ExportLogsServiceRequest.FromString(log_request(payload({**PLAIN, "body": value})))
