"""Sub-agents: each is an invocation below the tool call that spawned it.

Events may come in any order: an agent with events before its `subagent.started` begins with the first of them, and an
ended agent begins anew with its next `user.message`. An agent's id is its own in new CLIs and the id of the
tool call in CLI 1.0.48.
"""

from dataclasses import dataclass, field
from typing import Final

from otel import names
from otel.event import Event, payload
from otel.machines.traces.chats import Chats, Invocation
from otel.machines.traces.spans import Spans, cut, fill
from otel.machines.traces.tools import Tools
from otel.machines.traces.workflows import Workflows
from otel.model import Attributes, Context
from otel.payloads import AnyAgentEvent, Hook, Subagent

KNOWN_MAX: Final = 512
DEPTH_MAX: Final = 32


@dataclass(slots=True)
class AgentSpans:
    """The sub-agents of a session, active or ended."""

    spans: Spans
    chats: Chats
    tools: Tools
    workflows: Workflows
    active_count: int = 0
    known: dict[str, Invocation] = field(default_factory=dict)
    _hooks: dict[str, str] = field(default_factory=dict)

    def assign_hook(self, event: Event, hook: Hook) -> None:
        """Set the agent of hooks that do not name it: a start names the agent's session, an end only the start."""
        invocation = hook.hook_invocation_id or ""
        if event.type == "hook.end":
            event.agent_id = event.agent_id or self._hooks.pop(invocation, None)
        elif not event.agent_id and hook.input is not None and hook.input.session_id in self.known:
            event.agent_id = self._hooks[invocation] = hook.input.session_id
            if len(self._hooks) > KNOWN_MAX:
                del self._hooks[next(iter(self._hooks))]

    def path(self, agent: str | None) -> tuple[str, ...]:
        """Return the sub-agents from the outermost to this one, as far as is known; none for the main agent."""
        if not agent:
            return ()
        known = self.known.get(agent)
        return known.path if known is not None else (cut(agent),)

    def ensure_agent(self, event: Event, now: int, above: Context | None) -> Invocation:
        """Return the agent of an event; an unknown one begins with the event."""
        agent = event.agent_id or ""
        known = self.known.get(agent)
        if known is not None:
            return known
        return self._begin(event, agent, payload(event, AnyAgentEvent).parent_tool_call_id or agent, now, above)

    def prompted(self, event: Event, now: int, above: Context | None) -> Invocation:
        """Return the agent that receives a prompt; an ended one begins anew in the same place."""
        known = self.known.get(event.agent_id or "")
        if known is None or not known.ended:
            return self.ensure_agent(event, now, above)
        above_it = known.path[-2] if len(known.path) > 1 else None
        again = self._begin(event, known.agent or "", known.tool_call_id or "", now, known.span.context, above_it)
        again.resumed = True
        _name(again, known.name)
        return again

    def started(self, event: Event, now: int, above: Context | None) -> Invocation:
        """Process `subagent.started`."""
        data = payload(event, Subagent)
        agent = event.agent_id or data.tool_call_id or ""
        known = self.known.get(agent)
        if known is None or known.ended:
            known = self._begin(event, agent, data.tool_call_id or agent, now, above, data.parent_id)
            known.awaiting = (event.id, now)
            if data.workflow_run_id:
                self.workflows.adopt(known.span, data.workflow_run_id, event, now)
        else:
            self._move(known, data.tool_call_id)
            self._place(known, data.tool_call_id or agent, data.parent_id)
        _name(known, data.agent_name)
        fill(
            known.span.attributes,
            (names.AGENT_DESCRIPTION, data.agent_description),
            (names.REQUEST_MODEL, data.model),
            (names.SUBAGENT_MODE, data.execution_mode),
        )
        if data.agent_name:
            known.span.attributes[names.AGENT_ID] = f"builtin:{cut(data.agent_name)}"
        return known

    def ended(self, event: Event, now: int) -> Context | None:
        """Process `subagent.completed` or `subagent.failed`."""
        data = payload(event, Subagent)
        known = self.known.get(event.agent_id or data.tool_call_id or "")
        if known is None:
            return self.tools.context_of_call(data.tool_call_id)
        if known.ended:
            return known.span.context
        _name(known, data.agent_name)
        fill(
            known.span.attributes,
            (names.SUBAGENT_TOOL_CALLS, data.total_tool_calls),
            (names.SUBAGENT_TOKENS, data.total_tokens),
            (names.SUBAGENT_DURATION, data.duration_ms),
        )
        if event.type == "subagent.failed":
            if known.error is None:
                said: Attributes = {names.EXCEPTION_TYPE: "SubagentError"}
                self.spans.failed(known.span, now, fill(said, (names.EXCEPTION_MESSAGE, data.error)))
            known.error = known.error or "SubagentError"
            known.span.failure = cut(data.error) if data.error else known.span.failure
        else:
            known.error = None
        self.end(known, now)
        return known.span.context

    def end(self, agent: Invocation, now: int) -> None:
        """End an agent and what of it is open."""
        self.chats.finish_open(agent, now)
        fill(agent.span.attributes, (names.PROVIDER, self.chats.provider_of_agent))
        self.spans.done.append(agent.end(now, caches=self.spans.legacy))
        self.active_count -= 1

    def active(self) -> list[Invocation]:
        """Return the active agents, inner ones first."""
        return [agent for agent in reversed(self.known.values()) if not agent.ended]

    def _move(self, agent: Invocation, spawned_by: str | None) -> None:
        """Move an agent that began before its tool call was known below that call."""
        place = self.tools.context_of_call(spawned_by, agent.first_tool)
        if place is not None and place.trace_id == agent.span.context.trace_id:
            agent.span.parent_id = place.span_id
            agent.tool_call_id = spawned_by

    def _place(self, agent: Invocation, spawned_by: str, named: str | None) -> None:
        """Say which agents an agent is below: who made the call is certain, `named` may be the name of a task."""
        own = agent.agent or ""
        parent = self.tools.caller_of(spawned_by) or (named if named in self.known else None)
        above = self.path(parent)
        agent.path = (cut(own),) if cut(own) in above or len(above) >= DEPTH_MAX else (*above, cut(own))
        agent.span.attributes[names.AGENT_PATH] = agent.path

    def _begin(
        self, event: Event, agent: str, spawned_by: str, now: int, above: Context | None, named: str | None = None
    ) -> Invocation:
        parent = self.tools.context_of_call(spawned_by) or above
        span = self.spans.begin(names.INVOKE_AGENT, event.id, now, parent, None)
        fill(span.attributes, (names.PROVIDER, self.chats.provider_of_agent), (names.AGENT_INSTANCE_ID, agent))
        begun = Invocation(span, agent=agent, tool_call_id=spawned_by, first_tool=self.tools.count)
        self._place(begun, spawned_by, named)
        self.known.pop(agent, None)
        self.known[agent] = begun
        self.active_count += 1
        if self.spans.legacy:
            self.chats.open(begun, event.id, now)
        if len(self.known) > KNOWN_MAX:
            oldest = self.known.pop(next(iter(self.known)))
            if not oldest.ended:
                oldest.error = "never_completed"
                self.end(oldest, now)
        return begun


def _name(agent: Invocation, name: str | None) -> None:
    if name:
        agent.name = agent.span.target = cut(name)
        fill(agent.span.attributes, (names.AGENT_NAME, name))
