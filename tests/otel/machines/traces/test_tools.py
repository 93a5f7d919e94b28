"""Tools, permissions, hooks and external tools as spans, and the shape of CLI 1.0.48."""

import pytest

from otel import names
from otel.machines.traces.tools import OPEN_MAX, REMEMBERED_MAX
from otel.model import Context, Kind, Status
from tests.otel.story import Story, said, value


def _asked(story: Story | None = None) -> Story:
    story = story or Story()
    story.ask()
    story.answer("call-1")
    return story


def test_a_failed_tool_says_why() -> None:
    story = _asked()
    story.start("call-1", "view")
    story.complete("call-1", success=False, error={"message": "No such file.", "code": "failure"})

    tool = story.one("execute_tool view")
    assert (tool.status, value(tool, names.ERROR_TYPE)) == (Status.ERROR, "ToolError")
    assert tool.events[0].attributes == {
        names.EXCEPTION_TYPE: "ToolError", names.EXCEPTION_MESSAGE: "No such file.", names.ERROR_CODE: "failure",
    }  # fmt: skip


def test_a_shell_of_cli_1_0_48_tells_its_exit_code_in_its_last_line() -> None:
    story = _asked()
    story.start("call-1")
    story.complete("call-1", result={"content": "<exited with exit code 9>\n<exited with exit code 3>"})

    assert value(story.one("execute_tool bash bash"), names.EXIT_CODE) == 3


def test_a_shell_that_says_no_exit_code_has_none() -> None:
    story = _asked()
    story.start("call-1")
    story.complete("call-1", result={"content": "<exited with exit code >"})

    assert value(story.one("execute_tool bash bash"), names.EXIT_CODE) is None


@pytest.mark.parametrize(("detach", "program", "path"), [(False, "bash", "/bin/bash"), (True, "sh", None)])
def test_a_detached_shell_is_run_by_another_program_whose_path_is_not_known(
    detach: bool, program: str, path: str | None
) -> None:
    story = _asked()
    story.start("call-1", arguments={"command": "x", "detach": detach})
    story.complete("call-1")

    shell = story.one(f"execute_tool bash {program}")
    assert (value(shell, names.EXECUTABLE_NAME), value(shell, names.EXECUTABLE_PATH)) == (program, path)


def test_a_tool_of_an_mcp_server_hides_the_name_of_the_server() -> None:
    story = _asked()
    story.start("call-1", "gh-list", mcpServerName="github-mcp-server", mcpToolName="list")
    story.complete("call-1")

    tool = story.one("execute_tool gh-list")
    assert value(tool, names.TOOL_TYPE) == "extension"
    assert value(tool, names.MCP_TOOL_NAME) == "list"
    assert str(value(tool, names.MCP_SERVER_HASH)).startswith("4c96a3dc55eb446a")


def test_a_tool_that_a_person_asked_for_says_so_in_either_order() -> None:
    story = _asked()
    story.tell("tool.user_requested", {"toolCallId": "call-1"})
    story.start("call-1", "view")
    story.complete("call-1")
    story.start("call-2", "edit")
    story.tell("tool.user_requested", {"toolCallId": "call-2"})
    story.complete("call-2")

    assert value(story.one("execute_tool view"), names.TOOL_USER_REQUESTED) is True
    assert value(story.one("execute_tool edit"), names.TOOL_USER_REQUESTED) is True


def test_a_permission_is_below_the_tool_that_needs_it() -> None:
    story = _asked()
    request = {"kind": "shell", "toolCallId": "call-1"}
    story.start("call-1")
    asked = story.tell("permission.requested", {"requestId": "r", "permissionRequest": request})
    story.tell("permission.completed", {"requestId": "r", "result": {"kind": "approved"}}, after=700)
    story.complete("call-1")
    story.tell("permission.requested", {"requestId": "s", "permissionRequest": {"kind": "url"}})
    story.tell("permission.completed", {"requestId": "s", "result": {"kind": "denied"}})
    story.tell("session.shutdown")

    assert story.tree() == [
        "invoke_agent", "  chat model-x", "  execute_tool bash bash", "    permission", "  permission",
    ]  # fmt: skip
    first, second = [span for span in story.spans if span.operation == "permission"]
    assert asked.context == first.context
    assert first.end_ns - first.start_ns == 700_000_000
    assert [value(span, names.PERMISSION_RESULT) for span in (first, second)] == ["approved", "denied"]


def test_an_external_tool_lasts_as_long_as_its_tool_and_knows_the_trace_of_the_cli() -> None:
    story = _asked()
    outside = Context(b"\x0a" * 16, b"\x0b" * 8)
    story.start("call-1", "mine")
    asked = {"toolCallId": "call-1", "toolName": "mine", "traceparent": f"00-{'0a' * 16}-{'0b' * 8}-01"}
    story.tell("external_tool.requested", asked)
    story.complete("call-1")

    external = story.one("external_tool mine")
    tool = story.one("execute_tool mine")
    assert (external.parent_id, external.end_ns) == (tool.context.span_id, tool.end_ns)
    assert [(link.context, link.attributes[names.LINK_TYPE]) for link in external.links] == [(outside, "cli_trace")]


