"""Random event streams: shapes that the CLI writes, in any order, with ids that repeat and fields of any type."""

import json
from typing import Any

from hypothesis import strategies as st

_AGENTS = st.sampled_from([None, None, None, "agent-1", "agent-2", "call-1"])
_CALLS = st.sampled_from(["call-1", "call-2", "call-3"])
_NUMBERS = st.one_of(st.integers(-5, 5000), st.floats(allow_nan=False), st.just(10**30), st.just("12"))
_GARBAGE = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=5,
)


def _data(**fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Data with these fields, each of which may be missing."""
    return st.fixed_dictionaries({}, optional=fields)


_TEXT = st.text(max_size=12)
_ID = st.sampled_from(["one", "two"])
_USAGE = _data(
    model=st.just("model-x"), inputTokens=_NUMBERS, outputTokens=_NUMBERS, cacheReadTokens=_NUMBERS, duration=_NUMBERS,
    cost=_NUMBERS, apiCallId=_ID, finishReason=st.just("stop"), timeToFirstTokenMs=_NUMBERS,
)  # fmt: skip
_SHAPES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "session.start": _data(sessionId=_ID, copilotVersion=_TEXT, context=_data(cwd=_TEXT)),
    "session.resume": _data(sessionWasActive=st.booleans(), eventCount=_NUMBERS),
    "session.shutdown": _data(),
    "session.info": _data(infoType=_TEXT, message=_TEXT),
    "session.error": _data(errorType=_TEXT, message=_TEXT, statusCode=_NUMBERS),
    "session.handoff": _data(remoteSessionId=_ID),
    "session.compaction_complete": _data(compactionTokensUsed=_USAGE, success=st.booleans()),
    "session.usage_record": _data(usage=_USAGE),
    "abort": _data(reason=_TEXT),
    "user.message": _data(
        content=_TEXT, delivery=st.sampled_from(["idle", "steering", "queued"]), interactionId=_ID,
        agentMode=st.sampled_from(["interactive", "plan"]),
    ),
    "system.message": _data(content=_TEXT),
    "system.notification": _data(
        content=_TEXT,
        kind=_data(
            type=st.sampled_from(["shell_completed", "workflow_completed", "new"]), exitCode=_NUMBERS, runId=_ID,
            workflowName=_TEXT, elapsedMs=_NUMBERS, status=st.sampled_from(["completed", "error"]),
        ),
    ),
    "assistant.turn_start": _data(turnId=st.just("0"), interactionId=_ID),
    "assistant.turn_end": _data(turnId=st.just("0")),
    "assistant.message": _data(
        model=_TEXT, content=_TEXT, apiCallId=_ID, outputTokens=_NUMBERS, parentToolCallId=_CALLS,
        toolRequests=st.sampled_from([[], [{"toolCallId": "call-1", "name": "bash"}]]),
    ),
    "tool.execution_start": _data(toolCallId=_CALLS, toolName=st.sampled_from(["bash", "task"]), arguments=_GARBAGE),
    "tool.execution_complete": _data(toolCallId=_CALLS, success=st.booleans(), result=_GARBAGE, error=_GARBAGE),
    "tool.user_requested": _data(toolCallId=_CALLS),
    "external_tool.requested": _data(
        toolCallId=_CALLS, toolName=_TEXT, traceparent=st.just("00-" + "ab" * 16 + "-" + "cd" * 8 + "-01")
    ),
    "permission.requested": _data(requestId=_ID, permissionRequest=_data(kind=_TEXT, toolCallId=_CALLS)),
    "permission.completed": _data(requestId=_ID, result=_data(kind=_TEXT)),
    "hook.start": _data(hookInvocationId=_ID, hookType=st.sampled_from(["agentStop", "preToolUse"])),
    "hook.end": _data(hookInvocationId=_ID, success=st.booleans(), error=_GARBAGE),
    "subagent.started": _data(toolCallId=_CALLS, agentName=_TEXT, workflowRunId=_ID),
    "subagent.completed": _data(toolCallId=_CALLS, totalTokens=_NUMBERS),
    "subagent.failed": _data(toolCallId=_CALLS, error=_TEXT),
    "skill.invoked": _data(name=_TEXT, content=_TEXT),
    "made.up": _data(),
}  # fmt: skip


@st.composite
def _event(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(_SHAPES)))
    data: Any = draw(_SHAPES[kind])
    if draw(st.integers(0, 9)) == 0:
        data = draw(st.one_of(_GARBAGE, st.dictionaries(st.sampled_from(sorted(data) or ["x"]), _GARBAGE)))
    return {"type": kind, "data": data, "agentId": draw(_AGENTS)}


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """Lines of a session: mostly events with ids of their own, some repeated, in times that mostly go on."""
    events = draw(st.lists(_event(), max_size=40))
    lines = []
    for number, event in enumerate(events):
        repeated = draw(st.integers(0, 19)) == 0
        event["id"] = f"id-{draw(st.integers(0, number)) if repeated else number}"
        second = max(number + draw(st.integers(-2, 2)), 0)
        event["timestamp"] = f"2026-11-18T10:00:{second % 60:02}.{number % 1000:03}Z"
        if draw(st.integers(0, 19)) == 0:
            event["timestamp"] = draw(_GARBAGE)
        if event["agentId"] is None:
            del event["agentId"]
        lines.append(json.dumps(event).encode())
    return lines
