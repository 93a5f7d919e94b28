"""The copy of a conversation goes where the host's own reducer goes, and no further."""

from __future__ import annotations

from typing import Any

import pytest

from exporter.core.ahp import chat_state
from exporter.core.ahp.chat_state import Applied, ChatState, change_tool, skip_tool

Json = dict[str, Any]
CALL: Json = {
    "toolCallId": "c",
    "toolName": "bash",
    "displayName": "Bash",
    "invocationMessage": "Run",
    "toolInput": "{}",
}
STATUSES = (
    "streaming", "pending-confirmation", "running", "auth-required", "pending-result-confirmation", "completed",
    "cancelled",
)  # fmt: skip
READY_IN = ("streaming", "running", "pending-confirmation")
MOVES: dict[str, tuple[Json, dict[str, str]]] = {
    "asks": ({"toolInput": "{}"}, dict.fromkeys(READY_IN, "pending-confirmation")),
    "ready": ({"confirmed": "not-needed"}, dict.fromkeys(READY_IN, "running")),
    "approved": ({"approved": True}, {"pending-confirmation": "running"}),
    "denied": ({"approved": False, "reason": "denied"}, {"pending-confirmation": "cancelled"}),
    "complete": (
        {"result": {"success": True}},
        dict.fromkeys(("running", "pending-confirmation"), "completed"),
    ),
    "failed": (
        {"result": {"success": False}},
        dict.fromkeys(("running", "pending-confirmation", "auth-required"), "completed"),
    ),
    "to be seen": (
        {"result": {"success": False}, "requiresResultConfirmation": True},
        {
            **dict.fromkeys(("running", "pending-confirmation"), "pending-result-confirmation"),
            "auth-required": "completed",
        },
    ),
    "seen": ({"approved": True}, {"pending-result-confirmation": "completed"}),
    "refused": ({"approved": False}, {"pending-result-confirmation": "cancelled"}),
    "sign in": ({}, {"running": "auth-required"}),
    "signed in": ({}, {"auth-required": "running"}),
}  # fmt: skip
KINDS = {
    "asks": "toolCallReady", "ready": "toolCallReady", "approved": "toolCallConfirmed", "denied": "toolCallConfirmed",
    "complete": "toolCallComplete", "failed": "toolCallComplete", "to be seen": "toolCallComplete",
    "seen": "toolCallResultConfirmed", "refused": "toolCallResultConfirmed", "sign in": "toolCallAuthRequired",
    "signed in": "toolCallAuthResolved",
}  # fmt: skip


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("move", MOVES)
def test_a_call_moves_only_where_its_status_allows_it(move: str, status: str) -> None:
    action, moves = MOVES[move]
    call = {**CALL, "status": status, "contributor": {"kind": "mcp"}}

    changed = change_tool(call, KINDS[move], action)

    assert changed["status"] == moves.get(status, status)
    assert (changed is call) == (status not in moves)
    assert changed["toolCallId"] == "c"
    assert changed["toolName"] == "bash"


def test_only_a_server_of_tools_asks_to_sign_in() -> None:
    call = {**CALL, "status": "running", "contributor": {"kind": "client"}}

    assert change_tool(call, "toolCallAuthRequired", {}) is call


def test_a_call_keeps_what_it_was_given_until_it_is_given_anew() -> None:
    pending = change_tool({**CALL, "status": "streaming"}, "toolCallReady", {"toolInput": "[1]"})
    asked_again = change_tool(pending, "toolCallReady", {"invocationMessage": "Now"})
    edited = change_tool(asked_again, "toolCallConfirmed", {"approved": True, "editedToolInput": "", "confirmed": "by"})

    assert "invocationMessage" not in pending
    assert (asked_again["toolInput"], asked_again["invocationMessage"]) == ("[1]", "Now")
    assert (edited["toolInput"], edited["confirmed"]) == ("", "by")


def test_an_answer_does_not_say_which_call_it_is_of_nor_its_status() -> None:
    call = {**CALL, "status": "pending-confirmation"}
    result = {"success": True, "status": "made-up", "toolCallId": "other", "content": [1]}

    done = change_tool(call, "toolCallComplete", {"result": result, "_meta": {"m": 1}})

    assert (done["status"], done["toolCallId"], done["confirmed"]) == ("completed", "c", "not-needed")
    assert (done["content"], done["_meta"]) == ([1], {"m": 1})


def test_content_that_is_shown_belongs_to_a_running_call_and_stays_while_its_owner_signs_in() -> None:
    shown = change_tool(
        {**CALL, "status": "running", "contributor": {"kind": "mcp"}}, "toolCallContentChanged", {"content": [1]}
    )
    waiting = change_tool(shown, "toolCallAuthRequired", {})
    failed = change_tool(waiting, "toolCallComplete", {"result": {"success": False}})

    assert (shown["content"], failed["content"]) == ([1], [1])
    pending = {**CALL, "status": "pending-confirmation"}
    assert change_tool(pending, "toolCallContentChanged", {"content": [1]}) is pending


@pytest.mark.parametrize("status", STATUSES)
def test_the_end_of_a_turn_skips_what_has_not_ended(status: str) -> None:
    call = {"toolCallId": "c", "status": status, "content": [1]}

    skipped = skip_tool(call)

    if status in ("completed", "cancelled"):
        assert skipped is call
    else:
        assert skipped == {"toolCallId": "c", "invocationMessage": "", "status": "cancelled", "reason": "skipped"}


