"""Sub-agents as spans: below the tool that spawned them, in whatever order their events come."""

import pytest

from otel import names
from tests.otel.story import Story, said, value

SPAWNED = {"toolCallId": "call-t", "agentName": "explore", "agentDescription": "Looks.", "executionMode": "background"}


def _spawned(*, semconv: str = "cli") -> Story:
    story = Story(semconv="legacy" if semconv == "legacy" else "cli")
    story.ask()
    story.answer("call-t")
    story.start("call-t", "task")
    return story


def _work(story: Story, agent: str = "a-1") -> None:
    story.tell("user.message", {"source": "agent-x", "delivery": "idle", "interactionId": "inner"}, agent=agent)
    story.tell("assistant.turn_start", {"turnId": "0", "parentToolCallId": "call-t"}, agent=agent)
    story.answer("call-i", agent=agent)
    story.start("call-i", agent=agent, parentToolCallId="call-t")
    story.complete("call-i", agent=agent)
    story.end_turn(agent=agent)


def _finish(story: Story) -> None:
    story.tell("assistant.turn_start", {"turnId": "1"})
    story.answer()
    story.end_turn()


INNER = ["    invoke_agent explore", "      chat model-x", "      execute_tool bash bash"]


def test_an_agent_in_the_foreground_is_below_its_tool() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    _work(story)
    ended = story.tell("subagent.completed", {"toolCallId": "call-t", "totalTokens": 110}, agent="a-1")
    again = story.tell("subagent.completed", {"toolCallId": "call-t"}, agent="a-1")
    story.complete("call-t")
    story.end_turn()
    _finish(story)

    assert story.tree() == ["invoke_agent", "  chat model-x", "  execute_tool task", *INNER, "  chat model-x"]
    agent = story.one("invoke_agent explore")
    assert ended.context == again.context == agent.context
    assert value(agent, names.SUBAGENT_TOKENS) == 110
    assert value(agent, names.INPUT_TOKENS) == 100
    assert value(story.one("invoke_agent"), names.INPUT_TOKENS) == 200


@pytest.mark.parametrize(("type", "is_orphan"), [("session.resume", True), ("session.shutdown", None)])
def test_an_agent_at_work_is_an_orphan_after_a_crash_and_ends_with_its_session(
    type: str, is_orphan: bool | None
) -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.tell("assistant.turn_start", {"turnId": "0", "parentToolCallId": "call-t"}, agent="a-1")
    story.tell(type)

    agent = story.one("invoke_agent explore")
    assert value(agent, names.ORPHANED) is is_orphan
    assert value(agent, names.ERROR_TYPE) == ("process_crash" if is_orphan else None)


def test_the_end_of_a_hook_belongs_to_the_agent_that_its_start_named() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    hook = {"hookInvocationId": "h", "hookType": "preToolUse", "success": True}
    story.tell("hook.start", {**hook, "input": {"sessionId": "a-1"}})
    story.tell("hook.end", hook)
    story.tell("session.shutdown")

    assert said(story.one("invoke_agent explore")) == ["hook.start", "hook.end"]


def test_an_agent_that_outlives_its_interaction_stays_in_its_trace() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.complete("call-t")
    story.end_turn()
    _finish(story)
    still_open = story.machine.open
    _work(story)
    story.tell("subagent.completed", SPAWNED, agent="a-1")
    late = story.tell("assistant.turn_end", {"turnId": "0"}, agent="a-1")

    assert still_open
    assert not story.machine.open
    assert story.tree() == ["invoke_agent", "  chat model-x", "  execute_tool task", *INNER, "  chat model-x"]
    assert late.context == story.one("invoke_agent explore").context
    assert len({span.context.trace_id for span in story.spans}) == 1


def test_an_agent_that_speaks_before_it_is_said_to_have_started() -> None:
    story = _spawned()
    _work(story)
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.tell("subagent.completed", SPAWNED, agent="a-1")
    story.complete("call-t")
    story.end_turn()
    _finish(story)

    assert story.tree() == ["invoke_agent", "  chat model-x", "  execute_tool task", *INNER, "  chat model-x"]
    assert value(story.one("invoke_agent explore"), names.AGENT_DESCRIPTION) == "Looks."


