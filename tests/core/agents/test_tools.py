"""The allow-list of a sub-agent's tools: every row of seed 002's tables, as a report."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.agents.registry import AgentRegistry
from exporter.core.agents.tools import AgentTools, ToolReport, read_agent_tools, refusal, report, undefined_tools
from exporter.core.events.envelope import Envelope

DENIED = "Tool 'a' is not supported by this client instance."


def with_a_child() -> AgentRegistry:
    agents = AgentRegistry()
    agents.add("root")
    data = msgspec.Raw(json.dumps({"toolCallId": "call", "agentName": "reviewer"}).encode())
    agents.attribute("root", Envelope("id", "subagent.started", "t", None, "child", False, data))
    return agents


@pytest.mark.parametrize("request_name", ["tool.call", "external_tool.requested"])
@pytest.mark.parametrize(
    ("tools", "error"),
    [(None, None), ([], DENIED), (["b"], DENIED), (["a", "b"], None), ("a", None), ([7, "a"], None)],
    ids=["unset", "empty", "not listed", "listed", "no list reads as unset", "what is no text is left out"],
)
def test_a_child_may_call_what_its_agent_lists(request_name: str, tools: object, error: str | None) -> None:
    reviewer = read_agent_tools({"name": "reviewer", "tools": tools})
    assert reviewer is not None

    answer = report(with_a_child(), request_name, "child", "a", {"reviewer": reviewer})

    assert answer == ToolReport("root", "reviewer", error)
    assert answer.allowed is (error is None)


def test_tools_that_are_not_set_at_all_are_unset() -> None:
    assert read_agent_tools({"name": "reviewer"}) == AgentTools("reviewer", None)


@pytest.mark.parametrize("request_name", ["permission.request", "hooks.invoke", "userInput.request"])
def test_other_requests_are_not_held_against_the_list(request_name: str) -> None:
    nothing = {"reviewer": AgentTools("reviewer", frozenset())}

    assert report(with_a_child(), request_name, "child", "a", nothing).allowed


def test_the_session_itself_is_not_restricted() -> None:
    nothing = {"reviewer": AgentTools("reviewer", frozenset())}

    assert report(with_a_child(), "tool.call", "root", "a", nothing) == ToolReport("root", None, None)


def test_an_agent_that_nobody_configured_is_not_restricted() -> None:
    assert report(with_a_child(), "tool.call", "child", "a", {}).allowed


@pytest.mark.parametrize("session", ["root", "child"])
def test_a_tool_that_nobody_registered_is_refused_in_the_same_words(session: str) -> None:
    assert report(with_a_child(), "tool.call", session, "a", {}, registered=["b"]).error == DENIED
    assert report(with_a_child(), "tool.call", session, "b", {}, registered=["b"]).allowed


def test_a_refused_tool_is_never_an_unknown_session_nor_the_other_way() -> None:
    answer = report(with_a_child(), "tool.call", "nobody", "a", {}, registered=[])

    assert answer == ToolReport(None, None, "unknown session nobody")
    assert refusal("a") == DENIED


@pytest.mark.parametrize(
    ("configured", "custom", "undefined"),
    [
        ({"tools": None}, None, []),
        ({"tools": []}, None, []),
        ({"tools": ["a", "b"]}, None, ["a", "b"]),
        ({"tools": ["a", "b"], "toolDefinitions": [{"name": "a"}, "rubbish", {"name": 7}]}, None, ["b"]),
        ({"tools": ["a", "bash"]}, ["a"], ["a"]),
    ],
    ids=["unset needs none", "nothing listed", "no definitions", "one of two", "the CLI's own need none"],
)
def test_listed_tools_without_a_definition_are_named(
    configured: dict[str, object], custom: list[str] | None, undefined: list[str]
) -> None:
    agent = read_agent_tools({"name": "reviewer", **configured})
    assert agent is not None

    assert undefined_tools(agent, custom) == undefined


@given(st.recursive(st.none() | st.text() | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_a_configuration_of_any_shape_is_read_or_left(configured: object) -> None:
    for shape in (configured, {"name": configured}, {"name": "x", "tools": configured, "toolDefinitions": configured}):
        read_agent_tools(shape)
