"""Random histories against their generator, and the recordings of real hosts that the generator is written after."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest

from exporter.core.ahp.checkpoint import Checkpoint, FinishedTurn, calls, digest_of, joined, prompt
from exporter.core.ahp.values import text
from tests.core.ahp.histories import Host, play
from tests.core.ahp.watching import Watching, sessions_of

FIXTURES = Path(__file__).parents[2] / "fixtures/ahp"
VERSIONS: dict[str, str | int] = {"classic": 1, "chat": "0.9.0"}
RECORDED = {name: json.loads((FIXTURES / f"{name}.json").read_bytes()) for name in VERSIONS}
STORED = json.loads((FIXTURES / "stored.json").read_bytes())
CASES = [(dialect, title) for dialect, sessions in RECORDED.items() for title in sessions]
MOVED = json.loads((FIXTURES / "moved.json").read_bytes())
SEEDS = 1250
CHAT = "ahp-chat://default/YWhwLXNlc3Npb246LzVlYzYzM2JjLWEzMjUtNDNhZi1iNWNiLTk2Nzg1ZWYxOTcxYw"
Json = dict[str, Any]


def watched(dialect: str, states: Json) -> Watching:
    watching = Watching(states, version=VERSIONS[dialect], seq=300)
    watching.begin()
    return watching


def restart(watching: Watching, states: Json) -> list[Json]:
    """Show what the host gives after its restart, and return the events that are new."""
    before = len(watching.durable())
    watching.states, watching.seq = states, 3
    watching.begin()
    return watching.durable()[before:]


def types(events: list[Json]) -> Counter[str]:
    return Counter(event["type"] for event in events)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 10_000, SEEDS))
def test_every_turn_call_error_and_sub_agent_is_told_once_in_random_histories(start: int) -> None:
    assert play(range(start, start + SEEDS)) == ""


def test_a_comparison_by_the_order_of_calls_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_order(recorded: FinishedTurn, turn: Json) -> bool:
        names = [text(call, "toolCallId") for call in calls(turn)]
        before.setdefault(recorded.id, names)
        same_prompt = digest_of(prompt(turn)) in (recorded.prompt, "")
        same_text = digest_of(joined(turn, "markdown").strip()) == recorded.text
        is_same = same_prompt and before[recorded.id] == names and (bool(names) or same_text)
        return recorded.id == turn["id"] or is_same

    before: dict[str, list[str]] = {}
    finish = Checkpoint.finish

    def note(self: Checkpoint, turn: Json) -> None:
        before[turn["id"]] = [text(call, "toolCallId") for call in calls(turn)]
        finish(self, turn)

    monkeypatch.setattr(Checkpoint, "finish", note)
    monkeypatch.setattr("exporter.core.ahp.chat.is_same", by_order)

    assert play(range(100)).startswith("history ")


@pytest.mark.parametrize(("dialect", "title"), CASES)
def test_a_recorded_restart_doubles_nothing(dialect: str, title: str) -> None:
    recorded = RECORDED[dialect][title]
    watching = watched(dialect, recorded["before"])
    told = watching.durable()
    new = restart(watching, recorded["after"])

    assert "exporter.gap" not in types(new)
    assert not [event for event in new if not event.get("agentId")]
    assert_once([*told, *new])


@pytest.mark.parametrize(("dialect", "title"), CASES)
def test_the_ids_of_a_recorded_session_are_the_same_after_a_restart_of_both_sides(dialect: str, title: str) -> None:
    recorded = RECORDED[dialect][title]
    before = {event["id"]: event for event in watched(dialect, recorded["before"]).durable()}
    after = {event["id"]: event for event in watched(dialect, recorded["after"]).durable()}

    assert_once([*before.values(), *(event for id, event in after.items() if id not in before)])
    same = [(before[id]["type"], after[id]["type"]) for id in before.keys() & after.keys()]
    renamed = {("session.error", "abort")} if dialect == "classic" else set()  # it forgets that the turn failed
    assert {pair for pair in same if pair[0] != pair[1]} <= renamed | {("subagent.completed", "subagent.failed")}


def test_a_turn_that_a_classic_host_ends_too_early_is_told_once_and_as_it_was_while_it_ran() -> None:
    """Behind a turn that failed it gave the calls and texts of one turn in the next; restored they are apart."""
    watching = watched("classic", MOVED["before"])
    told = watching.durable()
    new = restart(watching, MOVED["after"])

    assert said(told) == ["Three at once.", "Two agents ran.Noted.Good day. This is a scripted answer."]
    assert not [event for event in new if not event.get("agentId")]
    assert "exporter.gap" not in types(new)
    assert_once([*told, *new])


def test_without_its_state_an_exporter_tells_again_what_a_classic_host_has_moved_and_nothing_else() -> None:
    """Nothing in what the host has after its restart says where it had these texts before."""
    before = {event["id"]: event for event in watched("classic", MOVED["before"]).durable() if not event.get("agentId")}
    after = {event["id"]: event for event in watched("classic", MOVED["after"]).durable() if not event.get("agentId")}
    again = [event for id, event in after.items() if id not in before]
    gone = [event for id, event in before.items() if id not in after]

    assert said(gone) == ["Two agents ran.Noted.Good day. This is a scripted answer."]
    assert said(again) == ["Two agents ran.Noted.", "Good day. This is a scripted answer."]
    assert {*types(again), *types(gone)} == {"assistant.message"}


def test_what_a_classic_host_has_joined_shares_nothing_with_its_parts_but_what_they_say_together() -> None:
    """If this fails, a text can be recognised after a restart of the host by more than its content."""
    before, after = (texts_of(MOVED[moment]) for moment in ("before", "after"))
    known = [{value for text in texts for value in text.values()} for texts in (before, after)]

    assert {key for text in (*before, *after) for key in text} == {"kind", "id", "content", "turn"}
    assert known[0] & known[1] == {"markdown", "Three at once."}
    assert ["".join(text["content"] for text in texts) for texts in (before, after)] == [JOINED, JOINED]


@pytest.mark.parametrize("dialect", VERSIONS)
def test_a_sub_agents_conversation_that_the_host_could_not_read_is_not_gone(dialect: str) -> None:
    """A classic host that restores it before it can read Copilot's log gives it without turns, until it restarts."""
    recorded = RECORDED[dialect]["nested"]
    watching = watched(dialect, recorded["before"])
    told = watching.durable()
    ended = {uri for uri, state in recorded["before"].items() if "subagent" in uri and state.get("turns")}
    unread = {uri: {**state, "turns": []} if uri in ended else state for uri, state in recorded["after"].items()}
    assert unread != recorded["after"]

    new = [*restart(watching, unread), *restart(watching, recorded["after"])]

    assert "exporter.gap" not in types(new)
    assert_once([*told, *new])


