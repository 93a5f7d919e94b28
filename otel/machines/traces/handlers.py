"""One function per event type: it updates the spans of a session and returns the context of the event."""

from collections.abc import Callable
from typing import Final, TypeAlias

from otel import names
from otel.event import Event, payload
from otel.machines.traces import messages
from otel.machines.traces.span_events import SPAN_EVENTS, compaction_complete, error, notification, skill, user_message
from otel.machines.traces.spans import add_event, fill, parse_traceparent
from otel.machines.traces.trace_state import TraceState
from otel.machines.traces.waits import AFTERWARDS
from otel.model import Context
from otel.payloads.events import (
    AssistantMessage,
    Compaction,
    MessagePayload,
    TextPayload,
    Turn,
    UsageRecord,
    UserMessage,
    is_filled,
)
from otel.payloads.tools import (
    ExternalTool,
    Hook,
    PermissionCompleted,
    PermissionRequested,
    ToolComplete,
    ToolRequested,
    ToolStart,
)

Handler: TypeAlias = Callable[[TraceState, Event, int], "Context | None"]

_HELD: Final = frozenset(("session.resume", "session.handoff"))
_CONTEXT_CHANGES: Final = frozenset(
    ("session.model_change", "session.context_changed", "subagent.selected", "subagent.deselected")
)


def _user_message(state: TraceState, event: Event, now: int) -> Context | None:
    said = payload(event, UserMessage)
    if event.agent_id:
        return state.agents.prompted(event, now, state.interactions.last).span.context
    root = state.interactions.root
    busy = root is not None and (root.in_turn or root.requested_tools)
    if root is None or (said.delivery != "steering" and (said.delivery == "idle" or not busy)):
        state.close(state.active_ns)
        root = state.begin(event, now)
    root.interaction_id = said.interaction_id or root.interaction_id
    add_event(root.span, now, *user_message(said, legacy=state.spans.legacy))
    if state.spans.content:
        fill(root.span.attributes, (names.INPUT_MESSAGES, messages.input_messages(event)))
    return root.span.context


