"""A log record per event: its place, its severity, and what it says at each content level."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel import names
from otel.encode.records import request_bytes, resource_bytes, scope_bytes
from otel.event import read
from otel.machines import logs
from otel.machines.logs import BODY_BYTES_MAX, record
from otel.machines.traces.machine import Traces
from otel.model import LogRecord
from otel.names import Attribute, Content, Value
from otel.projection import TABLE, project
from tests.otel.bodies import log_bytes
from tests.otel.captures import captures
from tests.otel.metered import SESSION, lines
from tests.otel.written import attributes_of

SECRET = "/home/dev/secret-place"


def records(session_lines: list[bytes]) -> list[LogRecord]:
    traces = Traces(SESSION)
    found = []
    for line in session_lines:
        event = read(line)
        if event is not None:
            found.append(record(event, traces.take(event), line, SESSION))
    return found


def said(event_type: str, data: dict[str, Any]) -> LogRecord:
    return records(lines((event_type, 1.0, data)))[0]


def sent(found: LogRecord, content: Content) -> dict[str, object]:
    """What a receiver reads of a record at a content level."""
    body = request_bytes(resource_bytes({}, content, "cli"), scope_bytes("1"), [log_bytes(found, content, "cli", 7)])
    log = ExportLogsServiceRequest.FromString(body).resource_logs[0].scope_logs[0].log_records[0]
    read_back: dict[str, object] = {
        item.key: getattr(item.value, item.value.WhichOneof("value") or "") for item in log.attributes
    }
    return read_back | {"body": log.body.string_value}


def test_a_record_says_which_event_of_which_session_it_is() -> None:
    [line] = lines(("session.warning", 1.0, {"warningType": "policy"}), agent="agent-1")
    line = line.replace(b'"parentId":null', b'"parentId":"before"')

    [found] = records([line])

    assert (found.event_type, found.event_id) == ("session.warning", "e0-1.0")
    assert (
        attributes_of(found).items()
        >= {
            names.EVENT_TYPE: "session.warning",
            names.LOG_EVENT_ID: "e0-1.0",
            names.EVENT_PARENT_ID: "before",
            names.CONVERSATION_ID: SESSION,
            names.SESSION_ID: SESSION,
            names.AGENT_INSTANCE_ID: "agent-1",
        }.items()
    )


def test_a_record_has_the_time_of_its_event_and_the_place_of_its_span() -> None:
    opened, tool = records(
        lines(("user.message", 1.0, {}), ("tool.execution_start", 2.0, {"toolCallId": "c", "toolName": "view"}))
    )

    assert tool.time_ns - opened.time_ns == 1_000_000_000
    assert opened.context is not None
    assert tool.context is not None
    assert (tool.context.trace_id, tool.context.span_id != opened.context.span_id) == (opened.context.trace_id, True)


@pytest.mark.parametrize(
    ("event_type", "data", "expected"),
    [
        (
            "system.notification",
            {"content": "text", "kind": {"type": "shell_completed", "shellId": "bg1", "exitCode": 0}},
            {
                names.NOTIFICATION_TYPE: "shell_completed",
                names.NOTIFICATION_SHELL_ID: "bg1",
                names.NOTIFICATION_EXIT_CODE: 0,
            },
        ),
        ("session.error", {"errorType": "quota", "statusCode": 429}, {names.ERROR_STATUS_CODE: 429}),
        ("session.info", {"infoType": "mcp", "url": "https://x.example"}, {names.CATEGORY: "mcp"}),
        ("abort", {"reason": "user_initiated"}, {names.ABORT_REASON: "user_initiated"}),
        ("tool.execution_start", {"toolName": "bash"}, {names.TOOL_NAME: "bash"}),
        ("tool.execution_complete", {"success": True, "shellExecution": {"exitCode": 3}}, {names.EXIT_CODE: 3}),
        ("permission.requested", {"permissionRequest": {"kind": "shell"}}, {names.PERMISSION_KIND: "shell"}),
        ("permission.completed", {"result": {"kind": "approved"}}, {names.PERMISSION_RESULT: "approved"}),
        ("hook.end", {"hookType": "preToolUse", "success": True}, {names.HOOK_TYPE: "preToolUse"}),
        ("subagent.completed", {"agentName": "a", "totalTokens": 5}, {names.SUBAGENT_TOKENS: 5}),
        ("skill.invoked", {"name": "pdf", "path": SECRET}, {names.SKILL_NAME: "pdf"}),
        ("session.usage_record", {"usage": {"model": "m", "inputTokens": 7}}, {names.INPUT_TOKENS: 7}),
        (
            "session.shutdown",
            {"shutdownType": "routine", "codeChanges": {"linesAdded": 3, "filesModified": ["a", "b"]}},
            {names.SHUTDOWN_TYPE: "routine", names.LINES_ADDED: 3, names.FILES_MODIFIED: 2},
        ),
        ("session.compaction_complete", {"success": True, "tokensRemoved": 9}, {names.TOKENS_REMOVED: 9}),
        ("user.message", {"agentMode": "plan"}, {names.USER_MESSAGE_MODE: "plan"}),
        ("assistant.turn_start", {"turnId": "0"}, {names.TURN_ID: "0"}),
    ],
)
def test_a_record_says_what_its_event_is_about(
    event_type: str, data: dict[str, Any], expected: dict[Attribute, Value]
) -> None:
    assert attributes_of(said(event_type, data)).items() >= expected.items()


def test_a_notification_without_an_exit_code_has_none() -> None:
    assert names.NOTIFICATION_EXIT_CODE not in said("system.notification", {"kind": {"type": "odd"}}).details


@pytest.mark.parametrize(
    ("event_type", "data"),
    [
        ("tool.execution_complete", {"success": False}),
        ("tool.execution_complete", {"success": True, "result": {"content": "x"}}),
        ("permission.completed", {"result": {"kind": "denied-by-rules"}}),
        ("system.notification", {"kind": {"type": "shell_completed", "exitCode": 5}}),
        ("system.notification", {"kind": {"type": "agent_completed", "status": "failed"}}),
        ("session.shutdown", {"shutdownType": "error"}),
        ("session.error", {}),
        ("made.up", {"success": False}),
        *((event_type, {}) for event_type in sorted(TABLE)),
    ],
)
def test_the_severity_is_that_of_the_projection(event_type: str, data: dict[str, Any]) -> None:
    assert said(event_type, data).severity == project(event_type, data).severity


def test_a_resume_after_a_crash_is_a_warning() -> None:
    started = [("user.message", 1.0, {}), ("tool.execution_start", 2.0, {"toolCallId": "c", "toolName": "view"})]

    resumed = records(lines(*started, ("session.resume", 60.0, {})))[-1]
    after_shutdown = records(lines(*started, ("session.shutdown", 3.0, {}), ("session.resume", 60.0, {})))[-1]

    assert (resumed.severity, after_shutdown.severity) == (13, 9)


def test_texts_and_paths_are_told_at_level_redacted_only() -> None:
    found = said("skill.invoked", {"name": "pdf", "path": SECRET, "content": SECRET})

    assert SECRET not in str(sent(found, Content.NONE)) + str(sent(found, Content.METADATA))
    assert sent(found, Content.NONE).get(names.SKILL_NAME.name) is None
    assert sent(found, Content.METADATA)[names.SKILL_NAME.name] == "pdf"
    assert SECRET in str(sent(found, Content.REDACTED)["body"])


def test_the_body_is_the_line_as_it_was_redacted() -> None:
    [line] = lines(("session.info", 1.0, {"message": "é"}))

    assert records([line + b"\n"])[0].body == line


@pytest.mark.parametrize("shift", range(4))
def test_a_long_body_is_cut_between_characters_and_marked(shift: int) -> None:
    body = said("session.info", {"message": "a" * shift + "\U0001f600" * BODY_BYTES_MAX}).body

    assert BODY_BYTES_MAX - 4 < len(body) <= BODY_BYTES_MAX
    assert body.decode().endswith("\U0001f600… [cut]")


@given(st.sampled_from(sorted(TABLE)), st.dictionaries(st.text(), st.none() | st.text() | st.integers() | st.floats()))
def test_any_event_has_a_record(event_type: str, data: dict[str, Any]) -> None:
    [line] = lines((event_type, 1.0, {}))
    line = line.replace(b'"data":{}', b'"data":' + msgspec.json.encode(data))

    assert records([line])[0].event_type == event_type


@pytest.mark.parametrize("capture", captures("events.jsonl"))
def test_no_prompt_or_path_of_a_real_session_is_told_at_level_metadata(capture: Path) -> None:
    for found in records((capture / "events.jsonl").read_bytes().split(b"\n")):
        told = str(sent(found, Content.METADATA))
        assert "/home/dev" not in told
        assert "@@script" not in told


def test_every_type_with_attributes_is_one_that_the_cli_writes() -> None:
    assert sorted(logs._ATTRIBUTES.keys() - TABLE.keys()) == []