JOINED = "Three at once.Two agents ran.Noted.Good day. This is a scripted answer."


def texts_of(states: Json) -> list[Json]:
    """The texts of a session's own conversation, each with the id of its turn."""
    (turns,) = [state["turns"] for uri, state in states.items() if "turns" in state and "subagent" not in uri]
    return [{**p, "turn": turn["id"]} for turn in turns for p in turn["responseParts"] if p["kind"] == "markdown"]


def said(events: list[Json]) -> list[str]:
    found = [event for event in events if event["type"] == "assistant.message" and not event.get("agentId")]
    return [event["data"]["content"] for event in found]


@pytest.mark.parametrize(("dialect", "title"), CASES)
def test_a_checkpoint_of_the_version_before_is_understood(dialect: str, title: str) -> None:
    """Stored by the version that kept a hash of the calls in the order of their start."""
    stored = STORED[dialect][title]
    watching = Watching(RECORDED[dialect][title]["after"], version=VERSIONS[dialect], seq=3)
    watching.kept["5ec633bc-a325-43af-b5cb-96785ef1971c"] = json.dumps(stored["checkpoint"]).encode()
    watching.begin()
    new = watching.durable()

    assert "exporter.gap" not in types(new)
    assert not [event for event in new if not event.get("agentId")]
    told = {(type, call) for type, call in stored["events"] if type.startswith("tool.")}
    assert told.isdisjoint({(event["type"], event["data"].get("toolCallId")) for event in new})


@pytest.mark.parametrize("lost", [[{"kind": "markdown", "content": "Hello"}], []], ids=["said something", "was empty"])
def test_the_model_of_a_turn_that_the_host_has_lost_is_not_that_of_the_next(lost: list[Json]) -> None:
    states = [sessions_of({CHAT: {"turns": [turn_of(*each)]}}) for each in (("one", lost), ("two", []))]
    watching = watched("chat", states[0])
    changes = [event for event in restart(watching, states[1]) if event["type"] == "session.model_change"]
    anew = [event for event in watched("chat", states[1]).durable() if event["type"] == "session.model_change"]

    assert [event["data"] for event in changes] == [{"previousModel": None, "newModel": "made-up-model"}]
    assert [event["id"] for event in changes] == [event["id"] for event in anew]


