"""A log record per durable event: its place in a trace, its severity, and its attributes."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from otel import names, payloads
from otel.event import Event, payload
from otel.machines.traces import span_events
from otel.machines.traces.machine import TraceResult
from otel.machines.traces.spans import fill, row
from otel.model import Attributes, Context, LogRecord, Span, SpanEvent
from otel.names import Attribute, EventName
from otel.projection import DEBUG, TABLE, UNKNOWN, WARN

BODY_BYTES_MAX: Final = 65_536
_CUT_MARK: Final = "… [cut]".encode()
_OF_EVERY_RECORD: Final = frozenset(
    (names.CONVERSATION_ID, names.SESSION_ID, names.EVENT_ID, names.AGENT_INSTANCE_ID, names.EVENT_PARENT_ID)
)
T = TypeVar("T", bound=msgspec.Struct)
_ReadAttributes: TypeAlias = "Callable[[Event], Attributes]"


def record(event: Event, result: TraceResult, line: bytes, session: str, *, minimal: bool = False) -> LogRecord:
    """Return the log record of an event of a session, with the context that the traces gave it.

    `line` is the redacted event; it becomes the body, truncated and marked if it is longer than 64 KiB. The content
    level of the endpoint decides which attributes are sent, and whether the body is. A `minimal` record has nothing
    from the event's data.
    """
    convert = _ATTRIBUTES.get(event.type) if not minimal else None
    details = convert(event) if convert is not None else {}
    if result.spans and event.type in _ENDS and not minimal:
        details = {**details, **_ended(event.type, result.spans)}
    if result.path:
        details = {names.AGENT_PATH: result.path, **details}
    severity = _SEVERITIES.get(event.type)
    if severity is None:
        is_readable = event.type in _SEVERITIES_OF_DATA and not minimal
        severity = _severity(event) if is_readable else UNKNOWN.severity
    if event.type == "session.resume" and not minimal and any(names.ORPHANED in one.attributes for one in result.spans):
        severity = WARN  # the process before it crashed
    return LogRecord(
        event.time_ns,
        event.id,
        event.type,
        severity,
        result.context,
        session,
        event.parent_id,
        event.agent_id,
        details,
        _body(line),
    )


def told(event: Event, context: Context, said: SpanEvent, session: str) -> LogRecord:
    """Return the log record of what failed at a place, which an event of a session tells."""
    return _added(event, said.name, WARN, said.time_ns, context, session, said.attributes)


def details(event: Event, call: Span, session: str) -> LogRecord:
    """Return the log record of a call of a model: all that its span says."""
    about = {name: value for name, value in call.attributes.items() if name not in _OF_EVERY_RECORD}
    return _added(event, names.INFERENCE_DETAILS, DEBUG, call.end_ns, call.context, session, about)


def _added(
    event: Event, name: EventName, severity: int, time_ns: int, place: Context, session: str, about: Attributes
) -> LogRecord:
    return LogRecord(time_ns, event.id, name.name, severity, place, session, event.parent_id, event.agent_id, about)


def _ended(event_type: str, spans: list[Span]) -> Attributes:
    """What the span says that the event ended, and the event does not: the name of its tool, and how long it took."""
    span = next((one for one in reversed(spans) if one.operation in _ENDS[event_type]), None)
    if span is None or names.ORPHANED in span.attributes:
        return {}
    seconds = round((span.end_ns - span.start_ns) / 1e9, 3)
    return fill({names.TOOK: seconds}, (names.TOOL_NAME, span.attributes.get(names.TOOL_NAME)))


def _body(line: bytes) -> bytes:
    line = line.rstrip(b"\r\n")
    if len(line) <= BODY_BYTES_MAX:
        return line
    return line[: BODY_BYTES_MAX - len(_CUT_MARK)].decode("utf-8", "ignore").encode() + _CUT_MARK


class _SeverityFields(msgspec.Struct, gc=False):
    """The fields that the severity of an event can depend on, except for tool results."""

    success: bool | None = None
    shutdownType: str | None = None  # noqa: N815  # the wire's own name, which a projection expects
    kind: dict[str, Any] | None = None
    result: dict[str, Any] | None = None


def _severity(event: Event) -> int:
    if event.type == "tool.execution_complete":
        return _COMPLETED[payload(event, payloads.ToolComplete).success]
    return _SEVERITIES_OF_DATA[event.type](msgspec.structs.asdict(payload(event, _SeverityFields)))


def _row(kind: type[T], *fields: tuple[Attribute, str]) -> _ReadAttributes:
    convert = row(kind, *fields)
    return lambda event: convert(payload(event, kind), {})


def _shutdown(event: Event) -> Attributes:
    files = payload(event, payloads.Shutdown).code_changes.files_modified
    return fill(_SHUTDOWN(event), (names.FILES_MODIFIED, len(files) if files is not None else None))


def _of_span_event(convert: Callable[[Event], span_events.SpanEventData]) -> _ReadAttributes:
    return lambda event: convert(event)[1]


_SHUTDOWN: Final = _row(
    payloads.Shutdown,
    (names.SHUTDOWN_TYPE, "shutdown_type"),
    (names.PREMIUM_REQUESTS, "total_premium_requests"),
    (names.API_DURATION, "total_api_duration_ms"),
    (names.LINES_ADDED, "code_changes.lines_added"),
    (names.LINES_REMOVED, "code_changes.lines_removed"),
)
_TURN: Final = _row(payloads.Turn, (names.TURN_ID, "turn_id"), (names.INTERACTION_ID, "interaction_id"))
_HOOK: Final = _row(
    payloads.Hook,
    (names.HOOK_TYPE, "hook_type"),
    (names.HOOK_INVOCATION_ID, "hook_invocation_id"),
    (names.SUCCESS, "success"),
    (names.HOOK_ERROR_MESSAGE, "error.message"),
)
_SUBAGENT: Final = _row(
    payloads.Subagent,
    (names.AGENT_NAME, "agent_name"),
    (names.TOOL_CALL_ID, "tool_call_id"),
    (names.SUBAGENT_TOOL_CALLS, "total_tool_calls"),
    (names.SUBAGENT_TOKENS, "total_tokens"),
    (names.SUBAGENT_DURATION, "duration_ms"),
    (names.EXCEPTION_MESSAGE, "error"),
)
_ATTRIBUTES: Final[Mapping[str, _ReadAttributes]] = MappingProxyType(
    {
        **{event_type: _of_span_event(convert) for event_type, convert in span_events.SPAN_EVENTS.items()},
        "user.message": lambda event: span_events.user_message(payload(event, payloads.UserMessage), legacy=False)[1],
        "abort": _row(payloads.MessagePayload, (names.ABORT_REASON, "reason")),
        "session.shutdown": _shutdown,
        "session.usage_record": _row(
            payloads.UsageRecord,
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
        "assistant.message": _row(payloads.AssistantMessage, (names.REQUEST_MODEL, "model")),
        "assistant.turn_start": _TURN,
        "assistant.turn_end": _TURN,
        "tool.execution_start": _row(
            payloads.ToolStart, (names.TOOL_NAME, "tool_name"), (names.TOOL_CALL_ID, "tool_call_id")
        ),
        "tool.execution_complete": _row(
            payloads.ToolComplete,
            (names.TOOL_CALL_ID, "tool_call_id"),
            (names.SUCCESS, "success"),
            (names.EXIT_CODE, "shell_execution.exit_code"),
            (names.ERROR_CODE, "error.code"),
            (names.EXCEPTION_MESSAGE, "error.message"),
        ),
        "external_tool.requested": _row(payloads.ExternalTool, (names.EXTERNAL_TOOL_NAME, "tool_name")),
        "permission.requested": _row(
            payloads.PermissionRequested,
            (names.PERMISSION_KIND, "permission_request.kind"),
            (names.TOOL_CALL_ID, "permission_request.tool_call_id"),
        ),
        "permission.completed": _row(payloads.PermissionCompleted, (names.PERMISSION_RESULT, "result.kind")),
        "hook.start": _HOOK,
        "hook.end": _HOOK,
        "subagent.started": _SUBAGENT,
        "subagent.completed": _SUBAGENT,
        "subagent.failed": _SUBAGENT,
    }
)
# The operations whose spans an event ends.
_ENDS: Final = MappingProxyType(
    {
        "tool.execution_complete": (names.EXECUTE_TOOL, names.EXTERNAL_TOOL),
        "permission.completed": (names.PERMISSION,),
        "hook.end": (names.EXECUTE_HOOK,),
    }
)
# Severities of the types whose data does not matter, and how those of the others are read from it.
_SEVERITIES: Final = {event_type: row.severity for event_type, row in TABLE.items() if row.severity_of is None}
_SEVERITIES_OF_DATA: Final = {event_type: row.severity_of for event_type, row in TABLE.items() if row.severity_of}
_COMPLETED: Final = {
    success: _SEVERITIES_OF_DATA["tool.execution_complete"]({"success": success}) for success in (True, False, None)
}
