"""What a session's events become for all three signals together."""

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from otel.bridge import SIGNALS, Bridge, Records, SignalOptions, Tally
from otel.encode.records import request_bytes
from otel.machines import logs
from otel.machines.traces import machine
from otel.names import Content

FIXTURES = Path(__file__).parents[1] / "fixtures"
SESSION = "11111111-2222-3333-4444-555555555555"


def _lines(*events: tuple[str, dict[str, Any]]) -> list[bytes]:
    told = [
        {"type": kind, "id": f"e{number}", "timestamp": f"2026-11-18T10:00:{number:02}.000Z", "data": data}
        for number, (kind, data) in enumerate(events)
    ]
    return [json.dumps(one).encode() for one in told]


CALL = {"toolCallId": "c", "toolName": "bash"}
LINES = _lines(
    ("user.message", {"delivery": "idle", "interactionId": "i"}),
    ("assistant.turn_start", {"turnId": "0"}),
    ("session.usage_record", {"usage": {"model": "m", "inputTokens": 7, "apiCallId": "a"}}),
    ("skill.invoked", {"name": "s"}),
    ("assistant.message", {"model": "m", "apiCallId": "a", "toolRequests": [CALL]}),
    ("tool.execution_start", CALL),
    ("tool.execution_complete", {"toolCallId": "c", "success": True}),
    ("assistant.turn_end", {"turnId": "0"}),
    ("session.shutdown", {}),
)


def logged(records: Records) -> list[LogRecord]:
    """The log records as a backend reads them."""
    written = request_bytes(b"", b"", [one for _, _, one in records["logs"]])
    return list(ExportLogsServiceRequest.FromString(written).resource_logs[0].scope_logs[0].log_records)


def _ids(records: Records, signal: str) -> list[str]:
    return [name for _, name, _ in records[signal]]


def _broken(*_: object) -> None:
    raise ZeroDivisionError


def test_an_event_that_comes_again_leads_to_nothing() -> None:
    once = Bridge(SESSION, SignalOptions()).take(LINES, 1)

    thrice = Bridge(SESSION, SignalOptions()).take([line for line in LINES for _ in range(3)], 1)
    copied = Bridge(SESSION, SignalOptions()).take(LINES + LINES[2:5] + LINES, 1)

    for records in (thrice, copied):
        for signal, expected in once.items():
            assert [one[1:] for one in records[signal]] == [one[1:] for one in expected]


def test_an_event_of_an_empty_type_is_one_of_an_unknown_type() -> None:
    tally = Tally()

    records = Bridge(SESSION, SignalOptions(), tally).take(_lines(("", {}), ("made.up", {})), 1)

    assert tally.unknown == {"": 1, "made.up": 1}
    first, second = logged(records)
    assert first.severity_number == second.severity_number
    assert {one.key: one.value.string_value for one in first.attributes}["event.id"] == "e0"
    assert len(records["metrics"]) == 2