def test_an_agent_of_an_agent_is_below_the_inner_tool() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.start("call-u", "task", agent="a-1", parentToolCallId="call-t")
    story.tell("subagent.started", {"toolCallId": "call-u", "agentName": "inner"}, agent="a-2")
    story.start("call-v", "view", agent="a-2", parentToolCallId="call-u")
    story.complete("call-v", agent="a-2")
    story.tell("subagent.completed", {"toolCallId": "call-u"}, agent="a-2")
    story.complete("call-u", agent="a-1")
    story.tell("subagent.completed", {"toolCallId": "call-t"}, agent="a-1")
    story.complete("call-t")
    story.tell("session.shutdown")

    assert story.tree() == [
        "invoke_agent", "  chat model-x", "  execute_tool task", "    invoke_agent explore", "      execute_tool task",
        "        invoke_agent inner", "          execute_tool view",
    ]  # fmt: skip


def test_an_agent_that_failed_did_not_fail_the_interaction() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.tell("session.error", {"errorType": "query", "message": "400"}, agent="a-1")
    story.tell("subagent.failed", {"toolCallId": "call-t", "error": "400"}, agent="a-1")
    story.complete("call-t")
    story.end_turn()
    _finish(story)

    assert story.tree() == [
        "invoke_agent", "  chat model-x", "  execute_tool task", "    invoke_agent explore ! query", "  chat model-x",
    ]  # fmt: skip
    assert [event.name for event in story.one("invoke_agent explore").events] == [names.EXCEPTION]


def test_an_agent_that_failed_without_an_error_of_its_own_says_so() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.tell("subagent.failed", {"toolCallId": "call-t", "error": "400"}, agent="a-1")

    [failed] = story.one("invoke_agent explore").events
    assert failed.attributes == {names.EXCEPTION_TYPE: "SubagentError", names.EXCEPTION_MESSAGE: "400"}


def test_an_agent_that_is_spoken_to_again_begins_again() -> None:
    story = _spawned()
    story.tell("subagent.started", SPAWNED, agent="a-1")
    _work(story)
    story.tell("subagent.completed", SPAWNED, agent="a-1")
    story.tell("user.message", {"source": "agent-x", "delivery": "idle"}, agent="a-1")
    story.tell("assistant.turn_start", {"turnId": "0"}, agent="a-1")
    story.answer(agent="a-1")
    story.end_turn(agent="a-1")

    agents = [span for span in story.spans if span.target == "explore"]
    assert [agent.parent_id for agent in agents] == [agents[0].parent_id] * 2
    assert agents[0].context != agents[1].context


def test_agents_with_the_same_call_ids_keep_their_own_tools() -> None:
    story = _spawned()
    story.start("call-s", "task")
    story.tell("subagent.started", SPAWNED, agent="a-1")
    story.tell("subagent.started", {"toolCallId": "call-s", "agentName": "other"}, agent="a-2")
    story.start("same", "view", agent="a-1")
    story.start("same", "edit", agent="a-2")
    story.complete("same", agent="a-2")
    edited = story.spans[-1].target
    story.complete("same", agent="a-1")

    assert [edited, story.spans[-1].target] == ["edit", "view"]


def test_agents_of_cli_1_0_48_have_no_turns_and_are_called_like_their_tool() -> None:
    def tell(story: Story) -> list[str]:
        story.ask()
        message = {"model": "model-x", "outputTokens": 10, "toolRequests": [{"toolCallId": "call-t"}]}
        story.tell("assistant.message", message)
        story.start("call-t", "task")
        story.complete("call-t")
        story.end_turn()
        story.tell("assistant.turn_start", {"turnId": "1"})
        story.tell("subagent.started", {"toolCallId": "call-t", "agentName": "explore"}, agent="call-t")
        inner = {"parentToolCallId": "call-t", "model": "model-x", "outputTokens": 5, "toolRequests": [{}]}
        story.tell("assistant.message", inner, agent="call-t")
        story.start("call-i", "view", agent="call-t")
        story.complete("call-i", agent="call-t")
        story.tell("assistant.message", {**inner, "toolRequests": []}, agent="call-t")
        story.tell("subagent.completed", {"toolCallId": "call-t"}, agent="call-t")
        story.tell("assistant.message", {**message, "toolRequests": []})
        story.end_turn()
        return story.tree()

    above = ["invoke_agent", "  chat model-x", "  execute_tool task", "    invoke_agent explore"]
    chats = ["      chat model-x", "      execute_tool view", "      chat model-x"]
    assert sorted(tell(Story())) == sorted([*above, *chats, "  chat model-x"])
    assert sorted(tell(Story(semconv="legacy"))) == sorted([*above, *chats[:2], "  chat model-x"])
