"""Who is at work in a session right now, and how an interaction opens and closes."""

from typing import Literal

from otel import names
from otel.event import Event
from otel.machines.traces.agents import AgentSpans
from otel.machines.traces.chats import Chats
from otel.machines.traces.interactions import Interactions
from otel.machines.traces.invocation import Invocation
from otel.machines.traces.span_events import TOLD
from otel.machines.traces.spans import Spans, finish, happen, orphan
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
        return bool(self.interactions.root or self.tools.open or self.waits.open or self.agents.working)

    def around(self, event: Event) -> Context | None:
        """Return the span of the agent that an event belongs to, or None when nothing is open that it could be."""
        agent = self.at_work(event)
        return agent.span.context if agent is not None else None

    def at_work(self, event: Event) -> Invocation | None:
        """Return what is known of the agent that an event belongs to, without making it begin."""
        return self.agents.find(event.agent_id) if event.agent_id else self.interactions.root

    def speaking(self, event: Event, now: int) -> Invocation:
        """Return the agent that an event belongs to; it begins with the event when it was not at work."""
        if event.agent_id:
            return self.agents.speaking(event, now, self.interactions.last)
        return self.interactions.root or self.begin(event, now)

    def begin(self, event: Event, now: int) -> Invocation:
        """Open an interaction, which is told what was kept for it."""
        root = self.interactions.open(event, now)
        for held, then in self.interactions.held():
            happen(root.span, then, *TOLD[held.type](held))
        for early, hook, then in self.waits.early():
            if early.type == "hook.start":
                self.waits.hook_started(early, hook, root.span, then, over=False)
            else:
                self.waits.hook_ended(hook, root.span, then)
        return root

    def close(self, now: int) -> None:
        """End the interaction, if one is open; what an aborted one has open ends with it."""
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
        for span in self.waits.take_all() + self.tools.take_all():
            self.done.append(orphan(span, now) if crashed else finish(span, now, "cancelled"))
        for agent in self.agents.at_work():
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
