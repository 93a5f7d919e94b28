"""What each type of event does to the spans of a session: one function per type, which returns where the event was."""

from collections.abc import Callable
from typing import Final, TypeAlias

from otel import names
from otel.event import Event, payload
from otel.machines.traces import messages
from otel.machines.traces.span_events import TOLD, compaction_complete, error, notification, skill, user_message
from otel.machines.traces.spans import fill, happen, parse_traceparent
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

_KEPT: Final = frozenset(("session.resume", "session.handoff"))
_CHANGES: Final = frozenset(
    ("session.model_change", "session.context_changed", "subagent.selected", "subagent.deselected")
)


def _user_message(stage: TraceState, event: Event, now: int) -> Context | None:
    said = payload(event, UserMessage)
    if event.agent_id:
        return stage.agents.spoken_to(event, now, stage.interactions.last).span.context
    root = stage.interactions.root
    busy = root is not None and (root.in_turn or root.asked)
    if root is None or (said.delivery != "steering" and (said.delivery == "idle" or not busy)):
        stage.close(stage.active_ns)
        root = stage.begin(event, now)
    root.interaction_id = said.interaction_id or root.interaction_id
    happen(root.span, now, *user_message(said, legacy=stage.spans.legacy))
    if stage.spans.content:
        fill(root.span.attributes, (names.INPUT_MESSAGES, messages.asked(event)))
    return root.span.context


def _system_message(stage: TraceState, event: Event, now: int) -> Context | None:
    agent = stage.at_work(event)
    if agent is None:
        return None
    if stage.spans.content and not agent.ended:
        fill(agent.span.attributes, (names.SYSTEM_INSTRUCTIONS, messages.instructed(event)))
    return agent.span.context


def _notification(stage: TraceState, event: Event, now: int) -> Context | None:
    agent = stage.speaking(event, now)
    span = agent.chat if agent.chat is not None else agent.span
    if not agent.ended:
        happen(span, now, *notification(event, content=stage.spans.content))
    return span.context


def _turn_start(stage: TraceState, event: Event, now: int) -> Context | None:
    agent = stage.speaking(event, now)
    if not agent.ended:
        stage.chats.turn_started(agent, event, payload(event, Turn), now)
    return agent.span.context


def _turn_end(stage: TraceState, event: Event, now: int) -> Context | None:
    agent = stage.at_work(event)
    if agent is None:
        return None
    stage.chats.turn_ended(agent, now)
    over = agent.aborted is not None or agent.error is not None or (agent.answered and not agent.asked)
    if over and agent is stage.interactions.root:
        stage.close(now)
    elif over and agent.woken and not agent.ended:
        stage.agents.end(agent, now)
    return agent.span.context


def _assistant_message(stage: TraceState, event: Event, now: int) -> Context | None:
    message = payload(event, AssistantMessage)
    agent = stage.speaking(event, now)
    agent.asked = is_filled(message.tool_requests)
    if message.model is None and message.api_call_id is None and message.output_tokens is None:
        # Made up by the CLI, to call a tool on its own account.
        return agent.span.context
    agent.answered = True
    agent.error = None
    return stage.chats.answered(agent, event, message, now)


def _usage_record(stage: TraceState, event: Event, now: int) -> Context | None:
    usage = payload(event, UsageRecord).usage
    if not event.agent_id:
        # A sub-agent calls in a session of its own.
        stage.interactions.called_in(usage.accounting.source_session_id if usage.accounting is not None else None)
    return stage.chats.used(stage.at_work(event), event, usage, now)


def _tool_start(stage: TraceState, event: Event, now: int) -> Context | None:
    start = payload(event, ToolStart)
    return stage.tools.started(event, start, stage.speaking(event, now), now)


def _tool_complete(stage: TraceState, event: Event, now: int) -> Context | None:
    complete = payload(event, ToolComplete)
    agent = stage.at_work(event)
    if agent is not None and agent.agent is not None and not agent.has_turns and not agent.ended:
        # A sub-agent of CLI 1.0.48 has no turns: its model answers the results of tools.
        agent.awaiting = (event.id, now)
    return stage.tools.completed(event, complete, now) or (agent.span.context if agent is not None else None)


def _tool_requested(stage: TraceState, event: Event, now: int) -> Context | None:
    return stage.tools.requested(payload(event, ToolRequested).tool_call_id) or stage.around(event)


def _external_tool(stage: TraceState, event: Event, now: int) -> Context | None:
    asked = payload(event, ExternalTool)
    above = stage.speaking(event, now).span.context
    return stage.tools.handed_out(event, asked, above, parse_traceparent(asked.traceparent), now)


