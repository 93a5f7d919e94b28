"""What a host says that is shown and stored nowhere: which events it makes, with which data."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.core.ahp.ephemeral import of_session
from tests.core.ahp.scripted import STEPS, ScriptedHost
from tests.core.ahp.watching import Watching

Json = dict[str, Any]
CHAT = "ahp-chat://default/one"
SERVER = {"name": "files", "state": {"kind": "running"}}


def shown(host: ScriptedHost, *steps: str) -> list[Json]:
    """What passes of a session in which this happens."""
    watching = Watching({}, version=host.version)
    watching.answer = host.answer
    watching.begin()
    for step in steps:
        STEPS[step](host)
    while host.told:
        watching.hear(host.told.pop(0))
    return watching.passing()


def told(action: Json, *steps: str) -> list[tuple[str, Json]]:
    """What passes because of an action on the conversation, after these steps of a turn."""
    host = ScriptedHost("0.9.0")
    watching = Watching({}, version=host.version)
    watching.answer = host.answer
    watching.begin()
    for step in ("start", *steps):
        STEPS[step](host)
    while host.told:
        watching.hear(host.told.pop(0))
    before = len(watching.passing())
    host._tell({"turnId": "turn-1", **action})
    while host.told:
        watching.hear(host.told.pop(0))
    return [(event["type"], event["data"]) for event in watching.passing()[before:]]


@pytest.mark.parametrize(
    ("action", "events"),
    [
        ({"type": "chat/activityChanged", "activity": "Reads"}, [("assistant.intent", {"intent": "Reads"})]),
        (
            {"type": "chat/inputRequested", "request": {"id": "q", "message": "Which?"}},
            [("elicitation.requested", {"requestId": "q", "message": "Which?"})],
        ),
        (
            {"type": "chat/inputCompleted", "requestId": "q", "response": "accept"},
            [("elicitation.completed", {"requestId": "q", "action": "accept"})],
        ),
        ({"type": "chat/pendingMessageSet"}, [("pending_messages.modified", {})]),
        ({"type": "chat/pendingMessageRemoved"}, [("pending_messages.modified", {})]),
        ({"type": "chat/queuedMessagesReordered"}, [("pending_messages.modified", {})]),
        ({"type": "chat/fromTheFuture"}, []),
        (
            {
                "type": "chat/usage",
                "usage": {
                    "model": "m",
                    "inputTokens": 3,
                    "outputTokens": 1.5,
                    "cacheReadTokens": [1],
                    "cacheWriteTokens": 0,
                    "_meta": {"vscode.modelCall": {"eventId": "e", "apiCallId": "a", "durationMs": 12}},
                },
            },
            [
                (
                    "assistant.usage",
                    {
                        "model": "m",
                        "inputTokens": 3,
                        "outputTokens": 1.5,
                        "cacheWriteTokens": 0,
                        "apiCallId": "a",
                        "duration": 12,
                    },
                )
            ],
        ),
        ({"type": "chat/usage", "usage": {"model": None, "_meta": {"vscode.modelCall": {"apiCallId": 7}}}}, []),
    ],
)
def test_an_action_on_a_conversation_is_shown_as_the_cli_would_tell_it(
    action: Json, events: list[tuple[str, Json]]
) -> None:
    assert told(action) == events


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "one"}, {"type": "image", "text": "no"}, {"type": "text", "text": "2"}], "one2"),
        ([{"type": "image"}], None),
        ([], None),
    ],
)  # fmt: skip
def test_the_output_of_a_running_call_is_shown_as_far_as_it_is_text(content: list[Json], text: str | None) -> None:
    host_call = {"type": "chat/toolCallContentChanged", "toolCallId": "call-3", "content": content}

    events = told(host_call, "call", "ready")

    data = {"toolCallId": "call-3", "partialOutput": text}
    assert events == ([("tool.execution_partial_result", data)] if text else [])


@pytest.mark.parametrize("added", ["{", ""])
def test_the_input_of_a_call_is_shown_as_it_is_written(added: str) -> None:
    events = told({"type": "chat/toolCallDelta", "toolCallId": "call-3", "content": added}, "call")

    assert events == ([("assistant.tool_call_delta", {"toolCallId": "call-3", "inputDelta": added})] if added else [])


@pytest.mark.parametrize(
    ("step", "kind"), [("permit", "approved"), ("deny", "denied-interactively-by-user")], ids=["permitted", "denied"]
)
def test_a_question_for_permission_and_its_answer_are_shown(step: str, kind: str) -> None:
    passing = shown(ScriptedHost("0.9.0"), "start", "call", "ask", step)

    asked, answered = [event for event in passing if event["type"].startswith("permission.")]
    request = {"kind": "bash", "toolCallId": "call-3", "fullCommandText": '{"command": "true"}'}
    assert (asked["type"], asked["data"]) == (
        "permission.requested",
        {"requestId": "call-3", "permissionRequest": request},
    )
    completed = {"requestId": "call-3", "toolCallId": "call-3", "result": {"kind": kind}}
    assert (answered["type"], answered["data"]) == ("permission.completed", completed)


def test_a_call_that_may_run_at_once_asks_for_nothing() -> None:
    assert [e for e in shown(ScriptedHost("0.9.0"), "start", "call", "ready") if "permission" in e["type"]] == []


def test_a_message_begins_before_its_text_and_reasoning_has_no_beginning() -> None:
    passing = shown(ScriptedHost("0.9.0"), "start", "write", "think")

    types = [event["type"] for event in passing]
    assert types == ["assistant.message_start", "assistant.message_delta", "assistant.reasoning_delta"]
    assert passing[0]["data"] == {"messageId": passing[1]["data"]["messageId"]}


@pytest.mark.parametrize(
    ("action", "events"),
    [
        ({"type": "session/titleChanged", "title": "T"}, [("session.title_changed", {"title": "T"})]),
        ({"type": "session/activityChanged", "activity": "Reads"}, [("assistant.intent", {"intent": "Reads"})]),
        ({"type": "session/serverToolsChanged"}, [("session.tools_updated", {"model": ""})]),
        ({"type": "session/chatUpdated", "chat": CHAT, "changes": {"status": 1}}, [("session.idle", {})]),
        ({"type": "session/chatUpdated", "chat": CHAT, "changes": {"status": 32 | 1}}, [("session.idle", {})]),
        ({"type": "session/chatUpdated", "chat": CHAT, "changes": {"status": 8}}, []),
        ({"type": "session/chatUpdated", "chat": CHAT, "changes": {"status": 9}}, []),
        ({"type": "session/chatUpdated", "chat": CHAT, "changes": {"status": "1"}}, []),
        ({"type": "session/chatUpdated", "chat": "another", "changes": {"status": 1}}, []),
        (
            {"type": "session/mcpServerStateChanged", "id": "i", "name": "n", "state": {"kind": "failed"}},
            [("session.mcp_server_status_changed", {"serverName": "i", "status": "failed"})],
        ),
        (
            {"type": "session/mcpServerStateChanged", "name": "n", "state": {"kind": "failed"}},
            [("session.mcp_server_status_changed", {"serverName": "n", "status": "failed"})],
        ),
        (
            {"type": "session/customizationUpdated", "customization": {"type": "mcpServer", **SERVER}},
            [("session.mcp_server_status_changed", {"serverName": "files", "status": "running"})],
        ),
        (
            {"type": "session/customizationUpdated", "customization": {"type": "agent", **SERVER}},
            [("session.custom_agents_updated", {"agents": [], "warnings": [], "errors": []})],
        ),
        (
            {"type": "session/customizationsChanged"},
            [("session.custom_agents_updated", {"agents": [], "warnings": [], "errors": []})],
        ),
        ({"type": "session/fromTheFuture"}, []),
    ],
)
def test_an_action_on_a_session_is_shown_as_the_cli_would_tell_it(action: Json, events: list[tuple[str, Json]]) -> None:
    made = of_session("s", action, CHAT, 7, 0.0)

    assert [(draft.type, draft.data) for draft in made] == events
    assert all(draft.is_ephemeral and draft.agent is None and draft.at.startswith("1970-01-01T00:00") for draft in made)
    again, later = of_session("s", action, CHAT, 7, 0.0), of_session("s", action, CHAT, 8, 0.0)
    assert again == made
    assert not {draft.id for draft in later} & {draft.id for draft in made}
