"""What events say as span events: per type of event, the name and the attributes.

`system.notification` is exactly what the CLI makes of it (COPILOT.md §3): unknown kinds verbatim, the exit code an
integer and only when there is one.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from otel import names, payloads
from otel.event import Event, payload
from otel.machines.traces.spans import T, fill, row
from otel.model import Attributes
from otel.names import Attribute, EventName

SpanEventData: TypeAlias = "tuple[EventName, Attributes]"


def user_message(said: payloads.UserMessage, *, legacy: bool) -> SpanEventData:
    """Return what a message of a person, or of something that speaks in their place, says apart from its text."""
    attributes = fill(
        {},
        (names.USER_MESSAGE_SOURCE, said.source or "user"),
        (names.USER_MESSAGE_MODE, said.agent_mode),
        (names.USER_MESSAGE_INTERACTION, said.interaction_id),
        (names.USER_MESSAGE_TURN, None if legacy else said.turn_id),
    )
    return names.USER_MESSAGE, attributes


def _error(event: Event) -> SpanEventData:
    data = payload(event, payloads.MessagePayload)
    attributes: Attributes = {names.EXCEPTION_TYPE: "SessionTurnError"}
    fill(
        attributes,
        (names.EXCEPTION_MESSAGE, f"Session error: {data.message}" if data.message else None),
        (names.MESSAGE, data.message),
        (names.COPILOT_ERROR_TYPE, data.error_type),
        (names.ERROR_CODE, data.error_code),
        (names.ERROR_STATUS_CODE, data.status_code),
        (names.ERROR_PROVIDER_CALL_ID, data.provider_call_id),
        (names.ERROR_SERVICE_REQUEST_ID, data.service_request_id),
        (names.URL, data.url),
    )
    return names.EXCEPTION, attributes


def _from_row(name: EventName, kind: type[T], *fields: tuple[Attribute, str]) -> Callable[[Event], SpanEventData]:
    fill_row = row(kind, *fields)
    return lambda event: (name, fill_row(payload(event, kind), {}))


def _message(name: EventName) -> Callable[[Event], SpanEventData]:
    def convert(event: Event) -> SpanEventData:
        data = payload(event, payloads.MessagePayload)
        category = data.warning_type or data.info_type
        return name, fill({}, (names.CATEGORY, category), (names.MESSAGE, data.message), (names.URL, data.url))

    return convert


def _changed(name: EventName) -> Callable[[Event], SpanEventData]:
    return _from_row(
        name,
        payloads.ChangePayload,
        (names.PREVIOUS_MODEL, "previous_model"),
        (names.NEW_MODEL, "new_model"),
        (names.PREVIOUS_MODE, "previous_mode"),
        (names.NEW_MODE, "new_mode"),
        (names.PLAN_OPERATION, "operation"),
        (names.TASK_SUCCESS, "success"),
        (names.HANDOFF_SOURCE, "source_type"),
        (names.REMOTE_SESSION_ID, "remote_session_id"),
    )


def _custom(event: Event) -> SpanEventData:
    data = payload(event, payloads.Custom)
    return names.CUSTOM_NOTIFICATION, fill(
        {},
        (names.CUSTOM_SOURCE, data.source),
        (names.CUSTOM_NAME, data.name),
        (names.CUSTOM_VERSION, data.version),
        (names.CUSTOM_SUBJECT, bytes(data.subject).decode("utf-8", "replace")),
        (names.CUSTOM_PAYLOAD, bytes(data.payload).decode("utf-8", "replace")),
    )


# Events that add a span event to the open span.
SPAN_EVENTS: Final[dict[str, Callable[[Event], SpanEventData]]] = {
    "session.truncation": _from_row(
        names.SESSION_TRUNCATION,
        payloads.Compaction,
        (names.TOKEN_LIMIT, "token_limit"),
        (names.PRE_TOKENS, "pre_truncation_tokens_in_messages"),
        (names.POST_TOKENS, "post_truncation_tokens_in_messages"),
        (names.PRE_MESSAGES, "pre_truncation_messages_length"),
        (names.POST_MESSAGES, "post_truncation_messages_length"),
        (names.TOKENS_REMOVED, "tokens_removed_during_truncation"),
        (names.MESSAGES_REMOVED, "messages_removed_during_truncation"),
        (names.PERFORMED_BY, "performed_by"),
    ),
    "session.compaction_complete": _from_row(
        names.COMPACTION_COMPLETE,
        payloads.Compaction,
        (names.SUCCESS, "success"),
        (names.PRE_TOKENS, "pre_compaction_tokens"),
        (names.POST_TOKENS, "post_compaction_tokens"),
        (names.PRE_MESSAGES, "pre_compaction_messages_length"),
        (names.MESSAGES_REMOVED, "messages_removed"),
        (names.TOKENS_REMOVED, "tokens_removed"),
    ),
    "session.compaction_start": _from_row(
        names.COMPACTION_START,
        payloads.Compaction,
        (names.TOKEN_LIMIT, "token_limit"),
        (names.CURRENT_TOKENS, "current_tokens"),
    ),
    "session.context_changed": _from_row(
        names.CONTEXT_CHANGED,
        payloads.Where,
        (names.CWD, "cwd"),
        (names.GIT_ROOT, "git_root"),
        (names.REPOSITORY, "repository"),
        (names.BRANCH, "branch"),
    ),
    "session.resume": _from_row(names.SESSION_RESUME, payloads.Began, (names.RESUMED_EVENTS, "event_count")),
    "session.error": _error,
    "session.info": _message(names.SESSION_INFO),
    "session.warning": _message(names.SESSION_WARNING),
    "session.model_change": _changed(names.MODEL_CHANGE),
    "session.mode_changed": _changed(names.MODE_CHANGED),
    "session.plan_changed": _changed(names.PLAN_CHANGED),
    "session.title_changed": _changed(names.TITLE_CHANGED),
    "session.task_complete": _changed(names.TASK_COMPLETE),
    "session.handoff": _changed(names.SESSION_HANDOFF),
    "session.custom_notification": _custom,
    "skill.invoked": _from_row(
        names.SKILL_INVOKED,
        payloads.Skill,
        (names.SKILL_NAME, "name"),
        (names.SKILL_PATH, "path"),
        (names.SKILL_PLUGIN_NAME, "plugin_name"),
        (names.SKILL_PLUGIN_VERSION, "plugin_version"),
        (names.SKILL_SOURCE, "source"),
        (names.SKILL_TRIGGER, "trigger"),
    ),
    "subagent.selected": _from_row(names.SUBAGENT_SELECTED, payloads.Subagent, (names.AGENT_NAME, "agent_name")),
    "subagent.deselected": _from_row(names.SUBAGENT_DESELECTED, payloads.Subagent, (names.AGENT_NAME, "agent_name")),
    "system.notification": _from_row(
        names.SYSTEM_NOTIFICATION,
        payloads.Notification,
        (names.NOTIFICATION_TYPE, "kind.type"),
        (names.NOTIFICATION_AGENT_ID, "kind.agent_id"),
        (names.NOTIFICATION_AGENT_TYPE, "kind.agent_type"),
        (names.NOTIFICATION_STATUS, "kind.status"),
        (names.NOTIFICATION_SHELL_ID, "kind.shell_id"),
        (names.NOTIFICATION_EXIT_CODE, "kind.exit_code"),
    ),
}
_TEXTS: Final = {"system.notification": names.MESSAGE, "skill.invoked": names.SKILL_CONTENT}


def span_event(event: Event, *, content: bool) -> SpanEventData:
    """Return the span event that an event adds, with its text if `content` is wanted."""
    name, attributes = SPAN_EVENTS[event.type](event)
    text = _TEXTS.get(event.type) if content else None
    return name, attributes if text is None else fill(attributes, (text, payload(event, payloads.TextPayload).content))
