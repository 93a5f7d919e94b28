"""What events say as span events: per type of event, the name and the attributes.

`system.notification` is exactly what the CLI makes of it (COPILOT.md §3): unknown kinds verbatim, the exit code an
integer and only when there is one.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from otel import names
from otel.event import Event, payload
from otel.machines.traces.spans import fill
from otel.model import Attributes
from otel.name_types import EventName
from otel.payloads.events import (
    Began,
    ChangePayload,
    Compaction,
    Custom,
    MessagePayload,
    Notification,
    Skill,
    Subagent,
    TextPayload,
    UserMessage,
    Where,
)

Happening: TypeAlias = "tuple[EventName, Attributes]"


def notification(event: Event, *, content: bool) -> Happening:
    """Return what a system notification says."""
    kind = payload(event, Notification).kind
    attributes = fill(
        {},
        (names.NOTIFICATION_TYPE, kind.type),
        (names.NOTIFICATION_AGENT_ID, kind.agent_id),
        (names.NOTIFICATION_AGENT_TYPE, kind.agent_type),
        (names.NOTIFICATION_STATUS, kind.status),
        (names.NOTIFICATION_SHELL_ID, kind.shell_id),
        (names.NOTIFICATION_EXIT_CODE, kind.exit_code),
    )
    if content:
        fill(attributes, (names.MESSAGE, payload(event, TextPayload).content))
    return names.SYSTEM_NOTIFICATION, attributes


def user_message(said: UserMessage, *, legacy: bool) -> Happening:
    """Return what a message of a person, or of something that speaks in their place, says apart from its text."""
    attributes = fill(
        {},
        (names.USER_MESSAGE_SOURCE, said.source or "user"),
        (names.USER_MESSAGE_MODE, said.agent_mode),
        (names.USER_MESSAGE_INTERACTION, said.interaction_id),
        (names.USER_MESSAGE_TURN, None if legacy else said.turn_id),
    )
    return names.USER_MESSAGE, attributes


def error(event: Event) -> tuple[str, Happening]:
    """Return the type of a `session.error`, and what it says."""
    data = payload(event, MessagePayload)
    attributes: Attributes = {names.EXCEPTION_TYPE: "SessionError"}
    fill(
        attributes,
        (names.EXCEPTION_MESSAGE, data.message),
        (names.COPILOT_ERROR_TYPE, data.error_type),
        (names.ERROR_CODE, data.error_code),
        (names.ERROR_STATUS_CODE, data.status_code),
        (names.ERROR_PROVIDER_CALL_ID, data.provider_call_id),
        (names.ERROR_SERVICE_REQUEST_ID, data.service_request_id),
        (names.URL, data.url),
    )
    return data.error_type or "unknown", (names.EXCEPTION, attributes)


def _truncation(event: Event) -> Happening:
    data = payload(event, Compaction)
    return names.SESSION_TRUNCATION, fill(
        {},
        (names.TOKEN_LIMIT, data.token_limit),
        (names.PRE_TOKENS, data.pre_truncation_tokens_in_messages),
        (names.POST_TOKENS, data.post_truncation_tokens_in_messages),
        (names.PRE_MESSAGES, data.pre_truncation_messages_length),
        (names.POST_MESSAGES, data.post_truncation_messages_length),
        (names.TOKENS_REMOVED, data.tokens_removed_during_truncation),
        (names.MESSAGES_REMOVED, data.messages_removed_during_truncation),
        (names.PERFORMED_BY, data.performed_by),
    )


def _compaction_start(event: Event) -> Happening:
    data = payload(event, Compaction)
    return names.COMPACTION_START, fill(
        {}, (names.TOKEN_LIMIT, data.token_limit), (names.CURRENT_TOKENS, data.current_tokens)
    )


def compaction_complete(data: Compaction) -> Happening:
    """Return what the end of a compaction says."""
    return names.COMPACTION_COMPLETE, fill(
        {},
        (names.SUCCESS, data.success),
        (names.PRE_TOKENS, data.pre_compaction_tokens),
        (names.POST_TOKENS, data.post_compaction_tokens),
        (names.PRE_MESSAGES, data.pre_compaction_messages_length),
        (names.MESSAGES_REMOVED, data.messages_removed),
        (names.TOKENS_REMOVED, data.tokens_removed),
    )


def _context_changed(event: Event) -> Happening:
    data = payload(event, Where)
    return names.CONTEXT_CHANGED, fill(
        {},
        (names.CWD, data.cwd),
        (names.GIT_ROOT, data.git_root),
        (names.REPOSITORY, data.repository),
        (names.BRANCH, data.branch),
    )


def skill(event: Event) -> tuple[str | None, Happening]:
    """Return the name of a skill that was invoked, and what is said of it."""
    data = payload(event, Skill)
    attributes = fill(
        {},
        (names.SKILL_NAME, data.name),
        (names.SKILL_PATH, data.path),
        (names.SKILL_PLUGIN_NAME, data.plugin_name),
        (names.SKILL_PLUGIN_VERSION, data.plugin_version),
        (names.SKILL_SOURCE, data.source),
        (names.SKILL_TRIGGER, data.trigger),
    )
    return data.name, (names.SKILL_INVOKED, attributes)


def _message(name: EventName) -> Callable[[Event], Happening]:
    def says(event: Event) -> Happening:
        data = payload(event, MessagePayload)
        category = data.warning_type or data.info_type
        return name, fill({}, (names.CATEGORY, category), (names.MESSAGE, data.message), (names.URL, data.url))

    return says


def _changed(name: EventName) -> Callable[[Event], Happening]:
    def says(event: Event) -> Happening:
        data = payload(event, ChangePayload)
        return name, fill(
            {},
            (names.PREVIOUS_MODEL, data.previous_model),
            (names.NEW_MODEL, data.new_model),
            (names.PREVIOUS_MODE, data.previous_mode),
            (names.NEW_MODE, data.new_mode),
            (names.PLAN_OPERATION, data.operation),
            (names.TASK_SUCCESS, data.success),
            (names.HANDOFF_SOURCE, data.source_type),
            (names.REMOTE_SESSION_ID, data.remote_session_id),
        )

    return says


def _selected(name: EventName) -> Callable[[Event], Happening]:
    return lambda event: (name, fill({}, (names.AGENT_NAME, payload(event, Subagent).agent_name)))


def _custom(event: Event) -> Happening:
    data = payload(event, Custom)
    return names.CUSTOM_NOTIFICATION, fill(
        {},
        (names.CUSTOM_SOURCE, data.source),
        (names.CUSTOM_NAME, data.name),
        (names.CUSTOM_VERSION, data.version),
        (names.CUSTOM_SUBJECT, bytes(data.subject).decode("utf-8", "replace")),
        (names.CUSTOM_PAYLOAD, bytes(data.payload).decode("utf-8", "replace")),
    )


def _resume(event: Event) -> Happening:
    return names.SESSION_RESUME, fill({}, (names.RESUMED_EVENTS, payload(event, Began).event_count))


# Events that are told on the span that is open, and do nothing else to the spans.
TOLD: Final[dict[str, Callable[[Event], Happening]]] = {
    "session.truncation": _truncation,
    "session.compaction_start": _compaction_start,
    "session.context_changed": _context_changed,
    "session.resume": _resume,
    "session.info": _message(names.SESSION_INFO),
    "session.warning": _message(names.SESSION_WARNING),
    "session.model_change": _changed(names.MODEL_CHANGE),
    "session.mode_changed": _changed(names.MODE_CHANGED),
    "session.plan_changed": _changed(names.PLAN_CHANGED),
    "session.title_changed": _changed(names.TITLE_CHANGED),
    "session.task_complete": _changed(names.TASK_COMPLETE),
    "session.handoff": _changed(names.SESSION_HANDOFF),
    "session.custom_notification": _custom,
    "subagent.selected": _selected(names.SUBAGENT_SELECTED),
    "subagent.deselected": _selected(names.SUBAGENT_DESELECTED),
}
