"""A log record per durable event: where it belongs in a trace, how serious it is, and what it says at each level."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from otel import happenings, names
from otel.event import Event, payload
from otel.model import Attributes, LogRecord
from otel.payloads import AssistantMessage, Compaction, Message, Number, Subagent, Turn, UsageRecord, UserMessage
from otel.projection import TABLE, UNKNOWN, WARN
from otel.spans import fill
from otel.tool_payloads import ExternalTool, Hook, PermissionCompleted, PermissionRequested, ToolComplete, ToolStart
from otel.traces import Taken

BODY_BYTES_MAX: Final = 65_536
_CUT_MARK: Final = "… [cut]".encode()
_Told: TypeAlias = "Callable[[Event], Attributes]"


def record(event: Event, taken: Taken, line: bytes, session: str) -> LogRecord:
    """Return the log record of an event of a session, with the context that the traces gave it.

    `line` is the event as it was redacted; it becomes the body, cut and marked when it is longer than 64 KiB. Which
    attributes are sent, and whether the body is, follows from the content level of the endpoint.
    """
    attributes = _envelope(event, session)
    tell = _TOLD.get(event.type)
    if tell is not None:
        attributes |= tell(event)
    severity = _SEVERITIES.get(event.type)
    if severity is None:
        severity = _judge(event) if event.type in TABLE else UNKNOWN.severity
    if event.type == "session.resume" and any(names.ORPHANED in span.attributes for span in taken.spans):
        severity = WARN  # the process before it did not end by itself
    return LogRecord(event.time_ns, event.id, event.type, severity, taken.context, attributes, _body(line))


def bare(event: Event, taken: Taken, line: bytes, session: str) -> LogRecord:
    """Return what of the log record of an event can be told without looking into the event's data."""
    severity = _SEVERITIES.get(event.type, UNKNOWN.severity)
    return LogRecord(
        event.time_ns, event.id, event.type, severity, taken.context, _envelope(event, session), _body(line)
    )


def _envelope(event: Event, session: str) -> Attributes:
    attributes: Attributes = {
        names.EVENT_TYPE: event.type,
        names.LOG_EVENT_ID: event.id,
        names.CONVERSATION_ID: session,
        names.SESSION_ID: session,
    }
    if event.parent_id is not None:
        attributes[names.EVENT_PARENT_ID] = event.parent_id
    if event.agent_id is not None:
        attributes[names.AGENT_INSTANCE_ID] = event.agent_id
    return attributes


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
        return judge({"success": payload(event, ToolComplete).success})
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


def _usage(event: Event) -> Attributes:
    usage = payload(event, UsageRecord).usage
    return fill(
        {},
        (names.REQUEST_MODEL, usage.model),
        (names.RESPONSE_ID, usage.api_call_id),
        (names.INPUT_TOKENS, usage.input_tokens),
        (names.OUTPUT_TOKENS, usage.output_tokens),
        (names.CACHE_READ_TOKENS, usage.cache_read_tokens),
        (names.CACHE_WRITE_TOKENS, usage.cache_write_tokens),
        (names.REASONING_TOKENS, usage.reasoning_tokens),
        (names.COST, usage.cost),
        (names.INITIATOR, usage.initiator),
    )


def _tool_start(event: Event) -> Attributes:
    data = payload(event, ToolStart)
    return fill({}, (names.TOOL_NAME, data.tool_name), (names.TOOL_CALL_ID, data.tool_call_id))


def _tool_complete(event: Event) -> Attributes:
    data = payload(event, ToolComplete)
    return fill(
        {},
        (names.TOOL_CALL_ID, data.tool_call_id),
        (names.SUCCESS, data.success),
        (names.EXIT_CODE, data.shell_execution.exit_code if data.shell_execution is not None else None),
        (names.ERROR_CODE, data.error.code if data.error is not None else None),
        (names.EXCEPTION_MESSAGE, data.error.message if data.error is not None else None),
    )


def _hook(event: Event) -> Attributes:
    data = payload(event, Hook)
    message = data.error.message if data.error is not None else None
    return fill(
        {},
        (names.HOOK_TYPE, data.hook_type),
        (names.HOOK_INVOCATION_ID, data.hook_invocation_id),
        (names.SUCCESS, data.success),
        (names.HOOK_ERROR_MESSAGE, message),
    )


def _permission_requested(event: Event) -> Attributes:
    asked = payload(event, PermissionRequested).permission_request
    return fill({}, (names.PERMISSION_KIND, asked.kind), (names.TOOL_CALL_ID, asked.tool_call_id))


def _subagent(event: Event) -> Attributes:
    data = payload(event, Subagent)
    return fill(
        {},
        (names.AGENT_NAME, data.agent_name),
        (names.TOOL_CALL_ID, data.tool_call_id),
        (names.SUBAGENT_TOOL_CALLS, data.total_tool_calls),
        (names.SUBAGENT_TOKENS, data.total_tokens),
        (names.SUBAGENT_DURATION, data.duration_ms),
        (names.EXCEPTION_MESSAGE, data.error),
    )


def _turn(event: Event) -> Attributes:
    data = payload(event, Turn)
    return fill({}, (names.TURN_ID, data.turn_id), (names.INTERACTION_ID, data.interaction_id))


def _happening(tell: Callable[[Event], happenings.Happening]) -> _Told:
    return lambda event: tell(event)[1]


_TOLD: Final[Mapping[str, _Told]] = MappingProxyType(
    {
        **{event_type: _happening(tell) for event_type, tell in happenings.TOLD.items()},
        "system.notification": lambda event: happenings.notification(event, content=False)[1],
        "user.message": lambda event: happenings.user_message(payload(event, UserMessage), legacy=False)[1],
        "session.compaction_complete": lambda event: happenings.compaction_complete(payload(event, Compaction))[1],
        "skill.invoked": lambda event: happenings.skill(event)[1][1],
        "session.error": lambda event: happenings.error(event)[1][1],
        "abort": lambda event: fill({}, (names.ABORT_REASON, payload(event, Message).reason)),
        "session.shutdown": _shutdown,
        "session.usage_record": _usage,
        "assistant.message": lambda event: fill({}, (names.REQUEST_MODEL, payload(event, AssistantMessage).model)),
        "assistant.turn_start": _turn,
        "assistant.turn_end": _turn,
        "tool.execution_start": _tool_start,
        "tool.execution_complete": _tool_complete,
        "external_tool.requested": lambda event: fill(
            {}, (names.EXTERNAL_TOOL_NAME, payload(event, ExternalTool).tool_name)
        ),
        "permission.requested": _permission_requested,
        "permission.completed": lambda event: fill(
            {}, (names.PERMISSION_RESULT, payload(event, PermissionCompleted).result.kind)
        ),
        "hook.start": _hook,
        "hook.end": _hook,
        "subagent.started": _subagent,
        "subagent.completed": _subagent,
        "subagent.failed": _subagent,
    }
)
# Of the types whose data does not matter for it.
_SEVERITIES: Final = {event_type: row.severity for event_type, row in TABLE.items() if row.judge is None}