def _permission_requested(stage: TraceState, event: Event, now: int) -> Context | None:
    data = payload(event, PermissionRequested)
    tool = stage.tools.working(data.permission_request.tool_call_id, event.agent_id)
    return stage.waits.asked(event, data, tool or stage.speaking(event, now).span.context, now)


def _permission_completed(stage: TraceState, event: Event, now: int) -> Context | None:
    return stage.waits.decided(payload(event, PermissionCompleted), now) or stage.around(event)


def _hook_start(stage: TraceState, event: Event, now: int) -> Context | None:
    hook = payload(event, Hook)
    stage.agents.given(event, hook)
    agent = stage.at_work(event)
    if agent is not None:
        span = agent.chat if agent.chat is not None else agent.span
        return stage.waits.hook_started(event, hook, span, now, over=agent.ended)
    if stage.interactions.last is None or hook.hook_type not in AFTERWARDS:
        stage.waits.hold(event, hook, now)
        return None
    return stage.waits.hook_after(event, hook, stage.interactions.last, now)


def _hook_end(stage: TraceState, event: Event, now: int) -> Context | None:
    hook = payload(event, Hook)
    stage.agents.given(event, hook)
    agent = stage.at_work(event)
    told = (agent.chat or agent.span) if agent is not None and not agent.ended else None
    context = stage.waits.hook_ended(hook, told, now)
    if context is None and agent is None:
        stage.waits.hold(event, hook, now)
    return context or stage.around(event)


def _subagent_started(stage: TraceState, event: Event, now: int) -> Context | None:
    return stage.agents.started(event, now, stage.interactions.last).span.context


def _subagent_ended(stage: TraceState, event: Event, now: int) -> Context | None:
    return stage.agents.ended(event, now)


def _skill(stage: TraceState, event: Event, now: int) -> Context | None:
    name, told = skill(event)
    agent = stage.at_work(event)
    if agent is None or agent.ended:
        return agent.span.context if agent is not None else None
    agent.skill = name
    if stage.spans.content:
        fill(told[1], (names.SKILL_CONTENT, payload(event, TextPayload).content))
    happen(agent.span, now, *told)
    return agent.span.context


def _compaction_complete(stage: TraceState, event: Event, now: int) -> Context | None:
    data = payload(event, Compaction)
    agent = stage.at_work(event)
    if data.compaction_tokens_used is not None:
        stage.chats.compacted(agent, event, data.compaction_tokens_used, now)
    if agent is not None and not agent.ended:
        happen(agent.span, now, *compaction_complete(data))
    return stage.around(event)


def _error(stage: TraceState, event: Event, now: int) -> Context | None:
    agent = stage.at_work(event)
    if agent is None or agent.ended:
        return stage.around(event)
    agent.error, told = error(event)
    happen(agent.span, now, *told)
    if agent is stage.interactions.root and not agent.in_turn:
        stage.close(now)
    return agent.span.context


def _abort(stage: TraceState, event: Event, now: int) -> Context | None:
    agent = stage.at_work(event)
    if agent is None or agent.ended:
        return stage.around(event)
    agent.aborted = payload(event, MessagePayload).reason or "unknown"
    happen(agent.span, now, names.SESSION_ABORT, fill({}, (names.ABORT_REASON, agent.aborted)))
    if agent is stage.interactions.root and not agent.in_turn:
        stage.close(now)
    return agent.span.context


def _began(stage: TraceState, event: Event, now: int) -> Context | None:
    data = stage.interactions.began(event)
    if not (data.session_was_active or data.already_in_use):
        # Nobody shut the session down, and nobody else has it open: the process before this one died.
        stage.end_all(stage.active_ns, crashed=True)
    return _told(stage, event, now) if event.type == "session.resume" else None


def _shutdown(stage: TraceState, event: Event, now: int) -> Context | None:
    context = stage.around(event)
    stage.end_all(stage.active_ns, crashed=False)
    return context


def _info(stage: TraceState, event: Event, now: int) -> Context | None:
    stage.interactions.forked(event)
    return _told(stage, event, now)


def _told(stage: TraceState, event: Event, now: int) -> Context | None:
    if not event.agent_id:
        if event.type in _CHANGES:
            stage.interactions.changed(event)
        elif event.type == "session.handoff":
            stage.interactions.handed_off(event)
    agent = stage.at_work(event)
    if agent is not None and not agent.ended:
        happen(agent.span, now, *TOLD[event.type](event))
    elif agent is None and event.type in _KEPT:
        stage.interactions.hold(event, now)
    return agent.span.context if agent is not None else None


HANDLERS: Final[dict[str, Handler]] = {
    **dict.fromkeys(TOLD, _told),
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