def _system_message(state: TraceState, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is None:
        return None
    if state.spans.content and not agent.ended:
        fill(agent.span.attributes, (names.SYSTEM_INSTRUCTIONS, messages.system_instructions(event)))
    return agent.span.context


def _notification(state: TraceState, event: Event, now: int) -> Context | None:
    agent = state.ensure_agent(event, now)
    span = agent.chat if agent.chat is not None else agent.span
    if not agent.ended:
        add_event(span, now, *notification(event, content=state.spans.content))
    return span.context


def _turn_start(state: TraceState, event: Event, now: int) -> Context | None:
    agent = state.ensure_agent(event, now)
    if not agent.ended:
        state.chats.turn_started(agent, event, payload(event, Turn), now)
    return agent.span.context


def _turn_end(state: TraceState, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is None:
        return None
    state.chats.turn_ended(agent, now)
    over = agent.aborted is not None or agent.error is not None or (agent.has_answered and not agent.requested_tools)
    if over and agent is state.interactions.root:
        state.close(now)
    elif over and agent.resumed and not agent.ended:
        state.agents.end(agent, now)
    return agent.span.context


def _assistant_message(state: TraceState, event: Event, now: int) -> Context | None:
    message = payload(event, AssistantMessage)
    agent = state.ensure_agent(event, now)
    agent.requested_tools = is_filled(message.tool_requests)
    if message.model is None and message.api_call_id is None and message.output_tokens is None:
        # Synthetic: the CLI calls a tool on its own account.
        return agent.span.context
    agent.has_answered = True
    agent.error = None
    return state.chats.answered(agent, event, message, now)


def _usage_record(state: TraceState, event: Event, now: int) -> Context | None:
    usage = payload(event, UsageRecord).usage
    if not event.agent_id:
        # A sub-agent calls in a session of its own.
        state.interactions.record_call_session(
            usage.accounting.source_session_id if usage.accounting is not None else None
        )
    return state.chats.used(state.agent_of(event), event, usage, now)


def _tool_start(state: TraceState, event: Event, now: int) -> Context | None:
    start = payload(event, ToolStart)
    return state.tools.started(event, start, state.ensure_agent(event, now), now)


def _tool_complete(state: TraceState, event: Event, now: int) -> Context | None:
    complete = payload(event, ToolComplete)
    agent = state.agent_of(event)
    if agent is not None and agent.agent is not None and not agent.has_turns and not agent.ended:
        # A sub-agent of CLI 1.0.48 has no turns: its model answers the results of tools.
        agent.awaiting = (event.id, now)
    return state.tools.completed(event, complete, now) or (agent.span.context if agent is not None else None)


def _tool_requested(state: TraceState, event: Event, now: int) -> Context | None:
    return state.tools.requested(payload(event, ToolRequested).tool_call_id) or state.context_of(event)


def _external_tool(state: TraceState, event: Event, now: int) -> Context | None:
    requested = payload(event, ExternalTool)
    above = state.ensure_agent(event, now).span.context
    return state.tools.external_requested(event, requested, above, parse_traceparent(requested.traceparent), now)


def _permission_requested(state: TraceState, event: Event, now: int) -> Context | None:
    data = payload(event, PermissionRequested)
    tool = state.tools.context_of_open(data.permission_request.tool_call_id, event.agent_id)
    return state.waits.permission_requested(event, data, tool or state.ensure_agent(event, now).span.context, now)


def _permission_completed(state: TraceState, event: Event, now: int) -> Context | None:
    return state.waits.permission_completed(payload(event, PermissionCompleted), now) or state.context_of(event)


def _hook_start(state: TraceState, event: Event, now: int) -> Context | None:
    hook = payload(event, Hook)
    state.agents.assign_hook(event, hook)
    agent = state.agent_of(event)
    if agent is not None:
        span = agent.chat if agent.chat is not None else agent.span
        return state.waits.hook_started(event, hook, span, now, over=agent.ended)
    if state.interactions.last is None or hook.hook_type not in AFTERWARDS:
        state.waits.hold_hook(event, hook, now)
        return None
    return state.waits.hook_after(event, hook, state.interactions.last, now)


def _hook_end(state: TraceState, event: Event, now: int) -> Context | None:
    hook = payload(event, Hook)
    state.agents.assign_hook(event, hook)
    agent = state.agent_of(event)
    open_span = (agent.chat or agent.span) if agent is not None and not agent.ended else None
    context = state.waits.hook_ended(hook, open_span, now)
    if context is None and agent is None:
        state.waits.hold_hook(event, hook, now)
    return context or state.context_of(event)


def _subagent_started(state: TraceState, event: Event, now: int) -> Context | None:
    return state.agents.started(event, now, state.interactions.last).span.context


def _subagent_ended(state: TraceState, event: Event, now: int) -> Context | None:
    return state.agents.ended(event, now)


def _skill(state: TraceState, event: Event, now: int) -> Context | None:
    name, span_event = skill(event)
    agent = state.agent_of(event)
    if agent is None or agent.ended:
        return agent.span.context if agent is not None else None
    agent.skill = name
    if state.spans.content:
        fill(span_event[1], (names.SKILL_CONTENT, payload(event, TextPayload).content))
    add_event(agent.span, now, *span_event)
    return agent.span.context


def _compaction_complete(state: TraceState, event: Event, now: int) -> Context | None:
    data = payload(event, Compaction)
    agent = state.agent_of(event)
    if data.compaction_tokens_used is not None:
        state.chats.compacted(agent, event, data.compaction_tokens_used, now)
    if agent is not None and not agent.ended:
        add_event(agent.span, now, *compaction_complete(event))
    return state.context_of(event)


def _error(state: TraceState, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is None or agent.ended:
        return state.context_of(event)
    agent.error, span_event = error(event)
    add_event(agent.span, now, *span_event)
    if agent is state.interactions.root and not agent.in_turn:
        state.close(now)
    return agent.span.context


def _abort(state: TraceState, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is None or agent.ended:
        return state.context_of(event)
    agent.aborted = payload(event, MessagePayload).reason or "unknown"
    add_event(agent.span, now, names.SESSION_ABORT, fill({}, (names.ABORT_REASON, agent.aborted)))
    if agent is state.interactions.root and not agent.in_turn:
        state.close(now)
    return agent.span.context


def _began(state: TraceState, event: Event, now: int) -> Context | None:
    data = state.interactions.began(event)
    if not (data.session_was_active or data.already_in_use):
        # The session was not shut down and no other process has it open: the previous process died.
        state.end_all(state.active_ns, crashed=True)
    return _span_event(state, event, now) if event.type == "session.resume" else None


def _shutdown(state: TraceState, event: Event, now: int) -> Context | None:
    context = state.context_of(event)
    state.end_all(state.active_ns, crashed=False)
    return context


def _info(state: TraceState, event: Event, now: int) -> Context | None:
    state.interactions.forked(event)
    return _span_event(state, event, now)


def _span_event(state: TraceState, event: Event, now: int) -> Context | None:
    if not event.agent_id:
        if event.type in _CONTEXT_CHANGES:
            state.interactions.changed(event)
        elif event.type == "session.handoff":
            state.interactions.handed_off(event)
    agent = state.agent_of(event)
    if agent is not None and not agent.ended:
        add_event(agent.span, now, *SPAN_EVENTS[event.type](event))
    elif agent is None and event.type in _HELD:
        state.interactions.hold(event, now)
    return agent.span.context if agent is not None else None


HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(SPAN_EVENTS, _span_event),
    "user.message": _user_message,
    "system.message": _system_message,
    "system.notification": _notification,
    "assistant.turn_start": _turn_start,
    "assistant.turn_end": _turn_end,
    "assistant.message": _assistant_message,
    "session.usage_record": _usage_record,
    "tool.execution_start": _tool_start,
    "tool.execution_complete": _tool_complete,
    "tool.user_requested": _tool_requested,
    "external_tool.requested": _external_tool,
    "permission.requested": _permission_requested,
    "permission.completed": _permission_completed,
    "hook.start": _hook_start,
    "hook.end": _hook_end,
    "subagent.started": _subagent_started,
    "subagent.completed": _subagent_ended,
    "subagent.failed": _subagent_ended,
    "skill.invoked": _skill,
    "session.compaction_complete": _compaction_complete,
    "session.error": _error,
    "abort": _abort,
    "session.start": _began,
    "session.resume": _began,
    "session.shutdown": _shutdown,
    "session.info": _info,
}
