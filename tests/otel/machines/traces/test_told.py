"""What else events tell: why something failed, what hooks decided, what the model got and thought, where traces are."""

import json

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from otel import instruments, names
from otel.encode.records import request_bytes, writer
from otel.model import Span
from otel.names import Content
from tests.otel.metered import lines, measure, of, totals
from tests.otel.story import Story, value
from tests.parity.oracle import Session, captures
from tests.shared import REAL

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def written(span: Span, content: Content) -> Message:
    body = request_bytes(b"", b"", [writer(content, "cli").span(span)])
    message: Message = TracesData.FromString(body).resource_spans[0].scope_spans[0].spans[0]
    return message


@pytest.mark.parametrize(
    ("content", "said"), [(Content.NONE, ""), (Content.METADATA, "ToolError"), (Content.REDACTED, "It is not there.")]
)
def test_a_failed_span_says_why_as_far_as_the_level_allows(content: Content, said: str) -> None:
    story = Story()
    story.ask()
    story.start("call-1")
    story.complete("call-1", success=False, error={"message": "It is not there.", "code": "failure"})

    status = written(story.one("execute_tool bash bash"), content).status
    assert (status.code, status.message) == (2, said)


def test_errors_of_agents_and_hooks_say_why_and_a_failure_without_words_says_its_type() -> None:
    story = Story()
    story.ask()
    story.tell("hook.start", {"hookInvocationId": "h", "hookType": "preToolUse", "input": {"toolName": "bash"}})
    story.tell("hook.end", {"hookInvocationId": "h", "success": False, "error": {"message": "It fell."}})
    story.tell("session.error", {"errorType": "query", "message": "It is gone."})
    story.end_turn()

    assert story.one("execute_hook preToolUse").failure == "It fell."
    root = story.one("invoke_agent")
    assert (root.failure, value(root, names.ERROR_TYPE)) == ("Session error: It is gone.", "query")
    root.failure = None
    assert written(root, Content.REDACTED).status.message == "query"


def test_a_hook_names_its_tool_and_its_decision() -> None:
    story = Story()
    story.ask()
    story.tell("hook.start", {"hookInvocationId": "h", "hookType": "preToolUse", "input": {"toolName": "bash"}})
    story.tell("hook.end", {"hookInvocationId": "h", "success": True, "output": {"permissionDecision": "deny"}})

    hook = story.one("execute_hook preToolUse")
    assert (value(hook, names.HOOK_TOOL_NAMES), value(hook, names.HOOK_DECISION)) == ('["bash"]', "deny")


@pytest.mark.parametrize("before", [True, False], ids=["before the interaction", "in it"])
def test_the_trace_that_hooks_name_is_linked_once(before: bool) -> None:
    story = Story()
    started = {"hookInvocationId": "h", "hookType": "userPromptSubmitted", "input": {"traceparent": TRACE}}
    if before:
        story.tell("hook.start", started)
    story.ask()
    story.tell("hook.start", started | {"hookInvocationId": "again"})
    story.answer()
    story.end_turn()

    links = [one for one in story.one("invoke_agent").links if one.attributes[names.LINK_TYPE] == "cli_trace"]
    assert [one.context.trace_id.hex() for one in links] == [TRACE[3:35]]


def test_an_orphan_says_that_its_length_is_unknown() -> None:
    story = Story()
    story.ask()
    story.start("call-1")
    story.spans += story.machine.process_died("session_abandoned")

    assert story.tree() == ["invoke_agent ! session_abandoned", "  execute_tool bash bash ! session_abandoned"]
    assert all(value(span, names.DURATION_UNKNOWN) is True for span in story.spans)


def test_texts_are_what_the_model_got_and_what_it_thought() -> None:
    story = Story(content=True)
    story.ask(transformedContent="<now>today</now> Hi.")
    usage = {"model": "m", "apiCallId": "one", "outputTokens": 1}
    story.tell("session.usage_record", {"usage": usage})
    story.tell("assistant.message", {"apiCallId": "one", "content": "Yes.", "reasoningText": "Is it?", "model": "m"})
    story.end_turn()

    root = story.one("invoke_agent")
    given, said = (json.loads(str(value(root, name))) for name in (names.INPUT_MESSAGES, names.OUTPUT_MESSAGES))
    assert given[0]["parts"] == [{"type": "text", "content": "<now>today</now> Hi."}]
    assert said[0]["parts"] == [{"type": "reasoning", "content": "Is it?"}, {"type": "text", "content": "Yes."}]


def _usages(session: Session) -> list[dict[str, float]]:
    found = map(json.loads, session.lines)
    return [one["data"]["usage"] for one in found if one["type"] == "session.usage_record"]


@pytest.mark.parametrize("session", [one for one in captures() if one.version != "1.0.48"], ids=lambda one: one.name)
def test_the_time_of_a_piece_and_the_share_of_the_context_are_those_of_the_records(session: Session) -> None:
    if session.name in ("live_rpc", "notif_rpc"):
        assert REAL.is_dir()  # forks and compactions have records of other sessions
        return
    usages = _usages(session)

    found = totals(measure(session.lines))

    chunks = [one for one in usages if "interTokenLatencyMs" in one]
    told = of(instruments.TIME_PER_CHUNK, found).values()
    assert sum(told) == pytest.approx(sum(one["interTokenLatencyMs"] for one in chunks) / 1000)
    share = of(instruments.CONTEXT_UTILIZATION, found).values()
    assert sum(share) == pytest.approx(sum(one["inputTokens"] / one["maxPromptTokens"] for one in usages))


def test_nothing_is_divided_by_a_context_that_is_not_told() -> None:
    used = {"usage": {"model": "m", "inputTokens": 5, "maxPromptTokens": 0}}

    assert not of(instruments.CONTEXT_UTILIZATION, totals(measure(lines(("session.usage_record", 1.0, used)))))
