"""What always holds of the observer: its mirror is the host's state, and every turn is told once, or a gap is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.ahp.scripted import SESSION_NAME, STEPS, ScriptedHost
from tests.core.ahp.watching import Watching

VERSIONS: list[str | int] = [1, "0.4.0", "0.9.0", "1.0.0"]
BOTH = pytest.mark.parametrize("version", VERSIONS, ids=str)
STEP = st.sampled_from([*STEPS, "start", "start", "write", "write", "call", "ready", "complete", "end"])
Json = dict[str, Any]


class Told(Protocol):
    """Whatever has kept what was told."""

    def durable(self) -> list[Json]: ...


def watching(host: ScriptedHost) -> Watching:
    made = Watching({}, version=host.version)
    made.answer = host.answer
    made.begin()
    return made


def deliver(host: ScriptedHost, observed: Watching) -> None:
    while host.told:
        observed.hear(host.told.pop(0))


def connect(host: ScriptedHost, observed: Watching) -> None:
    """What is told while an answer is on its way comes behind it, as on a socket."""
    observed.begin()
    deliver(host, observed)


def told(observed: Told) -> list[tuple[str, str, str, tuple[str, ...], tuple[tuple[str, bool], ...], str]]:
    turns: list[Json] = []
    for event in observed.durable():
        kind, data = event["type"], event["data"]
        if kind == "user.message":
            turns.append({"prompt": data["content"], "text": "", "thought": "", "calls": [], "results": [], "end": ""})
        elif kind == "assistant.message":
            turns[-1]["text"] += data["content"]
        elif kind == "assistant.reasoning":
            turns[-1]["thought"] += data["content"]
        elif kind == "tool.execution_start":
            turns[-1]["calls"].append(data["toolCallId"])
        elif kind == "tool.execution_complete":
            turns[-1]["results"].append((data["toolCallId"], data["success"]))
        elif kind in ("abort", "session.error", "assistant.turn_end"):
            turns[-1]["end"] += kind + " "
    return [
        (t["prompt"], t["text"], t["thought"], tuple(sorted(t["calls"])), tuple(sorted(t["results"])), t["end"])
        for t in turns
    ]


def happened(host: ScriptedHost) -> list[Any]:
    ends = {"complete": "", "cancelled": "abort ", "error": "session.error "}
    turns = []
    for turn in host.turns:
        parts = turn["responseParts"]
        calls = [part["toolCall"] for part in parts if part["kind"] == "toolCall"]
        text = "".join(part["content"] for part in parts if part["kind"] == "markdown")
        thought = "".join(part["content"] for part in parts if part["kind"] == "reasoning")
        results = sorted((call["toolCallId"], call["status"] == "completed") for call in calls)
        end = ends[turn["state"]] + "assistant.turn_end "
        names = tuple(
            sorted(call["toolCallId"] for call in calls)
        )  # they start when they may, not when they are asked for
        turns.append((turn["message"]["text"], text, thought, names, tuple(results), end))
    return turns


def finish(host: ScriptedHost, observed: Watching) -> None:
    if not host.is_connected:
        connect(host, observed)
    host.end()
    deliver(host, observed)


def gaps(observed: Told) -> list[Json]:
    return [event["data"] for event in observed.durable() if event["type"] == "exporter.gap"]


@BOTH
@given(steps=st.lists(STEP, max_size=40))
@settings(max_examples=60, deadline=None)
def test_the_mirror_is_the_hosts_state_at_any_point(version: str | int, steps: list[str]) -> None:
    host = ScriptedHost(version)
    observed = watching(host)
    for step in steps:
        STEPS[step](host)
        deliver(host, observed)
        (session,) = observed.observer.subscriptions.sessions
        chat_state = session.chats[host.chat].chat_state
        assert chat_state.active == (host.active or None)
        assert [turn["id"] for turn in chat_state.turns] == [turn["id"] for turn in host.turns]
    finish(host, observed)

    assert told(observed) == happened(host)
    assert gaps(observed) == []


@BOTH
@given(
    steps=st.lists(st.one_of(STEP, st.sampled_from(["drop", "connect", "anew", "unmarked"])), max_size=60),
    buffer=st.integers(1, 6),
)
@settings(max_examples=80, deadline=None)
def test_every_turn_is_told_once_however_often_the_connection_is_lost(
    version: str | int, steps: list[str], buffer: int
) -> None:
    """The host's buffer overflows, its snapshots hold two turns, and now and then the exporter is started again."""
    host = ScriptedHost(version, buffer=buffer, window=2, page=2)
    observed = watching(host)
    for step in steps:
        if step == "drop":
            host.drop()
        elif step == "connect":
            host.drop()
            connect(host, observed)
        elif step in ("anew", "unmarked"):
            host.drop()
            if step == "unmarked":  # killed before it was written down what was told: the journal knows
                observed.kept.clear()
            observed.begin_anew()
            deliver(host, observed)
        else:
            STEPS[step](host)
            deliver(host, observed)
    finish(host, observed)

    assert told(observed) == happened(host)
    assert gaps(observed) == []


@BOTH
@given(steps=st.lists(st.one_of(STEP, st.sampled_from(["drop", "connect", "restart"])), max_size=60))
@settings(max_examples=80, deadline=None)
def test_every_turn_is_told_once_when_the_host_is_restarted(version: str | int, steps: list[str]) -> None:
    host = ScriptedHost(version, window=3)
    observed = watching(host)
    for step in steps:
        if step == "drop":
            host.drop()
        elif step == "connect":
            host.drop()
            connect(host, observed)
        elif step == "restart":
            host.restart()
            connect(host, observed)
        else:
            STEPS[step](host)
            deliver(host, observed)
    finish(host, observed)

    assert told(observed) == happened(host)
    assert gaps(observed) == []


