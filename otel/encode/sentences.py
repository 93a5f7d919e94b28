"""What a person would say of an event, in a sentence that a content level allows: the line of a log record."""

from typing import Final

from otel import names
from otel.model import LogRecord
from otel.names import Attribute, Content, Value

_TEXT_LENGTH_MAX: Final = 120
_OUTCOMES: Final = {True: ": ok", False: ": failed"}
_END: Final = ((": exit %s", names.EXIT_CODE), (": %s", names.ERROR_CODE), (" after %s s", names.TOOK))
_TOOL: Final = (" %s", names.TOOL_NAME)
_AGENT: Final = (" %s", names.AGENT_NAME)
_HOOK: Final = (" %s", names.HOOK_TYPE)
_FREED: Final = (", tokens freed: %s", names.TOKENS_REMOVED)

# What a sentence begins with, and what is added for each attribute that the event has; `SUCCESS` is said in words.
_SENTENCES: Final[dict[str, tuple[str, tuple[tuple[str, Attribute], ...]]]] = {
    "session.start": ("session begins", ()),
    "session.resume": ("session is resumed", ((", events before: %s", names.RESUMED_EVENTS),)),
    "session.shutdown": (
        "session ends",
        (
            (": %s", names.SHUTDOWN_TYPE),
            (", premium requests: %s", names.PREMIUM_REQUESTS),
            (", lines added: %s", names.LINES_ADDED),
            (", removed: %s", names.LINES_REMOVED),
        ),
    ),
    "session.error": (
        "error",
        ((": %s", names.COPILOT_ERROR_TYPE), (", status %s", names.ERROR_STATUS_CODE)),
    ),
    "session.warning": ("warning", ((": %s", names.CATEGORY),)),
    "session.info": ("information", ((": %s", names.CATEGORY),)),
    "session.model_change": ("model changes", ((" from %s", names.PREVIOUS_MODEL), (" to %s", names.NEW_MODEL))),
    "session.mode_changed": ("mode changes", ((" from %s", names.PREVIOUS_MODE), (" to %s", names.NEW_MODE))),
    "session.compaction_start": ("compaction begins", ((", tokens: %s", names.CURRENT_TOKENS),)),
    "session.compaction_complete": ("compaction ends", (("%s", names.SUCCESS), _FREED)),
    "session.truncation": ("conversation truncated", (_FREED,)),
    "session.usage_record": (
        "model call",
        (
            (" of %s", names.REQUEST_MODEL),
            (", tokens read: %s", names.INPUT_TOKENS),
            (", from cache: %s", names.CACHE_READ_TOKENS),
            (", written: %s", names.OUTPUT_TOKENS),
        ),
    ),
    "session.context_changed": ("context changes", ((": %s", names.REPOSITORY), (", branch %s", names.BRANCH))),
    "user.message": ("message", ((" in mode %s", names.USER_MESSAGE_MODE), (" from %s", names.USER_MESSAGE_SOURCE))),
    "system.message": ("system prompt", ()),
    "assistant.message": ("answer", ((" of %s", names.REQUEST_MODEL),)),
    "assistant.turn_start": ("turn begins", ((": %s", names.TURN_ID),)),
    "assistant.turn_end": ("turn ends", ((": %s", names.TURN_ID),)),
    "abort": ("turn is aborted", ((": %s", names.ABORT_REASON),)),
    "tool.execution_start": ("tool starts:", (_TOOL,)),
    "tool.execution_complete": ("tool", (_TOOL, ("%s", names.SUCCESS), *_END)),
    "external_tool.requested": ("external tool is asked", ((": %s", names.EXTERNAL_TOOL_NAME),)),
    "permission.requested": ("permission is asked", ((": %s", names.PERMISSION_KIND),)),
    "permission.completed": ("permission", ((": %s", names.PERMISSION_RESULT), (" after %s s", names.TOOK))),
    "hook.start": ("hook starts:", (_HOOK,)),
    "hook.end": ("hook", (_HOOK, ("%s", names.SUCCESS), (" after %s s", names.TOOK))),
    "skill.invoked": ("skill is used", ((": %s", names.SKILL_NAME),)),
    "subagent.started": ("sub-agent starts:", (_AGENT,)),
    "subagent.completed": (
        "sub-agent ends:",
        (_AGENT, (", tool calls: %s", names.SUBAGENT_TOOL_CALLS), (", tokens: %s", names.SUBAGENT_TOKENS)),
    ),
    "subagent.failed": (
        "sub-agent failed:",
        (_AGENT, (", tool calls: %s", names.SUBAGENT_TOOL_CALLS), (", tokens: %s", names.SUBAGENT_TOKENS)),
    ),
    "system.notification": (
        "notification",
        (
            (": %s", names.NOTIFICATION_TYPE),
            (" %s", names.NOTIFICATION_AGENT_TYPE),
            (", %s", names.NOTIFICATION_STATUS),
            (", exit %s", names.NOTIFICATION_EXIT_CODE),
        ),
    ),
    names.EXCEPTION.name: ("failure", ((": %s", names.EXCEPTION_TYPE), (", %s", names.COPILOT_ERROR_TYPE))),
    names.TOOL_EXCEPTION.name: ("tool failure", ((": %s", names.EXCEPTION_TYPE), (", %s", names.ERROR_CODE))),
    names.INFERENCE_DETAILS.name: ("model call in detail", ((" of %s", names.REQUEST_MODEL),)),
    "session.custom_notification": (
        "custom notification",
        ((" from %s", names.CUSTOM_SOURCE), (": %s", names.CUSTOM_NAME)),
    ),
}


# What a content level allows of them; texts of the session are in none.
_ALLOWED: Final = {
    level: {
        event_type: (said, tuple(part for part in parts if part[1].content <= min(level, Content.METADATA)))
        for event_type, (said, parts) in _SENTENCES.items()
    }
    for level in Content
}


def sentence(record: LogRecord, content: Content) -> str:
    """Return one line about the event of a record, without texts of the session and what is above the content level."""
    known = _ALLOWED[content].get(record.event_type)
    if known is None:
        return _cut(record.event_type.replace(".", " ").replace("_", " "))
    said, parts = known
    details = record.details
    if details:
        for words, attribute in parts:
            value = details.get(attribute)
            if value is not None:
                said += words % (value if type(value) is int else _spelt(value))
    return said


def _spelt(value: Value) -> str:
    if value is True or value is False:
        return _OUTCOMES[value]
    if isinstance(value, float):
        return f"{value:.3g}"
    return _cut(str(value))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_LENGTH_MAX else line[: _TEXT_LENGTH_MAX - 1] + "…"
