"""The durable events of one turn, whatever of it is known: which, when, with which data."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.core.ahp.checkpoint import Checkpoint
from exporter.core.ahp.turn import TurnOwner, TurnWriter, result_of, text_id

Json = dict[str, Any]
Event = tuple[str, str, Json]
CHAT, CHILD = "ahp-chat://default/one", "ahp-chat://subagent/two"
NOW = 1_000.0
AT, STARTED, ENDED = "1970-01-01T00:16:40.000Z", "1970-01-01T00:00:05.000Z", "1970-01-01T00:00:07.500Z"
TIMES: Json = {"startedAt": 5_000, "duration": 2_500}


def events(turn: Json, owner: TurnOwner | None = None, checkpoint: Checkpoint | None = None, **how: Any) -> list[Event]:
    """What is told of a turn that has ended, without the ids of events and texts."""
    owner, checkpoint = owner or TurnOwner(CHAT, session="s"), checkpoint or Checkpoint()
    drafts = TurnWriter(owner, checkpoint, turn, NOW, **{"has_ended": True, **how}).write()
    assert len({draft.id for draft in drafts}) == len(drafts)
    unnamed = ("messageId", "reasoningId")
    return [(one.type, one.at, {k: v for k, v in one.data.items() if k not in unnamed}) for one in drafts]


def told(*parts: Json, **fields: Any) -> list[tuple[str, Json]]:
    """The same of a turn with these parts, without its frame and the times."""
    found = events({"id": "t", "message": {"text": "go"}, "responseParts": list(parts), "state": "complete", **fields})
    return [(type, data) for type, _, data in found[2:-1]]


def call(**fields: Any) -> Json:
    return {"kind": "toolCall", "toolCall": {"toolCallId": "c", "toolName": "bash", "status": "completed", **fields}}


def test_a_turn_that_has_ended_is_told_with_its_own_times() -> None:
    parts = [{"kind": "markdown", "content": "Hello"}, call(success=True, toolInput='{"a": 1}')]
    turn = {"id": "t", "message": {"text": "go", "attachments": [{"x": 1}]}, "responseParts": parts, **TIMES}

    assert events(turn) == [
        ("user.message", STARTED, {"content": "go", "source": "user", "attachments": [{"x": 1}]}),
        ("assistant.turn_start", STARTED, {"turnId": "0"}),
        ("assistant.message", STARTED, {"content": "Hello", "toolRequests": []}),
        ("tool.execution_start", STARTED, {"toolCallId": "c", "toolName": "bash", "arguments": {"a": 1}}),
        ("tool.execution_complete", ENDED, {"toolCallId": "c", "success": True, "result": {"content": ""}}),
        ("assistant.turn_end", ENDED, {"turnId": "0"}),
    ]


def test_without_times_of_its_own_a_turn_is_told_at_the_time_it_was_seen() -> None:
    assert {at for _, at, _ in events({"id": "t", "responseParts": [call()]})} == {AT}


def test_a_turn_that_goes_on_tells_what_is_closed_and_nothing_twice() -> None:
    checkpoint, thought = Checkpoint(), {"kind": "reasoning", "content": "Hm"}
    turn: Json = {"id": "t", "userMessage": {"text": "go"}, "responseParts": [thought], **TIMES}

    first = events(turn, checkpoint=checkpoint, has_ended=False)
    turn["responseParts"].append(call(status="running"))
    second = events(turn, checkpoint=checkpoint, has_ended=False)
    again = events(turn, checkpoint=checkpoint, has_ended=False)
    turn["responseParts"][1] = call(success=True)
    turn["responseParts"].append({"kind": "markdown", "content": "Done"})
    last = events({**turn, "state": "complete"}, checkpoint=checkpoint, start=1)

    assert [(type, at) for type, at, _ in first] == [("user.message", STARTED), ("assistant.turn_start", STARTED)]
    assert [(type, at) for type, at, _ in second] == [("assistant.reasoning", AT), ("tool.execution_start", AT)]
    assert again == []
    assert [(type, at) for type, at, _ in last] == [
        ("tool.execution_complete", ENDED),
        ("assistant.message", STARTED),
        ("assistant.turn_end", ENDED),
    ]


def test_of_a_text_that_was_told_in_part_the_rest_is_told() -> None:
    checkpoint = Checkpoint()
    turn: Json = {"id": "t", "message": {"text": "go"}, "responseParts": [{"kind": "markdown", "content": "One "}]}
    turn["responseParts"].append(call(status="streaming"))

    first = events(turn, checkpoint=checkpoint, has_ended=False)
    turn["responseParts"][0]["content"] += "two"
    rest = events(turn, checkpoint=checkpoint)

    assert first[-1] == ("assistant.message", AT, {"content": "One ", "toolRequests": []})
    assert rest[0] == ("assistant.message", AT, {"content": "two", "toolRequests": []})
    assert [type for type, _, _ in rest] == ["assistant.message", "assistant.turn_end"]


def test_the_id_of_a_text_is_that_of_every_version() -> None:
    """A text that began before an update goes on after it."""
    checkpoint = Checkpoint()
    checkpoint.begin({"id": "t", "message": {"text": "go"}}, is_child=False)

    assert text_id(TurnOwner(CHAT), checkpoint, "markdown") == "35880094-9274-5520-ab3f-eb8aff5e5596"


@pytest.mark.parametrize(
    ("message", "before", "change"),
    [
        ({"model": {"id": "m"}}, "", {"previousModel": None, "newModel": "m"}),
        ({"model": "m"}, "k", {"previousModel": "k", "newModel": "m"}),
        ({"model": "m"}, "m", None),
        ({}, "m", None),
    ],
)
def test_another_model_is_told_before_the_message(message: Json, before: str, change: Json | None) -> None:
    checkpoint = Checkpoint(model=before)

    first = events({"id": "t", "message": {"text": "go", **message}}, checkpoint=checkpoint)[0]

    assert first[0] == ("session.model_change" if change else "user.message")
    assert change is None or (first[2], checkpoint.model) == (change, "m")


def test_what_the_system_says_is_no_message_of_a_user() -> None:
    asked = {"text": "Note", "origin": {"kind": "systemNotification"}}

    first = events({"id": "t", "message": asked})[0]

    assert first == ("system.notification", AT, {"content": "Note", "kind": {"type": "unclassified"}})


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        (None, {}),
        ('{"a": 1}', {"a": 1}),
        ("[1]", {"input": "[1]"}),
        ("ls -l", {"input": "ls -l"}),
        ("\ud800", {"input": "\ud800"}),
        ({"a": 1}, {"input": {"a": 1}}),
    ],
)
def test_the_arguments_of_a_call_are_an_object(given: Any, arguments: Json) -> None:
    assert told(call(toolInput=given))[0][1]["arguments"] == arguments


@pytest.mark.parametrize("status", ["streaming", "pending-confirmation", ""])
def test_a_call_that_has_not_started_is_not_told(status: str) -> None:
    assert told(call(status=status)) == []


def test_texts_beside_each_other_are_one_because_hosts_split_them_differently_after_a_restart() -> None:
    checkpoint = Checkpoint()
    turn: Json = {"id": "t", "responseParts": [{"kind": "markdown", "content": one} for one in ("One ", "")]}

    events(turn, checkpoint=checkpoint, has_ended=False)
    turn["responseParts"][1]["content"] += "two"
    rest = events(turn, checkpoint=checkpoint)

    assert rest[0] == ("assistant.message", AT, {"content": "One two", "toolRequests": []})


@pytest.mark.parametrize("fields", [{"status": "running"}, {"toolCallId": ""}])
def test_a_call_ends_only_with_a_status_that_ends_it_and_has_an_id(fields: Json) -> None:
    turn: Json = {"id": "t", "message": {"text": "go"}, "responseParts": [call(**fields)]}
    found = [type for type, _, _ in events(turn, has_ended=False)[2:]]

    assert found == (["tool.execution_start"] if "status" in fields else [])


def test_a_call_that_ran_when_its_turn_ended_was_skipped() -> None:
    (_, started), (type, data) = told(call(status="running"))

    assert (started["toolCallId"], type) == ("c", "tool.execution_complete")
    assert data == {"toolCallId": "c", "success": False, "error": {"message": "skipped", "code": "skipped"}}


NOTE: Json = {"kind": "systemNotification", "content": "a command has ended"}


@pytest.mark.parametrize("parts", [("One ", "two", NOTE), ("One ", NOTE, "two"), ("One two", NOTE)], ids=str)
def test_a_notification_does_not_part_a_text(parts: tuple[Any, ...]) -> None:
    """While it runs a host has it behind the text, and after a restart between what was said before and after it."""
    found = told(*({"kind": "markdown", "content": part} if isinstance(part, str) else part for part in parts))

    assert [data["content"] for type, data in found if type == "assistant.message"] == ["One two"]
    assert [type for type, _ in found].count("system.notification") == 1


def test_a_text_before_a_notification_is_open_as_long_as_its_turn() -> None:
    turn: Json = {
        "id": "t",
        "message": {"text": "go"},
        "responseParts": [{"kind": "markdown", "content": "One "}, NOTE],
    }
    checkpoint = Checkpoint()

    first = events(turn, checkpoint=checkpoint, has_ended=False)
    turn["responseParts"].append({"kind": "markdown", "content": "two"})
    turn["responseParts"].append(call())
    then = events(turn, checkpoint=checkpoint, has_ended=False, start=1)

    assert [type for type, _, _ in first[2:]] == ["system.notification"]
    assert then[0] == ("assistant.message", AT, {"content": "One two", "toolRequests": []})


@pytest.mark.parametrize(
    ("fields", "data"),
    [
        (
            {"success": True, "content": [{"type": "text", "text": "a"}, {"text": "b"}, {"type": "i", "text": "c"}]},
            {"success": True, "result": {"content": "a\nb"}},
        ),
        (
            {"success": True, "content": [{"type": "x", "result": {"exitCode": 3}}]},
            {"success": True, "result": {"content": ""}, "shellExecution": {"exitCode": 3}},
        ),
        (
            {"success": True, "content": [{"type": "x", "result": {"exitCode": "3"}}]},
            {"success": True, "result": {"content": ""}},
        ),
        ({"success": 1}, {"success": False, "error": {"message": "failure", "code": "failure"}}),
        (
            {"success": True, "status": "cancelled", "reason": "denied", "reasonMessage": "No"},
            {"success": False, "error": {"message": "No", "code": "denied"}},
        ),
        (
            {"success": False, "content": [{"text": "a"}], "error": {"message": "m", "code": "e"}},
            {"success": False, "result": {"content": "a"}, "error": {"message": "m", "code": "e"}},
        ),
    ],
)  # fmt: skip
def test_the_result_of_a_call_says_how_it_ended(fields: Json, data: Json) -> None:
    assert result_of(call(**fields)["toolCall"]) == {"toolCallId": "c", **data}


def test_notes_and_errors_within_a_turn_are_told_once_at_their_place() -> None:
    error = {"errorType": "quota", "message": "m", "stack": "s"}
    note = {"kind": "systemNotification", "content": "Compacted"}

    assert told(note, {"kind": "error", "error": error}, {"kind": "error", "message": "bare"}, state="error") == [
        ("system.notification", {"content": "Compacted", "kind": {"type": "unclassified"}}),
        ("session.error", error),
        ("session.error", {"errorType": "unknown", "message": "bare"}),
    ]


@pytest.mark.parametrize(
    ("state", "last"),
    [
        ("complete", []),
        ("cancelled", [("abort", {"reason": "user"})]),
        ("error", [("session.error", {"errorType": "quota", "message": "m"})]),
    ],
)
def test_a_turn_ends_as_its_state_says(state: str, last: list[tuple[str, Json]]) -> None:
    assert told(state=state, error={"errorType": "quota", "message": "m"}) == last


@pytest.mark.parametrize(
    ("state", "type", "error"),
    [("complete", "subagent.completed", {}), ("cancelled", "subagent.failed", {"error": "cancelled"}),
     ("error", "subagent.failed", {"error": "m"})],
)  # fmt: skip
def test_the_first_turn_of_a_sub_agent_ends_it(state: str, type: str, error: Json) -> None:
    owner = TurnOwner(CHILD, agent=CHILD, session="s", call="c", title="Two", children={"c": {"agentName": "explore"}})
    checkpoint = Checkpoint()
    turn = {"id": "t", "message": {"text": "go"}, "state": state, **({"error": {"message": "m"}} if "m" in error.values() else {})}  # fmt: skip # noqa: E501

    found = events(turn, owner, checkpoint)
    checkpoint.finish(turn)
    later = events({**turn, "id": "u"}, owner, checkpoint)

    name = {"toolCallId": "c", "agentName": "explore", "agentDisplayName": "Two"}
    assert found[-1] == (type, AT, {**name, **error})
    assert found[0][2]["source"] == "agent-s"
    assert later[-1][0] == "assistant.turn_end"


@pytest.mark.parametrize("is_child", [False, True])
def test_a_sub_agent_is_announced_once_with_what_is_known_of_it(is_child: bool) -> None:
    owner = TurnOwner(CHILD, agent=CHILD, session="s") if is_child else TurnOwner(CHAT, session="s")
    content = {"type": "subagent", "resource": "ahp-chat://subagent/x", "title": "X", "description": "Looks"}

    found = events({"id": "t", "responseParts": [call(content=[content]), call(content=[content])]}, owner)

    (started,) = [data for type, _, data in found if type == "subagent.started"]
    names = {"toolCallId": "c", "agentName": "agent", "agentDisplayName": "X", "agentDescription": "Looks"}
    assert started == {**names, **({"parentId": CHILD} if is_child else {})}
    assert owner.children["c"] == {"resource": "ahp-chat://subagent/x", "title": "X", "agentName": "agent"}


def test_a_sub_agent_without_a_title_has_the_name_that_the_call_gives_it() -> None:
    owner = TurnOwner(CHAT, session="s", children={"c": {"resource": CHILD}})
    meta = {"subagentAgentName": "explore", "subagentDescription": "Looks"}

    found = events({"id": "t", "responseParts": [call(_meta=meta)]}, owner)

    (started,) = [data for type, _, data in found if type == "subagent.started"]
    assert (started["agentName"], started["agentDisplayName"]) == ("explore", "explore")
    assert started["agentDescription"] == "Looks"
