"""The machine that turns the events of a session into finished spans: one trace per interaction.

It is pure: no clock, no input or output, no randomness. The same events give the same spans with the same ids, whether
they are read live, a month later, or by several processes in turn. The rules:

* `user.message` of the main agent opens an interaction; so does anything else that the main agent does while none is
  open, such as a notification.
* An interaction ends at the end of the turn in which the model's last answer asks for no tools, or in which it was
  aborted or failed; otherwise at its last event, once the next interaction, a shutdown or a resume ends it.
* A resume without a shutdown before it means that the process died: open spans end with the last event.
* An event counts once, by its id.

`semconv="legacy"` also gives spans the shape that CLI 1.0.48 gives them: the root is a client span, a `chat` span
lasts for its whole turn (see `chats`) and carries notifications and hooks. With `semconv="latest"` what failed is told
for log records and not on spans (`TraceResult.told`), and what several agents do for one result is below a workflow.

A handler per event type updates the open spans and returns the context of the event.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from otel import names, payloads
from otel.event import Event, items, payload
from otel.machines.traces import messages
from otel.machines.traces.agents import AgentSpans
from otel.machines.traces.chats import Chats, Invocation
from otel.machines.traces.interactions import Interactions
from otel.machines.traces.span_events import SPAN_EVENTS, span_event, user_message
from otel.machines.traces.spans import Spans, add_event, cut, fill, finish, link, orphan, parse_traceparent
from otel.machines.traces.tools import ABORTED, AFTERWARDS, Tools, Waits
from otel.machines.traces.workflows import Workflows, asked_workflow
from otel.model import Attributes, Context, Span, SpanEvent
from otel.names import Semconv

RECENT_IDS_MIN: Final = 4_096
PROCESS_CRASH: Final = "process_crash"
_HELD: Final = frozenset(("session.resume", "session.handoff"))
_CONTEXT_CHANGES: Final = frozenset(
    ("session.model_change", "session.context_changed", "session.handoff", "subagent.selected", "subagent.deselected")
)


class RecentIds:
    """Remembers the most recent ids: at least `least`, at most twice as many."""

    __slots__ = ("_before", "_latest", "_least")

    def __init__(self, least: int) -> None:
        self._least = least
        self._latest: set[str] = set()
        self._before: set[str] = set()

    def check_and_add(self, identity: str) -> bool:
        """Add an id; return whether it was there already."""
        latest = self._latest
        if identity in latest or identity in self._before:
            return True
        latest.add(identity)
        if len(latest) >= self._least:
            # Half of the ids are dropped at once: finding the oldest id each time would be slow.
            self._before, self._latest = latest, set()
        return False


class TraceResult(Struct, gc=False):
    """The effect of an event: the spans that it finished, and the span that it belongs to.

    `is_duplicate` says that its id occurred before, so it has no effect. `path` has the sub-agents from the outermost
    to the one whose event it is. `version` is that of the CLI which wrote the event, `spans_version` of the one before.
    `told` are events that are log records of their own, each with its place.
    """

    spans: list[Span]
    context: Context | None
    is_duplicate: bool = False
    path: tuple[str, ...] = ()
    version: str | None = None
    spans_version: str | None = None
    told: Sequence[tuple[Context, SpanEvent]] = ()


class Traces:
    """The spans of one session. `take` never raises, whatever the events hold; the memory is bounded.

    `content` adds what only content level `redacted` may send: texts, arguments and results, cut to 64 KiB each.
    `traceparent` is the span that started the session: roots link to it. `active_ns` is when something last happened
    that belongs to an interaction.
    """

    def __init__(
        self, session: str, *, semconv: Semconv = "cli", content: bool = False, traceparent: str | None = None
    ) -> None:
        self.spans = Spans(session, semconv, content)
        self.chats = Chats(self.spans)
        self.tools = Tools(self.spans)
        self.waits = Waits(self.spans)
        self.workflows = Workflows(self.spans)
        self.agents = AgentSpans(self.spans, self.chats, self.tools, self.workflows)
        self.interactions = Interactions(self.spans, self.chats, self.workflows, parse_traceparent(traceparent))
        self.active_ns = 0
        self._last_ns = 0
        self._recent_ids = RecentIds(RECENT_IDS_MIN)

    @property
    def open(self) -> bool:
        """Whether any span has begun and not ended."""
        inner = self.tools.open or self.waits.open or self.workflows.open
        return bool(self.interactions.root or inner or self.agents.active_count)

    def take(self, event: Event) -> TraceResult:
        """Process the next event of the session. A duplicate has no effect."""
        handler = HANDLERS.get(event.type)
        is_duplicate = self._recent_ids.check_and_add(event.id)
        if is_duplicate or handler is None:
            return TraceResult([], self.context_of(event), is_duplicate, self.agents.path(event.agent_id))
        # An event without a readable time happened when the last one did.
        now = self._last_ns = event.time_ns or self._last_ns
        context = handler(self, event, now)
        if event.type not in _PASSIVE:
            self.active_ns = now
        done = self.spans.pop_done() if self.spans.done else []
        result = TraceResult(done, context, False, self.agents.path(event.agent_id))
        if self.spans.told:
            result.told = self.spans.pop_told()
        return result

    def process_died(self, error: str = PROCESS_CRASH) -> list[Span]:
        """End all open spans at the last event, for a reason that no event says. A second call returns nothing."""
        self.end_all(self.active_ns, orphaned_by=error)
        return self.spans.pop_done()

    def agent_of(self, event: Event) -> Invocation | None:
        """Return the agent that an event belongs to, None if it is not known."""
        return self.agents.known.get(event.agent_id) if event.agent_id else self.interactions.root

    def context_of(self, event: Event) -> Context | None:
        """Return the span of the agent that an event belongs to, None if there is none."""
        agent = self.agent_of(event)
        return agent.span.context if agent is not None else None

    def ensure_agent(self, event: Event, now: int) -> Invocation:
        """Return the agent that an event belongs to; start it if it is not active."""
        if event.agent_id:
            return self.agents.ensure_agent(event, now, self.interactions.last)
        return self.interactions.root or self.begin(event, now)

    def begin(self, event: Event, now: int) -> Invocation:
        """Open an interaction; add the events held for it."""
        root = self.interactions.open(event, now)
        for held, then in self.interactions.pop_held():
            add_event(root.span, then, *SPAN_EVENTS[held.type](held))
        for early, hook, then in self.waits.pop_held():
            if early.type == "hook.start":
                self.link_cli_trace(root, hook)
                self.waits.hook_started(early, hook, root.span.context, root.span, then)
            else:
                self.waits.hook_ended(hook, root.span, then)
        return root

    def link_cli_trace(self, root: Invocation, hook: payloads.Hook) -> None:
        """Refer, once, to where the CLI's own telemetry of an interaction is, if a hook says it."""
        place = parse_traceparent(hook.input.traceparent) if hook.input is not None else None
        if place is not None and all(place.trace_id != one.context.trace_id for one in root.span.links):
            root.span.links.append(link(place, "cli_trace"))

    def close(self, now: int) -> None:
        """End the interaction, if one is open; the open tool calls of an aborted one end with it."""
        root = self.interactions.root
        if root is not None:
            if root.aborted is not None:
                self.tools.cancel(None, now, "cancelled")
                root.span.failure = ABORTED
                said: Attributes = {names.EXCEPTION_TYPE: "SessionTurnError", names.EXCEPTION_MESSAGE: ABORTED}
                self.spans.failed(root.span, now, said)
            self.interactions.close(root, now)

    def end_all(self, now: int, *, orphaned_by: str | None = None) -> None:
        """End everything, inner spans first: the session was shut down, or is over without a word."""
        for span in self.waits.pop_all() + self.tools.pop_all():
            self.spans.done.append(orphan(span, now, orphaned_by) if orphaned_by else finish(span, now, "cancelled"))
        for agent in self.agents.active():
            if orphaned_by:
                self._orphan(agent, now, orphaned_by)
            self.agents.end(agent, now)
        for span in self.workflows.pop_all():
            self.spans.done.append(orphan(span, now, orphaned_by) if orphaned_by else finish(span, now, "cancelled"))
        root = self.interactions.root
        if root is not None and orphaned_by:
            self._orphan(root, now, orphaned_by)
        self.close(now)

    def _orphan(self, agent: Invocation, now: int, error: str) -> None:
        agent.span.attributes[names.ORPHANED] = agent.span.attributes[names.DURATION_UNKNOWN] = True
        agent.aborted = None
        agent.error = error
        chat, agent.chat = agent.chat, None
        if chat is not None:
            agent.awaiting = None  # see `Chats.finish_open`
            agent.chat_totals.write(chat.attributes, caches=True)
            self.spans.done.append(orphan(chat, now, error))


