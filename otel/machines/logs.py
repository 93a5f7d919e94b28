"""A log record per durable event: where it belongs in a trace, how serious it is, and what it says at each level."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from otel import names
from otel.event import Event, payload
from otel.machines.traces import span_events
from otel.machines.traces.machine import Taken
from otel.machines.traces.rows import row
from otel.machines.traces.spans import fill
from otel.model import Attributes, LogRecord
from otel.name_types import Attribute
from otel.payloads.events import (
    AssistantMessage,
    Compaction,
    MessagePayload,
    Number,
    Subagent,
    Turn,
    UsageRecord,
    UserMessage,
)
from otel.payloads.tools import ExternalTool, Hook, PermissionCompleted, PermissionRequested, ToolComplete, ToolStart
from otel.projection import TABLE, UNKNOWN, WARN

BODY_BYTES_MAX: Final = 65_536
_CUT_MARK: Final = "… [cut]".encode()
T = TypeVar("T", bound=msgspec.Struct)
_Told: TypeAlias = "Callable[[Event], Attributes]"


def record(event: Event, taken: Taken, line: bytes, session: str) -> LogRecord:
    """Return the log record of an event of a session, with the context that the traces gave it.

    `line` is the event as it was redacted; it becomes the body, cut and marked when it is longer than 64 KiB. Which
    attributes are sent, and whether the body is, follows from the content level of the endpoint.
    """
    tell = _TOLD.get(event.type)
    severity = _SEVERITIES.get(event.type)
    if severity is None:
        severity = _judge(event) if event.type in TABLE else UNKNOWN.severity
    if event.type == "session.resume" and any(names.ORPHANED in span.attributes for span in taken.spans):
        severity = WARN  # the process before it did not end by itself
    return _record(event, taken, line, session, severity, tell(event) if tell is not None else {})


def bare(event: Event, taken: Taken, line: bytes, session: str) -> LogRecord:
    """Return what of the log record of an event can be told without looking into the event's data."""
    return _record(event, taken, line, session, _SEVERITIES.get(event.type, UNKNOWN.severity), {})


def _record(event: Event, taken: Taken, line: bytes, session: str, severity: int, said: Attributes) -> LogRecord:
    if taken.path:
        said = {names.AGENT_PATH: taken.path, **said}
    return LogRecord(
        event.time_ns,
        event.id,
        event.type,
        severity,
        taken.context,
        session,
        event.parent_id,
        event.agent_id,
        said,
        _body(line),
    )


def _body(line: bytes) -> bytes:
    line = line.rstrip(b"\r\n")
    if len(line) <= BODY_BYTES_MAX:
        return line
    return line[: BODY_BYTES_MAX - len(_CUT_MARK)].decode("utf-8", "ignore").encode() + _CUT_MARK


class _Judged(msgspec.Struct, gc=False):
    """What the severity of an event can depend on, tools' results apart."""

    success: bool | None = None
    shutdownType: str | None = None  # noqa: N815  # spelt as in the event, which is what a projection is told
    kind: dict[str, Any] | None = None


class _Decided(msgspec.Struct, gc=False):
    result: dict[str, Any] | None = None


class _Shutdown(msgspec.Struct, gc=False, rename="camel"):
    shutdown_type: str | None = None
    total_premium_requests: Number | None = None
    total_api_duration_ms: Number | None = None
    code_changes: "_CodeChanges | None" = None


class _CodeChanges(msgspec.Struct, gc=False, rename="camel"):
    lines_added: Number | None = None
    lines_removed: Number | None = None
    files_modified: list[msgspec.Raw] | None = None


def _judge(event: Event) -> int:
    judge = TABLE[event.type].judge
    assert judge is not None
    if event.type == "tool.execution_complete":
        return _COMPLETED[payload(event, ToolComplete).success]
    kind = _Decided if event.type == "permission.completed" else _Judged
    return judge(msgspec.structs.asdict(payload(event, kind)))


def _shutdown(event: Event) -> Attributes:
    data = payload(event, _Shutdown)
    changes = data.code_changes or _CodeChanges()
    return fill(
        {},
        (names.SHUTDOWN_TYPE, data.shutdown_type),
        (names.PREMIUM_REQUESTS, data.total_premium_requests),
        (names.API_DURATION, data.total_api_duration_ms),
        (names.LINES_ADDED, changes.lines_added),
        (names.LINES_REMOVED, changes.lines_removed),
        (names.FILES_MODIFIED, len(changes.files_modified) if changes.files_modified is not None else None),
    )