def test_a_turn_that_the_host_has_lost_from_between_others_is_said_and_nothing_is_told_again() -> None:
    one, two, three = (turn_of(asked, [{"kind": "markdown", "content": asked}]) for asked in ("one", "two", "three"))
    watching = watched("chat", sessions_of({CHAT: {"turns": [one, two, three]}}))

    (gap,) = restart(watching, sessions_of({CHAT: {"turns": [one, {**three, "id": "another"}]}}))

    assert gap["type"] == "exporter.gap"
    assert gap["data"]["reason"] == "turns are gone"
    assert (gap["data"]["fromTurn"], gap["data"]["toTurn"]) == (1, 2)


def turn_of(asked: str, parts: list[Json]) -> Json:
    """A turn as a host gives it after a restart, with its model."""
    message = {"text": asked, "model": {"id": "made-up-model"}}
    return {"id": f"turn {asked}", "message": message, "responseParts": parts, "state": "complete"}


def test_the_error_of_a_turn_is_told_in_the_words_of_the_host() -> None:
    events = watched("chat", RECORDED["chat"]["turns"]["before"]).durable()

    (error,) = [event["data"] for event in events if event["type"] == "session.error"]
    assert error == {"errorType": "query", "message": "Execution failed: 400 scripted failure"}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("dialect", VERSIONS)
def test_nested_sub_agents_are_told_with_name_prompt_and_end(dialect: str, moment: str) -> None:
    events = watched(dialect, RECORDED[dialect]["nested"][moment]).durable()
    started = [event for event in events if event["type"] == "subagent.started"]
    asked = [event["data"]["content"] for event in events if event["type"] == "user.message" and event.get("agentId")]
    ends = {event["agentId"]: event for event in events if event["type"] in ("subagent.completed", "subagent.failed")}

    assert sorted(event["data"]["agentName"] for event in started) == ["general-purpose"] * 2 + ["task"] * 2
    wanted = ["child_nest", "child_nest_fail", "child_bash", "child_fail"]
    if (dialect, moment) == ("classic", "after"):
        wanted.pop()  # of a nested one that failed at once it has only the call
    assert sorted(asked) == sorted(f"Play your part. @@script {name}" for name in wanted)
    failed = [event["data"] for event in ends.values() if event["type"] == "subagent.failed"]
    assert len(ends) == 4
    assert ["failure" in data["error"] or "error" in data["error"] for data in failed] == [True]
    outer = {event["agentId"] for event in started if event["data"]["agentName"] == "general-purpose"}
    assert {event["data"].get("parentId") for event in started if event["data"]["agentName"] == "task"} == outer


@pytest.mark.parametrize("dialect", VERSIONS)
def test_the_scripted_host_restores_as_the_recorded_one(dialect: str) -> None:
    before, after = (RECORDED[dialect]["turns"][moment] for moment in ("before", "after"))
    host = Host(VERSIONS[dialect], Random(1))
    (root,) = [uri for uri in before if uri in after and "subagent" not in uri and "turns" in before[uri]]
    for turn in before[root]["turns"][:2]:
        host.chats[host.root]["turns"].append(turn)
    host.ended = [call["toolCallId"] for call in calls(after[root]["turns"][0])]
    for turn in RECORDED[dialect]["cancelled"]["before"][root]["turns"]:
        host.chats[host.root]["turns"].append(turn)
    host.restart()

    real = [*after[root]["turns"][:2], *RECORDED[dialect]["cancelled"]["after"][root]["turns"]]
    assert [seen(turn) for turn in host.chats[host.root]["turns"]] == [seen(turn) for turn in real]


def seen(turn: Json) -> Json:
    """What is read of a turn, and may not depend on chance."""
    found = [(call["toolCallId"], call["status"], call.get("success")) for call in calls(turn)]
    errors = [part["error"]["message"] for part in turn["responseParts"] if part["kind"] == "error"]
    said = {kind: joined(turn, kind) for kind in ("markdown", "reasoning")}
    return {"state": turn["state"], "prompt": prompt(turn), "calls": found, "errors": errors, **said}


def assert_once(events: list[Json]) -> None:
    told = Counter(
        (event["type"], event["data"].get("toolCallId")) for event in events if "toolCallId" in event["data"]
    )
    assert not [key for key, count in told.items() if count > 1]
    asked = Counter((event.get("agentId"), event["data"]["turnId"]) for event in events if "turnId" in event["data"])
    assert set(asked.values()) <= {2}  # a start and an end
