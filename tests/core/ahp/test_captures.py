"""What an AHP client saw, replayed into the observer, against Copilot's own log of the same session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.ahp.watching import Watching, sessions_of
from tests.shared import REAL

CAPTURES = REAL / "ahp/captures"
PAIRED = ("badtool", "bash", "classic_hello_bash", "edit", "hello", "reason", "sub_fail", "sub_sync")
pytestmark = pytest.mark.skipif(not CAPTURES.exists(), reason=f"THE CAPTURES ARE NOT HERE: {CAPTURES}")


def frames(name: str) -> Iterator[dict[str, Any]]:
    yield from json.loads((CAPTURES / name / "notes.json").read_bytes())


def recorded(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (CAPTURES / name / "events.jsonl").read_bytes().splitlines()]


def root(events: list[dict[str, Any]], type: str) -> list[dict[str, Any]]:
    """What the session itself did; older versions of the CLI name the call that started a child, not the child."""
    own = [event for event in events if event["type"] == type and not event.get("agentId")]
    return [event["data"] for event in own if not event["data"].get("parentToolCallId")]


def text(events: list[dict[str, Any]], type: str = "assistant.message") -> str:
    return "".join(data.get("content") or "" for data in root(events, type))


def starts(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(data["toolCallId"], data["toolName"]) for data in root(events, "tool.execution_start")]


def results(events: list[dict[str, Any]]) -> dict[str, tuple[bool, str]]:
    found = {}
    for data in root(events, "tool.execution_complete"):
        said = data.get("result", {}).get("content", "") if data["success"] else data["error"]["message"]
        found[data["toolCallId"]] = (data["success"], said)
    return found


def spawned(events: list[dict[str, Any]]) -> set[str]:
    return {event["data"]["toolCallId"] for event in events if event["type"] == "subagent.started"}


def watched(name: str) -> Watching:
    """An observer that was there from before the first frame."""
    heard, meta = list(frames(name)), json.loads((CAPTURES / name / "meta.json").read_bytes())
    empty: dict[str, Any] = {"title": "", "turns": []}
    first = min(frame["params"]["serverSeq"] for frame in heard if "serverSeq" in frame.get("params", {}))
    if "ahp_chats" in meta:
        default = {meta["ahp_chats"][0]: {**empty, "origin": {"kind": "user"}}}
        watching = Watching(sessions_of(default), seq=first - 1)
    else:
        watching = Watching({f"copilot:/{meta['copilot_session_id']}": empty}, version=1, seq=first - 1)
    watching.begin()
    for uri in meta.get("ahp_chats", [])[1:]:
        watching.states[uri] = empty
    for frame in heard:
        watching.hear(frame)
    return watching


@pytest.mark.parametrize("name", PAIRED)
def test_the_root_is_told_as_in_copilots_own_log(name: str) -> None:
    events, log = watched(name).durable(), recorded(name)

    assert text(events) == text(log)
    assert starts(events) == starts(log)
    assert results(events) == results(log)
    assert spawned(events) == spawned(log)
    assert [data["content"] for data in root(events, "user.message")] == [
        data["content"] for data in root(log, "user.message")
    ]
    ids = [event["id"] for event in events]
    assert len(ids) == len(set(ids))


def test_reasoning_is_told_once_and_as_it_comes() -> None:
    watching = watched("reason")
    durable, passing = watching.durable(), watching.passing()

    assert text(durable, "assistant.reasoning") == "First I think. Then I answer."
    deltas = [e["data"] for e in passing if e["type"] == "assistant.reasoning_delta"]
    assert "".join(data["deltaContent"] for data in deltas) == "First I think. Then I answer."
    assert {data["reasoningId"] for data in deltas} == {root(durable, "assistant.reasoning")[0]["reasoningId"]}


def test_a_tool_call_that_is_ready_twice_starts_once() -> None:
    events = watched("classic_hello_bash")
    asked = [e["type"] for e in events.passing() if e["type"].startswith("permission.")]

    assert asked == ["permission.requested", "permission.completed"]
    assert len(starts(events.durable())) == 1


def test_a_history_read_after_a_restart_adds_nothing() -> None:
    """Turn and part ids are others, a prompt is lost, an exit code is gone: it is the same history."""
    before = json.loads((CAPTURES / "restart/before.json").read_bytes())
    after = json.loads((CAPTURES / "restart/after.json").read_bytes())
    watching = Watching(sessions_of(before), seq=300)
    watching.begin()
    told = watching.durable()
    watching.states, watching.seq = sessions_of(after), 3
    watching.begin()

    assert len([e for e in told if e["type"] == "assistant.turn_end"]) == sum(len(s["turns"]) for s in before.values())
    assert watching.durable()[: len(told)] == told
    known = {turn["message"]["text"] for state in before.values() for turn in state["turns"]}
    new = [e["data"]["content"] for e in watching.durable()[len(told) :] if e["type"] == "user.message"]
    assert known.isdisjoint(new)  # the file after has sessions that the file before has not
    assert not [e for e in watching.durable() if e["type"] == "exporter.gap"]
    assert watching.observer.restarts == 1
