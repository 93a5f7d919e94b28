"""A made-up session in which whatever a dashboard asks for happens, most of it bad, and what telemetry makes of it."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from otel.event import read
from otel.machines.logs import record
from otel.machines.metrics.machine import Metering
from otel.machines.traces.machine import Traces
from otel.model import LogRecord, Measurement, Span
from otel.names import Semconv

SESSION: Final = "00000000-0000-4000-8000-000000000000"
_MODEL: Final = "made-up-model"
_CONTEXT: Final = {"repository": "made-up/repository", "branch": "made-up-branch"}


class Told(NamedTuple):
    """The session as spans, log records and measurements, before any content level takes something away."""

    spans: list[Span]
    records: list[LogRecord]
    measurements: list[Measurement]


@cache
def told(semconv: Semconv = "cli") -> Told:
    """What the machines say of the session, whose process dies in the end."""
    traces, metering, found = Traces(SESSION, semconv=semconv), Metering(SESSION, semconv), Told([], [], [])
    for line in _lines():
        event = read(line)
        assert event is not None
        taken = traces.take(event)
        found.spans.extend(taken.spans)
        found.records.append(record(event, taken, line, SESSION))
        found.measurements.extend(metering.measure(event, taken))
    orphans = traces.process_died()
    found.spans.extend(orphans)
    found.measurements.extend(metering.ended(orphans))
    return found


def _lines() -> Iterator[bytes]:
    parent = None
    for number, (kind, data, agent) in enumerate(happenings()):
        event = {
            "type": kind,
            "data": data,
            "id": f"00000000-0000-4000-8000-{number:012x}",
            "timestamp": f"2026-11-18T10:{number // 6:02}:{number % 6 * 10:02}.000Z",
            "parentId": parent,
            **({"agentId": agent} if agent else {}),
        }
        parent = event["id"]
        yield json.dumps(event).encode()


def happenings() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """The type and the data of each event, and the sub-agent that it is of."""
    yield "session.start", {"copilotVersion": "1.0.102", "selectedModel": _MODEL, "context": _CONTEXT}, None
    yield "user.message", {"content": "Go on", "agentMode": "interactive", "interactionId": "one"}, None
    yield "skill.invoked", {"name": "made-up-skill"}, None
    yield from _turn([{"toolCallId": "call-1", "name": "bash"}])
    yield from _hook()
    yield from _denied("call-1")
    yield from _tool("call-2", "bash", {"success": True, "shellExecution": {"exitCode": 5}})
    yield "tool.execution_start", {"toolCallId": "call-3", "toolName": "task", "arguments": {}}, None
    yield from _subagent("call-3")
    yield "tool.execution_complete", {"toolCallId": "call-3", "success": True, "result": {"content": "started"}}, None
    yield "external_tool.requested", {"toolCallId": "call-4", "toolName": "fetch", "requestId": "r"}, None
    yield from _tool("call-4", "fetch", {"success": True})
    yield "assistant.turn_end", {"turnId": "0"}, None
    yield from _told_by_the_system()
    yield from _too_long()
    yield "session.warning", {"warningType": "made_up", "message": "Beware"}, None
    yield "session.error", {"errorType": "quota", "message": "No more", "statusCode": 429}, None
    yield from _turn([])
    yield "assistant.turn_end", {"turnId": "1"}, None
    yield "user.message", {"content": "And this", "agentMode": "autopilot", "interactionId": "two"}, None
    yield "abort", {"reason": "user_initiated"}, None
    shut_down = {"shutdownType": "routine", "codeChanges": {"linesAdded": 3, "linesRemoved": 1, "filesModified": []}}
    yield "session.shutdown", shut_down, None
    yield "session.resume", {"eventCount": 9, "context": _CONTEXT}, None
    yield "user.message", {"content": "Once more", "agentMode": "interactive", "interactionId": "three"}, None
    yield "tool.execution_start", {"toolCallId": "call-5", "toolName": "bash", "arguments": {}}, None


def _turn(requests: list[dict[str, str]]) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    call = f"call-of-{len(requests)}"
    usage = {
        "model": _MODEL, "inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 200, "cacheWriteTokens": 10,
        "reasoningTokens": 7, "maxPromptTokens": 4000, "cost": 3, "duration": 9000, "timeToFirstTokenMs": 400,
        "initiator": "user", "apiCallId": call, "copilotUsage": {"totalNanoAiu": 5_000_000_000},
        "nanoAiu": 5_000_000_000,
    }  # fmt: skip
    yield "assistant.turn_start", {"turnId": str(1 - len(requests)), "interactionId": "one"}, None
    yield "session.usage_record", {"usage": usage}, None
    yield "assistant.message", {"model": _MODEL, "apiCallId": call, "toolRequests": requests}, None


def _hook() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    yield "hook.start", {"hookInvocationId": "h", "hookType": "preToolUse"}, None
    yield "hook.end", {"hookInvocationId": "h", "hookType": "preToolUse", "success": False}, None


def _tool(call: str, name: str, outcome: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    yield "tool.execution_start", {"toolCallId": call, "toolName": name, "arguments": {"command": "made up"}}, None
    yield "tool.execution_complete", {"toolCallId": call, "result": {"content": ""}, **outcome}, None


def _denied(call: str) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    yield "tool.execution_start", {"toolCallId": call, "toolName": "bash", "arguments": {"command": "made up"}}, None
    asked = {"kind": "shell", "toolCallId": call, "toolName": "bash"}
    yield "permission.requested", {"requestId": "p", "permissionRequest": asked}, None
    yield "permission.completed", {"requestId": "p", "result": {"kind": "denied-by-rules"}}, None
    failed = {"success": False, "error": {"code": "denied", "message": "Denied"}}
    yield "tool.execution_complete", {"toolCallId": call, **failed}, None


def _subagent(call: str) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    agent = {"toolCallId": call, "agentName": "explore", "model": _MODEL}
    yield "subagent.started", {**agent, "executionMode": "background"}, "agent-1"
    totals = {"totalToolCalls": 1, "totalTokens": 2100, "durationMs": 20_000}
    yield "subagent.failed", {**agent, **totals, "error": "It failed"}, "agent-1"


def _told_by_the_system() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    kinds = [
        {"type": "shell_completed", "shellId": "shell-1", "exitCode": 5},
        {"type": "agent_completed", "agentId": "agent-1", "agentType": "explore", "status": "failed"},
    ]
    for kind in kinds:
        yield "system.notification", {"content": "", "kind": kind}, None
    yield "session.custom_notification", {"source": "made-up-server", "name": "build", "version": 1}, None


def _too_long() -> Iterator[tuple[str, dict[str, Any], str | None]]:
    yield "session.compaction_start", {"currentTokens": 9000}, None
    yield "session.compaction_complete", {"success": True, "tokensRemoved": 800, "preCompactionTokens": 9000}, None
    yield "session.truncation", {"tokensRemovedDuringTruncation": 70, "tokenLimit": 128_000}, None
