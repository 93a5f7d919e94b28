"""Every rule and every text of resolving sub-agents, and that no event is ever without a place."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.agents import registry as module
from exporter.core.agents.registry import (
    UNATTRIBUTED,
    AgentRegistry,
    AgentSnapshot,
    EventOwner,
    Instance,
)
from exporter.core.events.envelope import Envelope

ROOT, CHILD, INNER = "root-session", "child-session", "inner-session"


def event(type: str, data: object = None, *, agent: str | None = None, at: str = "t1") -> Envelope:
    return Envelope("id", type, at, None, agent, False, msgspec.Raw(json.dumps({} if data is None else data).encode()))


def started(child: str = CHILD, call: str = "call-1", name: str = "explore", **more: Any) -> Envelope:
    return event("subagent.started", {"toolCallId": call, "agentName": name, **more}, agent=child)


def known(*sessions: str) -> AgentRegistry:
    agents = AgentRegistry()
    for session in sessions or (ROOT,):
        agents.add(session)
    return agents


def test_a_session_resolves_directly() -> None:
    assert known().resolve(ROOT) == EventOwner(ROOT)


def test_a_child_resolves_to_its_parent() -> None:
    agents = known()
    agents.attribute(ROOT, started())

    assert agents.resolve(CHILD) == EventOwner(ROOT, (CHILD,))


def test_a_session_is_looked_for_before_a_child() -> None:
    agents = known(ROOT, CHILD)
    agents.attribute(ROOT, started())

    assert agents.resolve(CHILD) == EventOwner(CHILD)


def test_an_unknown_id_has_its_text() -> None:
    assert known().resolve("nobody") == EventOwner(UNATTRIBUTED, error="unknown session nobody")


def test_a_child_whose_parent_is_not_known_has_its_text() -> None:
    agents = AgentRegistry()
    agents.attribute(ROOT, started())

    assert agents.resolve(CHILD) == EventOwner(UNATTRIBUTED, error=f"parent session {ROOT} for child {CHILD} not found")


@pytest.mark.parametrize(
    "start",
    [
        event("subagent.started", {"remoteSessionId": CHILD, "toolCallId": "call-1", "agentName": "explore"}),
        event("subagent.started", {"remoteSessionId": CHILD, "toolCallId": "call-1"}, agent="something-else"),
        started(),
    ],
    ids=["remoteSessionId", "remoteSessionId wins", "agentId"],
)
def test_both_dialects_name_the_child(start: Envelope) -> None:
    agents = known()

    assert agents.attribute(ROOT, start) == EventOwner(ROOT, (CHILD,))
    assert agents.resolve(CHILD) == EventOwner(ROOT, (CHILD,))


def test_the_child_of_1_0_48_is_the_tool_call_that_made_it() -> None:
    agents = known()
    agents.attribute(ROOT, started("call-1", "call-1"))

    assert agents.attribute(ROOT, event("assistant.message", agent="call-1")) == EventOwner(ROOT, ("call-1",))
    assert agents.attribute(ROOT, event("subagent.completed", {"toolCallId": "call-1"})) == EventOwner(
        ROOT, ("call-1",)
    )


def test_an_instance_is_kept_by_its_tool_call() -> None:
    agents = known()
    agents.attribute(ROOT, started(at="2026"))

    assert dict(agents.instances(ROOT)) == {"call-1": Instance("explore", "call-1", CHILD, "t1")}


@pytest.mark.parametrize("end", ["subagent.completed", "subagent.failed"])
@pytest.mark.parametrize("by", [CHILD, None])
def test_the_end_of_an_agent_removes_its_instance_and_nothing_else(end: str, by: str | None) -> None:
    agents = known()
    agents.attribute(ROOT, started())

    assert agents.attribute(ROOT, event(end, {"toolCallId": "call-1"}, agent=by)) == EventOwner(ROOT, (CHILD,))
    assert dict(agents.instances(ROOT)) == {}
    assert agents.resolve(CHILD) == EventOwner(ROOT, (CHILD,))
    child = agents.agent(ROOT, CHILD)
    assert child is not None and child.name == "explore"


def test_late_events_of_an_agent_keep_their_place() -> None:
    agents = known()
    for one in (started(), event("subagent.completed", {"toolCallId": "call-1"}, agent=CHILD)):
        agents.attribute(ROOT, one)

    assert agents.attribute(ROOT, event("assistant.turn_end", agent=CHILD)) == EventOwner(ROOT, (CHILD,))


def test_a_background_agent_outlives_its_tool_call() -> None:
    agents = known()
    agents.attribute(ROOT, event("tool.execution_start", {"toolCallId": "call-1", "toolName": "task"}))
    agents.attribute(ROOT, started())
    agents.attribute(ROOT, event("tool.execution_complete", {"toolCallId": "call-1"}))

    assert list(agents.instances(ROOT)) == ["call-1"]
    assert agents.attribute(ROOT, event("user.message", agent=CHILD)) == EventOwner(ROOT, (CHILD,))


@pytest.mark.parametrize("how", ["shutdown", "end", "forget"])
def test_children_go_with_their_session_only(how: str) -> None:
    agents = known(ROOT, "other")
    agents.attribute(ROOT, started())
    agents.attribute("other", started("others-child"))
    if how == "shutdown":
        agents.attribute(ROOT, event("session.shutdown"))
    else:
        {"end": agents.end, "forget": agents.forget}[how](ROOT)

    assert agents.resolve(CHILD) == EventOwner(UNATTRIBUTED, error=f"unknown session {CHILD}")
    assert agents.agent(ROOT, CHILD) is None
    assert dict(agents.instances(ROOT)) == {}
    assert agents.resolve("others-child") == EventOwner("other", ("others-child",))
    assert (agents.resolve(ROOT).error is None) is (how in ("shutdown", "end"))


@pytest.mark.parametrize("by", ["who made the call", "parentId", "a parentId seen first"])
def test_a_nested_agent_has_a_path_through_its_parents(by: str) -> None:
    agents = known()
    if by != "a parentId seen first":
        agents.attribute(ROOT, started())
    if by == "who made the call":
        agents.attribute(ROOT, event("tool.execution_start", {"toolCallId": "call-2"}, agent=CHILD))
        inner = started(INNER, "call-2", parentId="name-of-a-task")
    else:
        inner = started(INNER, "call-2", parentId=CHILD)

    assert agents.attribute(ROOT, inner) == EventOwner(ROOT, (CHILD, INNER))
    assert agents.attribute(ROOT, event("assistant.message", agent=INNER)) == EventOwner(ROOT, (CHILD, INNER))
    assert agents.resolve(INNER) == EventOwner(ROOT, (CHILD, INNER))


def test_parents_in_a_circle_end() -> None:
    agents = known()
    agents.attribute(ROOT, started("a", "call-a", parentId="b"))
    agents.attribute(ROOT, started("b", "call-b", parentId="a"))

    assert agents.attribute(ROOT, event("x", agent="a")).path == ("b", "a")


def test_an_event_before_its_start_makes_a_placeholder_that_the_start_fills_in() -> None:
    agents = known()
    first = agents.attribute(ROOT, event("assistant.message", agent=CHILD))
    placeholder = agents.agent(ROOT, CHILD)
    agents.attribute(ROOT, started())
    filled = agents.agent(ROOT, CHILD)

    assert first == EventOwner(ROOT, (CHILD,))
    assert placeholder is not None and (placeholder.name, placeholder.started_at) == ("", "")
    assert filled is not None and (filled.name, filled.tool_call, filled.started_at) == ("explore", "call-1", "t1")


def test_a_start_given_again_starts_nothing() -> None:
    agents = known()
    agents.attribute(ROOT, started())
    agents.attribute(ROOT, event("subagent.completed", {"toolCallId": "call-1"}, agent=CHILD))
    agents.attribute(ROOT, started())

    assert dict(agents.instances(ROOT)) == {}


def hook(kind: str, hook: str = "h1", session: str | None = None, agent: str | None = None) -> Envelope:
    data = {"hookInvocationId": hook} | ({} if session is None else {"input": {"sessionId": session}})
    return event(kind, data, agent=agent)


@pytest.mark.parametrize("is_known", [True, False])
def test_the_end_of_a_hook_is_joined_to_its_start(is_known: bool) -> None:
    agents = known()
    if is_known:
        agents.attribute(ROOT, started())

    assert agents.attribute(ROOT, hook("hook.start", session=CHILD)) == EventOwner(ROOT, (CHILD,))
    assert agents.attribute(ROOT, hook("hook.end")) == EventOwner(ROOT, (CHILD,))
    assert agents.attribute(ROOT, hook("hook.end")) == EventOwner(ROOT)


def test_hooks_of_the_root_stay_with_the_root() -> None:
    agents = known(ROOT, "forked-from")

    for session in (ROOT, "forked-from"):
        assert agents.attribute(ROOT, hook("hook.start", session=session)) == EventOwner(ROOT)
        assert agents.attribute(ROOT, hook("hook.end")) == EventOwner(ROOT)


def test_a_hook_with_an_agent_id_is_that_agents() -> None:
    agents = known()
    agents.attribute(ROOT, started())

    assert agents.attribute(ROOT, hook("hook.start", session=ROOT, agent=CHILD)) == EventOwner(ROOT, (CHILD,))
    assert agents.attribute(ROOT, hook("hook.end")) == EventOwner(ROOT, (CHILD,))


def test_an_event_that_only_names_the_call_which_made_its_agent_is_that_agents() -> None:
    agents = known()
    agents.attribute(ROOT, started())

    assert agents.attribute(ROOT, event("tool.x", {"parentToolCallId": "call-1"})) == EventOwner(ROOT, (CHILD,))


def test_an_external_tool_is_asked_for_by_the_session_it_names() -> None:
    agents = known()
    agents.attribute(ROOT, started())

    assert agents.attribute(ROOT, event("external_tool.requested", {"sessionId": CHILD})) == EventOwner(ROOT, (CHILD,))
    assert agents.attribute(ROOT, event("external_tool.requested", {"sessionId": ROOT})) == EventOwner(ROOT)


def test_a_stream_under_a_childs_own_id_belongs_to_the_root() -> None:
    agents = known()
    agents.attribute(ROOT, started())

    assert agents.attribute(CHILD, event("assistant.message")) == EventOwner(ROOT, (CHILD,))
    assert agents.attribute(CHILD, event("session.shutdown")) == EventOwner(ROOT, (CHILD,))
    assert agents.resolve(CHILD) == EventOwner(ROOT, (CHILD,))


def test_an_event_of_nobody_is_unattributed_and_says_why() -> None:
    place = AgentRegistry().attribute("nobody", event("assistant.message", agent=CHILD))

    assert place == EventOwner(UNATTRIBUTED, (CHILD,), "unknown session nobody")


def test_a_fork_does_not_take_the_children_of_its_original() -> None:
    agents = known(ROOT, "fork")
    agents.attribute(ROOT, started())

    assert agents.attribute("fork", started()) == EventOwner("fork", (CHILD,))
    assert agents.resolve(CHILD) == EventOwner(ROOT, (CHILD,))
    agents.forget("fork")
    assert agents.resolve(CHILD) == EventOwner(ROOT, (CHILD,))


def test_a_call_that_was_taken_for_an_agent_becomes_the_agent_it_made() -> None:
    agents = known()
    before = agents.attribute(ROOT, event("assistant.message", {"parentToolCallId": "call-1"}))
    agents.attribute(ROOT, event("tool.x", {"parentToolCallId": "call-1"}))
    agents.attribute(ROOT, started())

    assert before == EventOwner(ROOT, ("call-1",))
    assert agents.attribute(ROOT, event("tool.x", {"parentToolCallId": "call-1"})) == EventOwner(ROOT, (CHILD,))
    assert agents.agent(ROOT, "call-1") is None
    assert agents.resolve("call-1") == EventOwner(UNATTRIBUTED, error="unknown session call-1")


def test_what_was_below_a_call_is_below_the_agent_it_made() -> None:
    agents = known()
    agents.attribute(ROOT, event("assistant.message", {"parentToolCallId": "call-1"}))
    agents.attribute(ROOT, started(INNER, "call-2", parentId="call-1"))
    agents.attribute(ROOT, started())

    assert agents.attribute(ROOT, event("x", agent=INNER)) == EventOwner(ROOT, (CHILD, INNER))


def test_an_agent_that_only_others_name_is_hinted_at_until_it_speaks() -> None:
    agents = known()
    agents.attribute(ROOT, hook("hook.start", session=CHILD))
    agents.attribute(ROOT, started(INNER, "call-2", parentId="a-task"))
    hinted = [one.hinted for id in (CHILD, "a-task", INNER) if (one := agents.agent(ROOT, id))]
    agents.attribute(ROOT, event("assistant.message", agent=CHILD))
    agents.attribute(ROOT, hook("hook.start", "h2", session=CHILD))
    child = agents.agent(ROOT, CHILD)

    assert hinted == [True, True, False]
    assert child is not None and not child.hinted


def test_tables_are_cut_at_their_oldest_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENTS_MAX", "HOOKS_MAX", "TOOL_CALLS_MAX"):
        monkeypatch.setattr(module, name, 2)
    agents = known()
    for n in range(4):
        agents.attribute(ROOT, started(f"c{n}", f"call{n}"))
        agents.attribute(ROOT, hook("hook.start", f"h{n}", f"c{n}"))
        agents.attribute(ROOT, event("tool.execution_start", {"toolCallId": f"own{n}"}, agent=f"c{n}"))

    assert [agents.resolve(f"c{n}").error is None for n in range(4)] == [False, False, True, True]
    assert list(agents.instances(ROOT)) == ["call2", "call3"]
    assert agents.attribute(ROOT, hook("hook.end", "h0")) == EventOwner(ROOT)


def test_all_families_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGENTS_IN_ALL_MAX", 3)
    agents = known(*(f"s{n}" for n in range(6)))
    for n in range(6):
        agents.attribute(f"s{n}", started(f"c{n}", f"call{n}"))

    assert sum(agents.resolve(f"c{n}").error is None for n in range(6)) == 3


IDS = st.sampled_from(["a", "b", "c", ROOT, "", "\ud800", "x" * 600])
VALUES = st.recursive(st.none() | st.integers() | IDS, lambda deeper: st.lists(deeper, max_size=2), max_leaves=3)
FIELDS = ("toolCallId", "parentToolCallId", "remoteSessionId", "parentId", "agentName", "sessionId", "hookInvocationId")
DATA = st.dictionaries(st.sampled_from(FIELDS), VALUES | IDS, max_size=5)
TYPES = st.sampled_from(
    [
        *("subagent.started", "subagent.completed", "subagent.failed", "subagent.x", "hook.start", "hook.end"),
        *("tool.execution_start", "external_tool.requested", "session.shutdown", "assistant.message"),
    ]
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ROOT, "a", "other"]),
            TYPES,
            DATA | st.builds(lambda inner: {"input": inner, "hookInvocationId": "a"}, DATA | VALUES) | VALUES,
            st.none() | IDS,
        ),
        max_size=30,
    )
)
def test_whatever_comes_every_event_has_a_place(given: list[tuple[str, str, object, str | None]]) -> None:
    agents = known()
    for session, type, data, agent in given:
        place = agents.attribute(session, event(type, data, agent=agent))

        assert place.root in (ROOT, UNATTRIBUTED)
        assert (place.error is None) == (place.root == ROOT)
        assert len(set(place.path)) == len(place.path)
        for id in place.path:
            known_agent = agents.agent(ROOT, id)
            assert place.root == UNATTRIBUTED or known_agent is not None


EVENTS = st.lists(
    st.builds(
        lambda type, data, agent: event(type, data, agent=agent),
        TYPES,
        DATA | st.builds(lambda inner: {"input": inner, "hookInvocationId": "a"}, DATA),
        st.none() | IDS,
    ),
    max_size=20,
)


@given(EVENTS, EVENTS)
def test_what_was_kept_goes_on_as_if_nothing_had_been_between(first: list[Envelope], then: list[Envelope]) -> None:
    whole, before, after = known(), known(), known()
    for one in first:
        assert whole.attribute(ROOT, one) == before.attribute(ROOT, one)
    after.restore(ROOT, msgspec.json.decode(msgspec.json.encode(before.snapshot(ROOT)), type=AgentSnapshot))

    assert [after.attribute(ROOT, one) for one in then] == [whole.attribute(ROOT, one) for one in then]
    assert after.snapshot(ROOT) == whole.snapshot(ROOT)


@given(st.binary())
def test_data_that_is_no_json_reads_as_nothing(data: bytes) -> None:
    envelope = Envelope("id", "subagent.started", "", None, CHILD, False, msgspec.Raw(data))

    assert known().attribute(ROOT, envelope) == EventOwner(ROOT, (CHILD,))
