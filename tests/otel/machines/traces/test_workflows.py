"""Workflows as spans, and what failed as log records: the shape that the GenAI conventions give a session."""

import pytest

from otel import names
from otel.model import Status
from tests.otel.story import Story, said, value

SPAWNED = {"toolCallId": "call-w", "agentName": "explore", "workflowRunId": "run-1"}


def _run(story: Story) -> None:
    """A workflow with two agents begins."""
    story.ask()
    story.answer("call-w")
    story.start("call-w", "run_dynamic_workflow")
    for agent in ("a-1", "a-2"):
        story.tell("subagent.started", SPAWNED, agent=agent)
        story.tell("assistant.turn_start", {"turnId": "0"}, agent=agent)
        story.answer(agent=agent)
        story.end_turn(agent=agent)
        story.tell("subagent.completed", SPAWNED, agent=agent)
    story.complete("call-w")


def _completed(story: Story, **more: object) -> None:
    kind = {"type": "workflow_completed", "runId": "run-1", "workflowName": "review", "status": "completed", **more}
    story.tell("system.notification", {"kind": kind})


def _finish(story: Story) -> None:
    story.tell("assistant.turn_start", {"turnId": "1"})
    story.answer()
    story.end_turn()


def test_the_agents_of_a_run_are_below_its_workflow() -> None:
    story = Story(semconv="latest")
    _run(story)
    _completed(story)
    _finish(story)

    agents = ["        invoke_agent explore", "          chat model-x"] * 2
    tree = [
        line.replace("      invoke_workflow", "    invoke_workflow") for line in story.tree() if "chat" not in line[:8]
    ]
    workflow = ["    invoke_workflow review", *(line.removeprefix("  ") for line in agents)]
    assert tree == ["invoke_agent", "  execute_tool run_dynamic_workflow", *workflow]
    assert value(story.one("invoke_workflow review"), names.WORKFLOW_NAME) == "review"


def test_the_cli_has_no_workflows() -> None:
    story = Story(semconv="cli")
    _run(story)
    _completed(story)
    story.ask("second", agentMode="plan")
    _finish(story)

    assert not [line for line in story.tree() if "workflow " in line or "invoke_workflow" in line]


def test_a_run_without_agents_took_as_long_as_it_says_and_failed_as_it_says() -> None:
    story = Story(semconv="latest")
    story.ask()
    story.now_ms += 5_000
    _completed(story, status="halted", elapsedMs=2_000)

    span = story.one("invoke_workflow review")
    assert span.end_ns - span.start_ns == 2_000_000_000
    assert (span.status, value(span, names.ERROR_TYPE)) == (Status.ERROR, "halted")


def test_a_run_that_nothing_ended_ends_with_the_process() -> None:
    story = Story(semconv="latest")
    _run(story)

    died = story.machine.process_died()

    [span] = [one for one in died if one.operation == names.INVOKE_WORKFLOW]
    assert value(span, names.ORPHANED) is True
    assert not story.machine.open


@pytest.mark.parametrize(
    ("name", "message"), [("plan", {"agentMode": "plan"}), ("fleet", {"content": "Fleet deployed: look at all files"})]
)
def test_a_plan_or_a_fleet_is_a_workflow_around_its_interaction(name: str, message: dict[str, str]) -> None:
    story = Story(semconv="latest")
    story.ask(**message)
    story.answer()
    story.end_turn()

    assert story.tree() == [f"invoke_workflow {name}", "  invoke_agent", "    chat model-x"]
    workflow, root = story.one(f"invoke_workflow {name}"), story.one("invoke_agent")
    assert (workflow.start_ns, workflow.end_ns) == (root.start_ns, root.end_ns)
    assert workflow.context.trace_id == root.context.trace_id


def test_the_root_has_nothing_that_is_for_remote_agents_only() -> None:
    story = Story(semconv="latest")
    story.tell("session.start", {"copilotVersion": "1.0.102", "selectedModel": "m"})
    _run(story)
    _completed(story)
    _finish(story)

    for span in story.spans:
        if span.operation == names.INVOKE_AGENT:
            keys = {key for name in span.attributes for key in name.spellings("latest")}
            assert not keys & {"gen_ai.agent.id", "gen_ai.agent.version", "gen_ai.provider.name"}
            assert "gen_ai.conversation.id" in keys


def test_what_failed_is_told_and_not_on_the_span() -> None:
    told = {}
    for semconv in ("cli", "latest"):
        story = Story(semconv="latest" if semconv == "latest" else "cli")
        story.ask()
        story.answer("call")
        story.start("call")
        ended = story.complete("call", success=False, error={"code": "denied", "message": "no"})
        failed = story.tell("session.error", {"errorType": "query", "message": "lost"})
        story.end_turn()
        told[semconv] = [(at, one.name.name) for result in (ended, failed) for at, one in result.told]
        on_spans = [name for span in story.spans for name in said(span) if name.endswith("exception")]
        assert bool(on_spans) == (semconv == "cli")
        tool, root = story.one("execute_tool bash bash"), story.one("invoke_agent")

    assert told["cli"] == []
    assert told["latest"] == [
        (tool.context, "gen_ai.execute_tool.exception"),
        (root.context, "gen_ai.client.operation.exception"),
    ]


def test_a_call_of_a_tool_of_a_server_names_the_method() -> None:
    for semconv, expected in (("cli", ()), ("latest", ("mcp.method.name",))):
        story = Story(semconv="latest" if semconv == "latest" else "cli")
        story.ask()
        story.start("call", "github-issues", mcpServerName="github", mcpToolName="issues")
        story.complete("call")

        [span] = [one for one in story.spans if one.operation == names.EXECUTE_TOOL]
        assert value(span, names.MCP_METHOD) == "tools/call"
        assert names.MCP_METHOD.spellings(story.machine.spans.semconv) == expected