def _row(kind: type[T], *told: tuple[Attribute, str]) -> _Told:
    tell = row(kind, *told)
    return lambda event: tell(payload(event, kind), {})


def _happening(tell: Callable[[Event], span_events.Happening]) -> _Told:
    return lambda event: tell(event)[1]


_TURN: Final = _row(Turn, (names.TURN_ID, "turn_id"), (names.INTERACTION_ID, "interaction_id"))
_HOOK: Final = _row(
    Hook,
    (names.HOOK_TYPE, "hook_type"),
    (names.HOOK_INVOCATION_ID, "hook_invocation_id"),
    (names.SUCCESS, "success"),
    (names.HOOK_ERROR_MESSAGE, "error.message"),
)
_SUBAGENT: Final = _row(
    Subagent,
    (names.AGENT_NAME, "agent_name"),
    (names.TOOL_CALL_ID, "tool_call_id"),
    (names.SUBAGENT_TOOL_CALLS, "total_tool_calls"),
    (names.SUBAGENT_TOKENS, "total_tokens"),
    (names.SUBAGENT_DURATION, "duration_ms"),
    (names.EXCEPTION_MESSAGE, "error"),
)
_TOLD: Final[Mapping[str, _Told]] = MappingProxyType(
    {
        **{event_type: _happening(tell) for event_type, tell in span_events.TOLD.items()},
        "system.notification": lambda event: span_events.notification(event, content=False)[1],
        "user.message": lambda event: span_events.user_message(payload(event, UserMessage), legacy=False)[1],
        "session.compaction_complete": lambda event: span_events.compaction_complete(payload(event, Compaction))[1],
        "skill.invoked": lambda event: span_events.skill(event)[1][1],
        "session.error": lambda event: span_events.error(event)[1][1],
        "abort": _row(MessagePayload, (names.ABORT_REASON, "reason")),
        "session.shutdown": _shutdown,
        "session.usage_record": _row(
            UsageRecord,
            (names.REQUEST_MODEL, "usage.model"),
            (names.RESPONSE_ID, "usage.api_call_id"),
            (names.INPUT_TOKENS, "usage.input_tokens"),
            (names.OUTPUT_TOKENS, "usage.output_tokens"),
            (names.CACHE_READ_TOKENS, "usage.cache_read_tokens"),
            (names.CACHE_WRITE_TOKENS, "usage.cache_write_tokens"),
            (names.REASONING_TOKENS, "usage.reasoning_tokens"),
            (names.COST, "usage.cost"),
            (names.INITIATOR, "usage.initiator"),
        ),
        "assistant.message": _row(AssistantMessage, (names.REQUEST_MODEL, "model")),
        "assistant.turn_start": _TURN,
        "assistant.turn_end": _TURN,
        "tool.execution_start": _row(ToolStart, (names.TOOL_NAME, "tool_name"), (names.TOOL_CALL_ID, "tool_call_id")),
        "tool.execution_complete": _row(
            ToolComplete,
            (names.TOOL_CALL_ID, "tool_call_id"),
            (names.SUCCESS, "success"),
            (names.EXIT_CODE, "shell_execution.exit_code"),
            (names.ERROR_CODE, "error.code"),
            (names.EXCEPTION_MESSAGE, "error.message"),
        ),
        "external_tool.requested": _row(ExternalTool, (names.EXTERNAL_TOOL_NAME, "tool_name")),
        "permission.requested": _row(
            PermissionRequested,
            (names.PERMISSION_KIND, "permission_request.kind"),
            (names.TOOL_CALL_ID, "permission_request.tool_call_id"),
        ),
        "permission.completed": _row(PermissionCompleted, (names.PERMISSION_RESULT, "result.kind")),
        "hook.start": _HOOK,
        "hook.end": _HOOK,
        "subagent.started": _SUBAGENT,
        "subagent.completed": _SUBAGENT,
        "subagent.failed": _SUBAGENT,
    }
)
_COMPLETED: Final = {
    success: judge({"success": success})
    for success in (True, False, None)
    if (judge := TABLE["tool.execution_complete"].judge) is not None
}
# Of the types whose data does not matter for it.
_SEVERITIES: Final = {event_type: row.severity for event_type, row in TABLE.items() if row.judge is None}