def _user_message(state: Traces, event: Event, now: int) -> Context | None:
    said = payload(event, payloads.UserMessage)
    if event.agent_id:
        return state.agents.prompted(event, now, state.interactions.last).span.context
    root = state.interactions.root
    busy = root is not None and (root.in_turn or root.requested_tools)
    if root is None or (said.delivery != "steering" and (said.delivery == "idle" or not busy)):
        state.close(state.active_ns)
        root = state.begin(event, now)
    root.interaction_id = said.interaction_id or root.interaction_id
    if state.spans.genai:
        root.workflow = asked_workflow(event, said) or root.workflow
    add_event(root.span, now, *user_message(said, legacy=state.spans.legacy))
    if state.spans.content:
        fill(root.span.attributes, (names.INPUT_MESSAGES, messages.input_messages(event)))
    return root.span.context


def _system_message(state: Traces, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is not None and not agent.ended and state.spans.content:
        fill(agent.span.attributes, (names.SYSTEM_INSTRUCTIONS, messages.system_instructions(event)))
    return state.context_of(event)


def _notification(state: Traces, event: Event, now: int) -> Context | None:
    agent = state.ensure_agent(event, now)
    span = agent.chat or agent.span
    state.workflows.notified(event, span, now)
    if not agent.ended:
        add_event(span, now, *span_event(event, content=state.spans.content))
    return span.context


def _turn_start(state: Traces, event: Event, now: int) -> Context | None:
    agent = state.ensure_agent(event, now)
    if not agent.ended:
        state.chats.turn_started(agent, event, payload(event, payloads.Turn), now)
    return agent.span.context


def _turn_end(state: Traces, event: Event, now: int) -> Context | None:
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


def _assistant_message(state: Traces, event: Event, now: int) -> Context | None:
    message = payload(event, payloads.AssistantMessage)
    agent = state.ensure_agent(event, now)
    agent.requested_tools = payloads.is_filled(message.tool_requests)
    if message.model is None and message.api_call_id is None and message.output_tokens is None:
        state.tools.called_by_cli(one.tool_call_id for one in items(message.tool_requests, payloads.ToolRequest))
        return agent.span.context
    agent.has_answered = True
    agent.error = None
    return state.chats.answered(agent, event, message, now)


def _usage_record(state: Traces, event: Event, now: int) -> Context | None:
    usage = payload(event, payloads.UsageRecord).usage
    if not event.agent_id:
        # A sub-agent calls in a session of its own.
        source = usage.accounting.source_session_id if usage.accounting is not None else None
        state.interactions.record_call_session(source)
    return state.chats.used(state.agent_of(event), event, usage, now)


def _tool_start(state: Traces, event: Event, now: int) -> Context | None:
    return state.tools.started(event, state.ensure_agent(event, now), now)


def _tool_complete(state: Traces, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is not None and agent.agent is not None and not agent.has_turns and not agent.ended:
        # A sub-agent of CLI 1.0.48 has no turns: its model answers the results of tools.
        agent.awaiting = (event.id, now)
    return state.tools.completed(event, payload(event, payloads.ToolComplete), now) or state.context_of(event)


def _tool_requested(state: Traces, event: Event, now: int) -> Context | None:
    return state.tools.requested(payload(event, payloads.AnyAgentEvent).tool_call_id) or state.context_of(event)


def _external_tool(state: Traces, event: Event, now: int) -> Context | None:
    return state.tools.external_requested(event, state.ensure_agent(event, now).span.context, now)


def _permission_requested(state: Traces, event: Event, now: int) -> Context | None:
    above = state.tools.context_of_permission(event) or state.ensure_agent(event, now).span.context
    return state.waits.permission_requested(event, above, now)


def _permission_completed(state: Traces, event: Event, now: int) -> Context | None:
    return state.waits.permission_completed(event, now) or state.context_of(event)


def _hook_start(state: Traces, event: Event, now: int) -> Context | None:
    hook = payload(event, payloads.Hook)
    state.agents.assign_hook(event, hook)
    agent = state.agent_of(event)
    if agent is not None:
        span = agent.chat or agent.span
        if agent is state.interactions.root:
            state.link_cli_trace(agent, hook)
        return state.waits.hook_started(event, hook, span.context, None if agent.ended else span, now)
    if state.interactions.last is None or hook.hook_type not in AFTERWARDS:
        state.waits.hold_hook(event, hook, now)
        return None
    return state.waits.hook_started(event, hook, state.interactions.last, None, now)


def _hook_end(state: Traces, event: Event, now: int) -> Context | None:
    hook = payload(event, payloads.Hook)
    state.agents.assign_hook(event, hook)
    agent = state.agent_of(event)
    open_span = (agent.chat or agent.span) if agent is not None and not agent.ended else None
    context = state.waits.hook_ended(hook, open_span, now)
    if context is None and agent is None:
        state.waits.hold_hook(event, hook, now)
    return context or state.context_of(event)


def _subagent_started(state: Traces, event: Event, now: int) -> Context | None:
    return state.agents.started(event, now, state.interactions.last).span.context


def _subagent_ended(state: Traces, event: Event, now: int) -> Context | None:
    return state.agents.ended(event, now)


def _skill(state: Traces, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is not None and not agent.ended:
        agent.skill = payload(event, payloads.Skill).name
    return _span_event(state, event, now)


def _compaction_complete(state: Traces, event: Event, now: int) -> Context | None:
    used = payload(event, payloads.Compaction).compaction_tokens_used
    if used is not None:
        state.chats.compacted(state.agent_of(event), event, used, now)
    return _span_event(state, event, now)


def _error_or_abort(state: Traces, event: Event, now: int) -> Context | None:
    agent = state.agent_of(event)
    if agent is None or agent.ended:
        return state.context_of(event)
    said = payload(event, payloads.MessagePayload)
    if event.type == "abort":
        agent.aborted = said.reason or "unknown"
        add_event(agent.span, now, names.SESSION_ABORT, fill({}, (names.ABORT_REASON, agent.aborted)))
    else:
        agent.error = said.error_type or "unknown"
        agent.span.failure = cut(f"Session error: {said.message}") if said.message else None
        state.spans.failed(agent.span, now, SPAN_EVENTS[event.type](event)[1])
    if agent is state.interactions.root and not agent.in_turn:
        state.close(now)
    return agent.span.context


def _began(state: Traces, event: Event, now: int) -> Context | None:
    data = state.interactions.began(event)
    if not (data.session_was_active or data.already_in_use):
        # The session was not shut down and no other process has it open: the previous process died.
        state.end_all(state.active_ns, orphaned_by=PROCESS_CRASH)
    return _span_event(state, event, now) if event.type == "session.resume" else None


def _shutdown(state: Traces, event: Event, now: int) -> Context | None:
    context = state.context_of(event)
    state.end_all(state.active_ns)
    return context


def _info(state: Traces, event: Event, now: int) -> Context | None:
    state.interactions.forked(event)
    return _span_event(state, event, now)


def _span_event(state: Traces, event: Event, now: int) -> Context | None:
    if event.type in _CONTEXT_CHANGES and not event.agent_id:
        state.interactions.changed(event)
    agent = state.agent_of(event)
    if agent is not None and not agent.ended:
        add_event(agent.span, now, *span_event(event, content=state.spans.content))
    elif agent is None and event.type in _HELD:
        state.interactions.hold(event, now)
    return state.context_of(event)


HANDLERS: Final[dict[str, "Callable[[Traces, Event, int], Context | None]"]] = {
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
    "session.error": _error_or_abort,
    "abort": _error_or_abort,
    "session.start": _began,
    "session.resume": _began,
    "session.shutdown": _shutdown,
    "session.info": _info,
}
# Events that do not extend the interaction.
_PASSIVE: Final = frozenset(
    kind for kind in HANDLERS if kind.startswith("session.") and kind not in ("session.usage_record", "session.error")
)