def test_hooks_are_spans_and_are_told_before_during_and_after() -> None:
    story = Story()
    begun: list[Context | None] = []

    def hook(kind: str, invocation: str, **end: object) -> None:
        begun.append(story.tell("hook.start", {"hookInvocationId": invocation, "hookType": kind}).context)
        story.tell("hook.end", {"hookInvocationId": invocation, "hookType": kind, "success": True, **end})

    hook("sessionStart", "h-1")
    _asked(story)
    hook("preToolUse", "h-2", success=False, error={"message": "It broke."})
    story.answer()
    story.end_turn()
    hook("agentStop", "h-3")

    root = story.one("invoke_agent")
    assert said(root) == ["hook.start", "hook.end", "user.message", "hook.start", "hook.error"]
    hooks = [span for span in story.spans if span.operation == "execute_hook"]
    assert [span.target for span in hooks] == ["sessionStart", "preToolUse", "agentStop"]
    assert [said(span) for span in hooks] == [[], [], ["hook.start", "hook.end"]]  # the agent's span has ended
    assert {span.parent_id for span in hooks} == {root.context.span_id}
    assert [span.status for span in hooks] == [Status.UNSET, Status.ERROR, Status.UNSET]
    assert begun[1:] == [span.context for span in hooks[1:]]  # the first waits for an interaction
    assert root.events[-1].attributes[names.HOOK_DURATION] == (hooks[1].end_ns - hooks[1].start_ns) / 1e9 == 0.01


@pytest.mark.parametrize(
    ("output", "decision"),
    [({"permissionDecision": "deny"}, "deny"), ({"decision": "block"}, "block"), ({}, None)],
)
def test_a_hook_says_what_it_decided(output: dict[str, str], decision: str | None) -> None:
    story = _asked()
    hook = {"hookInvocationId": "h", "hookType": "preToolUse", "success": True}
    story.tell("hook.start", hook)
    story.tell("hook.end", {**hook, "output": output})

    [span] = [span for span in story.spans if span.operation == "execute_hook"]
    assert value(span, names.HOOK_DECISION) == decision


@pytest.mark.parametrize(
    ("kind", "belongs_to"),
    [("agentStop", 0), ("subagentStop", 0), ("sessionEnd", 0), ("errorOccurred", 0), ("sessionStart", 1)],
)
def test_a_hook_between_two_interactions_belongs_to_the_one_that_it_ends(kind: str, belongs_to: int) -> None:
    story = _asked()
    story.answer()
    story.end_turn()
    for event in ("hook.start", "hook.end"):
        story.tell(event, {"hookInvocationId": "h", "hookType": kind, "success": True})
    story.ask("second")
    story.answer()
    story.end_turn()

    roots = [span.context.span_id for span in story.spans if span.operation == "invoke_agent"]
    [hook] = [span for span in story.spans if span.operation == "execute_hook"]
    assert hook.parent_id == roots[belongs_to]


def test_of_what_persons_asked_for_only_the_latest_is_remembered() -> None:
    story = _asked()
    for number in range(REMEMBERED_MAX + 1):
        story.tell("tool.user_requested", {"toolCallId": f"call {number}"})
    for number in (0, 1):
        story.start(f"call {number}", f"view {number}")
        story.complete(f"call {number}")

    asked = [value(story.one(f"execute_tool view {number}"), names.TOOL_USER_REQUESTED) for number in (0, 1)]
    assert asked == [None, True]


def test_calls_that_never_end_are_bounded() -> None:
    story = _asked()
    for number in range(OPEN_MAX + 5):
        story.start(f"call-{number}", "view")

    tools = [span for span in story.spans if span.operation == "execute_tool"]
    assert [value(tool, names.ERROR_TYPE) for tool in tools] == ["never_completed"] * 5
    assert [value(tool, names.TOOL_CALL_ID) for tool in tools] == [f"call-{number}" for number in range(5)]


def test_the_legacy_shape_is_that_of_cli_1_0_48() -> None:
    story = Story(semconv="legacy")
    story.ask()
    story.tell("assistant.message", {"model": "model-x", "outputTokens": 9, "toolRequests": [{"toolCallId": "call-1"}]})
    story.start("call-1")
    story.tell("system.notification", {"kind": {"type": "shell_completed"}})
    story.complete("call-1")
    story.end_turn()
    story.tell("assistant.turn_start", {"turnId": "1"})
    story.tell("assistant.message", {"model": "model-x", "outputTokens": 1, "toolRequests": []})
    story.end_turn()

    assert story.tree() == ["invoke_agent", "  chat model-x", "  execute_tool bash", "  chat model-x"]
    root, chat = story.one("invoke_agent"), story.spans[1]
    assert root.kind is Kind.CLIENT
    assert said(root) == ["user.message"]
    assert said(chat) == ["system.notification"]
    assert chat.end_ns > story.one("execute_tool bash").end_ns
    assert [value(span, names.OUTPUT_TOKENS) for span in (chat, root)] == [9, 10]