def test_an_error_in_one_event_costs_what_it_would_have_told(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Bridge(SESSION, SignalOptions()).take(LINES, 1)
    monkeypatch.setitem(machine.HANDLERS, "skill.invoked", _broken)
    tally = Tally()

    records = Bridge(SESSION, SignalOptions(), tally).take(LINES, 1)

    assert list(tally.defects.values()) == [1]
    assert _ids(records, "logs") == [f"e{number}" for number in range(len(LINES))]
    assert [bool(one.trace_id) for one in logged(records)] == [number != 3 for number in range(len(LINES))]
    assert _ids(records, "traces") == _ids(whole, "traces")
    assert _ids(records, "metrics") == _ids(whole, "metrics")


def test_a_log_record_that_cannot_be_made_is_one_of_the_envelope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_ATTRIBUTES", {**logs._ATTRIBUTES, "skill.invoked": _broken})
    tally = Tally()

    records = Bridge(SESSION, SignalOptions(content=Content.REDACTED), tally).take(LINES, 1)

    assert list(tally.defects.values()) == [1]
    told = logged(records)[3]
    assert told.body.string_value.encode() == LINES[3]
    assert {one.key: one.value.string_value for one in told.attributes}["event.id"] == "e3"
    assert told.trace_id


def test_events_that_are_passed_over_leave_the_same_behind_although_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(machine.HANDLERS, "skill.invoked", _broken)
    tally = Tally()
    taken, passed = Bridge(SESSION, SignalOptions()), Bridge(SESSION, SignalOptions(), tally)

    taken.take(LINES[:6], 1)
    passed.skip(LINES[:6])

    assert list(tally.defects.values()) == [1]
    assert passed.take(LINES[6:], 1) == taken.take(LINES[6:], 1)


def test_a_span_that_cannot_be_written_costs_none_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    bridge, other = Bridge(SESSION, SignalOptions(), tally), Bridge(SESSION, SignalOptions())
    for one in (bridge, other):
        one.take(LINES[:6], 1)
    whole = other.process_died(1)
    write = bridge._writer.span
    monkeypatch.setattr(bridge._writer, "span", lambda span: _broken() if span.parent_id else write(span))

    records = bridge.process_died(1)

    assert list(tally.defects.values()) == [1]
    assert records["traces"] == whole["traces"][1:]
    assert len(whole["traces"]) == 2
    assert records["metrics"] == whole["metrics"]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*/*/events.jsonl")), ids=lambda path: path.parent.name)
@pytest.mark.parametrize("content", [Content.METADATA, Content.REDACTED])
def test_it_does_not_matter_how_many_events_are_taken_at_a_time(path: Path, content: Content) -> None:
    lines = path.read_bytes().splitlines()
    once, one_by_one = Bridge(SESSION, SignalOptions(content=content)), Bridge(SESSION, SignalOptions(content=content))

    expected: Records = {signal: [] for signal in SIGNALS}
    for number, line in enumerate(lines):
        for signal, records in one_by_one.take([line], 1, number).items():
            expected[signal] += records

    assert once.take(lines, 1) == expected
    assert once.process_died(1) == one_by_one.process_died(1)


FAILING = _lines(
    ("user.message", {"delivery": "idle", "interactionId": "i"}),
    ("tool.execution_start", CALL),
    ("tool.execution_complete", {"toolCallId": "c", "success": False, "error": {"code": "no"}}),
)


def test_what_failed_has_a_log_record_of_its_own_with_the_genai_conventions() -> None:
    records = Bridge(SESSION, SignalOptions(semconv="latest")).take(FAILING, 1)

    found = logged(records)[-1]
    assert _ids(records, "logs") == ["e0", "e1", "e2", "e2/0"]
    assert (found.event_name, found.severity_text) == ("gen_ai.execute_tool.exception", "WARN")
    assert found.body.string_value == "tool failure: ToolError, no"
    assert {one.key: one.value.string_value for one in found.attributes}["exception.type"] == "ToolError"
    assert found.span_id
    assert [number for number, _, _ in records["logs"]] == sorted(number for number, _, _ in records["logs"])


@pytest.mark.parametrize("content", list(Content))
def test_the_details_of_a_call_are_what_its_span_says(content: Content) -> None:
    options = SignalOptions(semconv="latest", content=content, inference_details=True)

    records = Bridge(SESSION, options).take(LINES, 1)

    [found] = [one for one in logged(records) if one.event_name == "gen_ai.client.inference.operation.details"]
    said = {one.key: one.value for one in found.attributes}
    assert said["gen_ai.usage.input_tokens"].int_value == 7
    assert len(found.attributes) == len(said)
    assert ("gen_ai.output.messages" in said) == (content is Content.REDACTED)
    assert found.severity_text == "DEBUG"


@pytest.mark.parametrize("options", [SignalOptions(inference_details=True), SignalOptions(semconv="latest")])
def test_details_of_calls_are_asked_for(options: SignalOptions) -> None:
    records = Bridge(SESSION, options).take(LINES, 1)

    assert len(records["logs"]) == len(LINES)