def begun() -> ChatState:
    state = ChatState()
    state.replace({"turns": [{"id": "1"}, {"id": "2"}], "turnsNextCursor": "older"})
    state.apply({"type": "chat/turnStarted", "turnId": "3", "message": {"text": "m"}, "startedAt": "now"})
    for identity, kind in (("a", "markdown"), ("b", "reasoning")):
        part = {"id": identity, "kind": kind, "content": identity}
        assert state.apply({"type": "chat/responsePart", "turnId": "3", "part": part}) is Applied.CHANGED
    return state


def delta(part: str, content: str, kind: str = "chat/delta", turn: str = "3") -> Json:
    return {"type": kind, "turnId": turn, "partId": part, "content": content}


def contents(state: ChatState) -> list[str]:
    assert state.active is not None
    return [part["content"] for part in state.active["responseParts"]]


def test_texts_grow_by_their_own_pieces_only() -> None:
    state = begun()

    results = [
        state.apply(action)
        for action in (
            delta("a", "1"), delta("a", "2"), delta("b", "3", "chat/reasoning"), delta("b", "4"), delta("c", "5"),
            delta("a", "6", turn="2"), delta("a", "7"),
        )
    ]  # fmt: skip

    text, nothing = Applied.TEXT, Applied.NOTHING
    assert results == [text, text, text, nothing, nothing, nothing, text]
    assert contents(state) == ["a127", "b3"]


def test_the_end_of_a_turn_needs_its_own_turn() -> None:
    chat = begun()

    assert chat.apply({"type": "chat/turnComplete", "turnId": "2"}) is Applied.NOTHING
    assert chat.apply({"type": "chat/error", "turnId": "3", "error": {"message": "e"}}) is Applied.CHANGED
    assert chat.active is None
    assert [turn["id"] for turn in chat.turns] == ["1", "2", "3"]
    assert (chat.turns[2]["state"], chat.turns[2]["error"], chat.turns[2]["startedAt"]) == (
        "error",
        {"message": "e"},
        "now",
    )


@pytest.mark.parametrize(
    ("until", "applied", "left"),
    [("1", Applied.CHANGED, ["1"]), ("2", Applied.CHANGED, ["1", "2"]), (None, Applied.CHANGED, []),
     ("9", Applied.NOTHING, ["1", "2"])],
)  # fmt: skip
def test_turns_are_taken_back_to_one_that_is_held(until: str | None, applied: Applied, left: list[str]) -> None:
    state = begun()

    assert state.apply({"type": "chat/truncated", "turnId": until}) is applied
    assert [turn["id"] for turn in state.turns] == left
    assert (state.active is None) == (applied is Applied.CHANGED)
    assert state.cursor == (None if until is None else "older")


def test_older_turns_come_before_those_held_and_none_twice() -> None:
    state = begun()

    state.apply({"type": "chat/turnsLoaded", "turns": [{"id": "0"}, {"id": "1"}], "turnsNextCursor": "oldest"})

    assert [turn["id"] for turn in state.turns] == ["0", "1", "2"]
    assert state.cursor == "oldest"


def test_a_text_may_fill_the_turn_and_not_more(monkeypatch: pytest.MonkeyPatch) -> None:
    state = begun()
    monkeypatch.setattr(chat_state, "TURN_CHARACTERS_MAX", 5)

    anew = {"type": "chat/turnStarted", "turnId": "4", "message": {}}

    seen = [(state.apply(one), state.has_overflowed) for one in (delta("a", "123"), delta("a", "4"), anew)]

    assert seen == [(Applied.TEXT, False), (Applied.NOTHING, True), (Applied.CHANGED, False)]


def test_parts_are_counted_and_the_last_that_fits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    state = begun()
    monkeypatch.setattr(chat_state, "PARTS_MAX", 3)
    part = {"type": "chat/responsePart", "turnId": "3", "part": {"kind": "markdown", "content": ""}}

    assert [state.apply(part) for _ in range(2)] == [Applied.CHANGED, Applied.NOTHING]
    assert state.has_overflowed


def test_the_oldest_turns_go_when_there_are_many_and_nothing_of_them_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chat_state, "TURNS_MAX", 4)
    state = ChatState()
    state.replace({"turns": [{"id": str(number), "state": "complete"} for number in range(5)]})
    state.trim()
    assert (len(state.turns), state.base) == (5, 0)
    for index in range(3):
        state.forget(index)
    state.trim()

    assert [turn["id"] for turn in state.turns] == ["3", "4"]
    assert state.base == 3
    assert state.apply({"type": "chat/truncated", "turnId": "0"}) is Applied.LOST


def test_what_changed_first_since_the_caller_looked_is_remembered() -> None:
    state = begun()
    state.touched = 9
    state.apply(delta("b", "x", "chat/reasoning"))
    assert state.touched == 1
    state.apply(delta("a", "x"))
    assert state.touched == 0


def test_how_much_of_a_turn_a_call_has_touched_depends_on_what_was_changed() -> None:
    state = begun()
    start = {"type": "chat/toolCallStart", "turnId": "3", "toolCallId": "c", "toolName": "bash"}
    assert state.apply(start) is Applied.CHANGED
    state.touched = 9

    assert state.apply({"type": "chat/toolCallDelta", "turnId": "3", "toolCallId": "c"}) is Applied.TEXT
    assert state.touched == 2
    assert state.apply({"type": "chat/toolCallDelta", "turnId": "3", "toolCallId": "d"}) is Applied.NOTHING
    ready = {"type": "chat/toolCallReady", "turnId": "3", "toolCallId": "c", "confirmed": "not-needed"}
    assert state.apply(ready) is Applied.CHANGED
    assert state.apply({"type": "chat/turnCancelled", "turnId": "3", "duration": 5}) is Applied.CHANGED
    turn = state.turns[-1]
    assert (turn["state"], turn["duration"]) == ("cancelled", 5)
    assert turn["responseParts"][2]["toolCall"]["reason"] == "skipped"