@BOTH
def test_an_action_that_a_snapshot_holds_already_is_not_applied_again(version: str | int) -> None:
    host = ScriptedHost(version)
    observed = watching(host)
    for step in ("start", "write", "write"):
        STEPS[step](host)
    overtaken = [dict(frame) for frame in host.told]
    host.drop()
    observed.begin()
    for frame in overtaken:
        observed.hear(frame)
    finish(host, observed)

    assert told(observed) == happened(host)


@BOTH
def test_a_host_that_lost_turns_makes_a_gap(version: str | int) -> None:
    host = ScriptedHost(version)
    observed = watching(host)
    for _ in range(3):
        for step in ("start", "write", "end"):
            STEPS[step](host)
            deliver(host, observed)
    host.restart()
    del host.turns[1:]
    connect(host, observed)
    for step in ("start", "write", "end"):
        STEPS[step](host)
        deliver(host, observed)

    assert [(gap["fromTurn"], gap["toTurn"], gap["recovered"]) for gap in gaps(observed)] == [(1, 3, False)]
    assert told(observed)[-1] == happened(host)[-1]


@BOTH
def test_a_turn_that_ran_and_is_gone_makes_a_gap(version: str | int) -> None:
    host = ScriptedHost(version)
    observed = watching(host)
    for step in ("start", "write", "call"):
        STEPS[step](host)
        deliver(host, observed)
    host.active = None
    host.restart()
    connect(host, observed)

    assert [(gap["fromTurn"], gap["toTurn"]) for gap in gaps(observed)] == [(0, 1)]


@BOTH
def test_turns_that_are_taken_back_are_told_of(version: str | int) -> None:
    host = ScriptedHost(version)
    observed = watching(host)
    for _ in range(3):
        for step in ("start", "write", "end"):
            STEPS[step](host)
    deliver(host, observed)
    host.truncate(1)
    for step in ("start", "write", "end"):
        STEPS[step](host)
    deliver(host, observed)

    rewinds = [event["data"] for event in observed.durable() if event["type"] == "session.snapshot_rewind"]
    assert rewinds == [{"upToTurn": 1, "turnsRemoved": 2}]
    assert told(observed)[3:] == happened(host)[1:]


def test_a_host_that_gives_the_same_page_for_ever_makes_a_gap() -> None:
    host = ScriptedHost(1, window=2)
    for _ in range(5):
        host.start()
        host.end()
    newest = {"result": {"turns": host.state()["turns"], "hasMore": True}}
    observed = Watching({}, version=1)
    observed.answer = lambda method, params: newest if method == "fetchTurns" else host.answer(method, params)
    observed.begin()

    assert [gap["reason"] for gap in gaps(observed)] == ["the host gives the same turns again"]
    assert told(observed) == happened(host)[-2:]
    assert sum(asked.get("method") == "fetchTurns" for asked in observed.asked) == 1


def _classic_of_five_turns(older: Callable[[Json], Json] | None = None) -> tuple[ScriptedHost, Watching]:
    """A host that gives its newest two turns at once, and answers so when it is asked for older ones."""
    host = ScriptedHost(1, window=2)
    for _ in range(5):
        host.start()
        host.end()
    observed = Watching({}, version=1)
    observed.answer = lambda method, params: (
        older(params) if older is not None and method == "fetchTurns" else host.answer(method, params)
    )
    observed.begin()
    return host, observed


def test_older_turns_are_fetched_page_by_page() -> None:
    host, observed = _classic_of_five_turns()

    assert gaps(observed) == []
    assert told(observed) == happened(host)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"code": -32603, "message": "not today"}}, "the host does not give older turns: "),
        ({"result": {}}, "the host answered with no turns"),
    ],
)
def test_a_host_that_does_not_give_older_turns_makes_a_gap(answer: Json, reason: str) -> None:
    host, observed = _classic_of_five_turns(lambda _: answer)

    [gap] = gaps(observed)
    assert gap["reason"].startswith(reason)
    assert "not today" not in gap["reason"]
    assert told(observed) == happened(host)[-2:]


def test_a_turn_that_ends_while_the_history_is_asked_for_makes_no_gap() -> None:
    """Recorded from 4.117.0: nothing was held, so that the newest turns are asked for, and the turn is one of them."""
    host = ScriptedHost(1)
    host.start()
    observed = Watching({}, version=1)

    def answer(method: str, params: Json) -> Json:
        if method == "fetchTurns" and host.active is not None:
            host.end()
            for frame in host.told:
                observed.observer.receive(json.dumps(frame), observed.now)
            host.told.clear()
            return {"result": {"turns": host.state()["turns"], "hasMore": False}}
        return host.answer(method, params)

    observed.answer = answer
    observed.begin()

    assert gaps(observed) == []
    assert told(observed) == happened(host)
    assert len(host.turns) == 1


def test_a_cursor_that_leads_in_a_circle_makes_a_gap() -> None:
    host = ScriptedHost("0.9.0", window=1)
    for _ in range(5):
        host.start()
        host.end()
    observed = Watching({}, version="0.9.0")

    def answer(method: str, params: Json) -> Json:
        if method != "fetchTurns":
            return host.answer(method, params)
        action = {"type": "chat/turnsLoaded", "turns": [host.turns[3]], "turnsNextCursor": "4"}
        host.seq += 1
        params = {"channel": host.chat, "action": action, "serverSeq": host.seq}
        host.told.append({"jsonrpc": "2.0", "method": "action", "params": params})
        return {"result": {}}

    observed.answer = answer
    connect(host, observed)

    assert [gap["reason"] for gap in gaps(observed)] == ["the host gives the same turns again"]
    assert told(observed) == happened(host)[-2:]
    assert SESSION_NAME in observed.lines
