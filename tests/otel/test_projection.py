"""What events are to model, screen, telemetry and storage."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.event_types import KNOWN, NO_NAME, type_name
from otel.projection import DEBUG, ERROR, INFO, TABLE, WARN, is_known, project
from tests.otel.captures import captures, objects

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def notification(kind: str, **fields: object) -> dict[str, object]:
    return {"content": "text", "kind": {"type": kind, **fields}}


# The table of seed 003, a row each: what the model is given, and what a person sees.
@pytest.mark.parametrize(
    ("event_type", "data", "model", "screen"),
    [
        ("system.message", {"role": "system"}, True, False),
        ("system.notification", notification("shell_completed"), True, True),
        ("system.notification", notification("a kind of tomorrow"), True, True),
        ("system.notification", {"content": "no kind"}, True, True),
        ("system.notification", notification("instruction_discovered"), False, True),
        ("session.info", {"infoType": "mcp"}, False, True),
        ("session.warning", {"warningType": "policy"}, False, True),
        ("session.error", {"errorType": "quota"}, False, True),
        ("pending_messages.modified", {}, False, True),
        ("session.custom_notification", {"payload": {}}, False, True),
        ("session.context_changed", {}, False, True),
        ("session.mode_changed", {}, False, True),
        ("session.tools_updated", {}, False, True),
        ("session.skills_loaded", {}, False, True),
        ("session.mcp_server_status_changed", {}, False, True),
        ("assistant.message_delta", {}, False, True),
        ("user.message", {}, True, True),
        ("assistant.message", {}, True, True),
        ("tool.execution_complete", {"success": True}, True, True),
        ("session.usage_record", {}, False, False),
    ],
)
def test_an_event_is_visible_to_the_model_and_on_the_screen_as_its_row_says(
    event_type: str, data: dict[str, object], model: bool, screen: bool
) -> None:
    projection = project(event_type, data)

    assert (projection.model_visible, projection.ui_visible) == (model, screen)


def test_discovered_instructions_are_the_only_notification_that_the_model_is_not_given() -> None:
    agents = ["agent_completed", "agent_idle", "new_inbox_message", "workflow_completed"]
    others = ["shell_completed", "shell_detached_completed", "unclassified", "made_up_kind", "instruction_discovered"]

    hidden = [kind for kind in agents + others if not project("system.notification", notification(kind)).model_visible]

    assert hidden == ["instruction_discovered"]


@pytest.mark.parametrize(
    ("level", "field", "severity"),
    [("info", "infoType", 9), ("warning", "warningType", 13), ("error", "errorType", 17)],
)
def test_a_message_has_its_severity_its_category_and_its_url(level: str, field: str, severity: int) -> None:
    projection = project(f"session.{level}", {field: "auth", "message": "m", "url": "https://example.com/login"})

    assert (projection.severity, projection.category, projection.url) == (severity, "auth", "https://example.com/login")


@pytest.mark.parametrize(
    ("event_type", "data", "severity"),
    [
        ("system.notification", notification("shell_completed", exitCode=0), INFO),
        ("system.notification", notification("shell_completed"), INFO),
        ("system.notification", notification("shell_completed", exitCode=5), WARN),
        ("system.notification", notification("agent_completed", status="completed"), INFO),
        ("system.notification", notification("agent_completed", status="failed"), ERROR),
        ("system.notification", notification("workflow_completed", status="error"), ERROR),
        ("tool.execution_complete", {"success": True}, INFO),
        ("tool.execution_complete", {"success": False}, ERROR),
        ("hook.end", {"success": True}, DEBUG),
        ("hook.end", {"success": False}, ERROR),
        ("permission.completed", {"result": {"kind": "approved"}}, INFO),
        ("permission.completed", {"result": {"kind": "denied-interactively-by-user"}}, WARN),
        ("session.compaction_complete", {"success": False}, ERROR),
        ("session.shutdown", {"shutdownType": "routine"}, INFO),
        ("session.shutdown", {"shutdownType": "error"}, ERROR),
        ("subagent.failed", {}, ERROR),
        ("abort", {}, WARN),
        ("assistant.turn_start", {}, DEBUG),
        ("made.up", {}, DEBUG),
    ],
)
def test_the_severity_tells_what_went_wrong(event_type: str, data: dict[str, object], severity: int) -> None:
    assert project(event_type, data).severity == severity


def test_the_envelope_decides_what_is_durable_and_not_the_type() -> None:
    assert project("session.info", {}, ephemeral=True).durable is False
    assert project("session.info", {}).durable is True
    assert project("assistant.message_delta", {}).durable is True


def test_the_category_of_a_notification_is_its_kind_as_it_is_spelt() -> None:
    assert project("system.notification", notification("made_up_kind")).category == "made_up_kind"


def test_every_type_that_the_program_has_met_is_in_the_table() -> None:
    assert sorted(KNOWN - TABLE.keys()) == []


def test_a_type_nobody_knows_is_shown_to_nobody_and_counted() -> None:
    projection = project("made.up", {"x": 1})

    assert not is_known("made.up")
    assert (projection.model_visible, projection.ui_visible, projection.telemetry) == (False, False, True)


@given(st.sampled_from(sorted(TABLE)) | st.text(), JSON, st.booleans())
def test_any_data_has_a_projection(event_type: str, data: Any, ephemeral: bool) -> None:
    projection = project(event_type, data, ephemeral)

    assert projection.severity in (DEBUG, INFO, WARN, ERROR)
    assert projection.durable is not ephemeral


@pytest.mark.parametrize("capture", captures("meta.json", "events.jsonl"))
def test_the_model_saw_in_a_real_session_what_we_say_it_sees(capture: Path) -> None:
    expected = json.loads((capture / "meta.json").read_bytes()).get("notifications") or {}
    events = {event["id"]: event for path in capture.glob("events*.jsonl") for event in objects(path)}

    found = {
        name: {
            "kind": event["data"]["kind"]["type"],
            "model_visible": project(event["type"], event["data"]).model_visible,
        }
        for name, event in events.items()
        if event["type"] == "system.notification"
    }

    assert {name: found[name] for name in expected} == expected


def test_the_table_has_the_types_of_the_list() -> None:
    """The one list, which `doctor --schema` uses too, is made from the schema that the CLI ships."""
    assert set(TABLE) == KNOWN


def test_a_type_in_camel_case_is_a_name() -> None:
    assert {type_name(one) for one in KNOWN} == KNOWN
    assert type_name("permission.assentDetected") == "permission.assentDetected"
    assert type_name("Not a name") == type_name("a.b c") == NO_NAME
