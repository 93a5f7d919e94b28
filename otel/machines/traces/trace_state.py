"""The active agents of a session, and how an interaction opens and closes."""

from typing import Literal

from otel import names
from otel.event import Event
from otel.machines.traces.agents import AgentSpans
from otel.machines.traces.chats import Chats
from otel.machines.traces.interactions import Interactions
from otel.machines.traces.invocation import Invocation
from otel.machines.traces.span_events import SPAN_EVENTS
from otel.machines.traces.spans import Spans, add_event, finish, orphan
from otel.machines.traces.tools import Tools
from otel.machines.traces.waits import Waits
from otel.model import Context, Span


class TraceState:
    """Everything that is open in one session; finished spans are appended to `done`.

    `active_ns` is when something last happened that belongs to an interaction.
    """

    __slots__ = ("active_ns", "agents", "chats", "done", "interactions", "spans", "tools", "waits")

    def __init__(self, spans: Spans, traceparent: str | None, parent_mode: Literal["link", "child"]) -> None:
        self.done: list[Span] = []
        self.spans = spans
        self.chats = Chats(spans, self.done)
        self.tools = Tools(spans, self.done)
        self.waits = Waits(spans, self.done)
        self.agents = AgentSpans(spans, self.chats, self.tools, self.done)
        self.interactions = Interactions(spans, self.chats, traceparent, parent_mode)
        self.active_ns = 0

    @property
    def open(self) -> bool:
        """Tell whether any span has begun and not ended."""
        return bool(self.interactions.root or self.tools.open or self.waits.open or self.agents.active_count)

    def context_of(self, event: Event) -> Context | None:
        """Return the span of the agent that an event belongs to, None if there is none."""
        agent = self.agent_of(event)
        return agent.span.context if agent is not None else None

    def path_of(self, event: Event) -> tuple[str, ...]:
        """Return the sub-agents from the outermost to the one whose event this is; empty for the main agent."""
        return self.agents.path(event.agent_id) if event.agent_id else ()

    def agent_of(self, event: Event) -> Invocation | None:
        """Return the agent that an event belongs to, None if it is not known."""
        return self.agents.find(event.agent_id) if event.agent_id else self.interactions.root

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
                self.waits.hook_started(early, hook, root.span, then, over=False)
            else:
                self.waits.hook_ended(hook, root.span, then)
        return root

    def close(self, now: int) -> None:
        """End the interaction, if one is open; the open tool calls of an aborted one end with it."""
        root = self.interactions.root
        if root is None:
            return
        if root.aborted is not None:
            self.tools.cancel(None, now, "cancelled")
        span = self.interactions.close(now)
        if span is not None:
            self.done.append(span)

    def end_all(self, now: int, *, crashed: bool) -> None:
        """End everything, inner spans first: the session was shut down, or its process died."""
        for span in self.waits.pop_all() + self.tools.pop_all():
            self.done.append(orphan(span, now) if crashed else finish(span, now, "cancelled"))
        for agent in self.agents.active():
            if crashed:
                self._orphan(agent, now)
            self.agents.end(agent, now)
        root = self.interactions.root
        if root is not None:
            if crashed:
                self._orphan(root, now)
            self.close(now)

    def _orphan(self, agent: Invocation, now: int) -> None:
        agent.span.attributes[names.ORPHANED] = True
        agent.aborted = None
        agent.error = "process_crash"
        chat = agent.chat
        if chat is not None:
            agent.chat = None
            agent.chat_totals.write(chat.attributes, caches=True)
            self.done.append(orphan(chat, now))
