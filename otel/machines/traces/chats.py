"""The spans of calls of a model.

A CLI that records usage says how long a call took: the span ends at the record and begins that much earlier. Without
records, it goes from when an answer is awaited to the answer. In the legacy shape it is what CLI 1.0.48 makes of it:
from the start of a turn to its end, tools included, and one for all turns of a sub-agent that has none recorded.
"""

from typing import Final

from otel import names
from otel.event import Event
from otel.machines.traces import messages
from otel.machines.traces.invocation import Invocation, InvocationTotals
from otel.machines.traces.rows import row
from otel.machines.traces.spans import Spans, cut, fill, finish
from otel.model import Context, Kind, Span
from otel.name_types import Content as Level
from otel.payloads.events import AssistantMessage, Turn, Usage

_MILLISECOND: Final = 1_000_000
_DAY_MS: Final = 86_400_000


class Chats:
    """Makes the `chat` spans of a session; finished ones are appended to `done`."""

    __slots__ = ("_done", "_spans", "provider")

    def __init__(self, spans: Spans, done: list[Span]) -> None:
        self._spans = spans
        self._done = done
        self.provider = "github"

    def turn_started(self, agent: Invocation, event: Event, turn: Turn, now: int) -> None:
        """A turn begins: an answer is pending."""
        if agent.chat is None or agent.chat_totals.calls:
            self.finish_open(agent, now)
        agent.in_turn = agent.has_turns = True
        agent.has_answered = agent.requested_tools = False
        agent.turns += 1
        agent.turn_id = turn.turn_id
        agent.interaction_id = turn.interaction_id or agent.interaction_id
        agent.awaiting = (event.id, now)
        if self._spans.legacy and agent.chat is None:
            self.open(agent, event.id, now)

    def open(self, agent: Invocation, opened_by: str, now: int) -> None:
        """Open a span that stays open over several calls (legacy shape)."""
        agent.chat = self._begin(agent.span.context, opened_by, now, None, agent)
        agent.chat_totals = InvocationTotals()

    def used(self, agent: Invocation | None, event: Event, usage: Usage, now: int) -> Context | None:
        """A call was answered and its usage recorded; without an active agent it is a trace of its own."""
        if usage.is_byok and usage.provider_type:
            self.provider = usage.provider_type
        if agent is None:
            span = self._measured(None, event.id, usage, now, None)
            self._done.append(span)
            return span.context
        if usage.api_call_id is not None and usage.api_call_id == agent.response_id:
            return agent.span.context
        agent.totals.add(usage)
        agent.awaiting = None
        agent.response_id = usage.api_call_id
        if usage.finish_reason:
            agent.finish_reasons = (usage.finish_reason,)
        if agent.chat is not None:
            agent.chat_totals.add(usage)
            _describe(agent.chat, usage)
            return agent.chat.context
        if agent.held is not None:
            self._emit_held(agent)
        span = agent.held = self._measured(agent.span.context, event.id, usage, now, agent)
        if agent.ended:
            self._emit_held(agent)
        return span.context

    def answered(self, agent: Invocation, event: Event, message: AssistantMessage, now: int) -> Context | None:
        """The model's answer: ends the pending call, unless a usage record already did."""
        recorded = message.api_call_id is not None and message.api_call_id == agent.response_id
        span = agent.chat or agent.held
        if not recorded and agent.awaiting is not None and agent.held is None:
            usage = Usage(model=message.model, output_tokens=message.output_tokens, api_call_id=message.api_call_id)
            agent.totals.add(usage)
            agent.finish_reasons = ("tool_calls",) if agent.requested_tools else ("stop",)
            if agent.chat is not None:
                agent.chat_totals.add(usage)
                _describe(agent.chat, usage)
            else:
                opened_by, start = agent.awaiting
                span = self._begin(agent.span.context, opened_by, start, message.model, agent)
                _describe(span, usage)
                fill(span.attributes, (names.OUTPUT_TOKENS, message.output_tokens))
                span.attributes[names.FINISH_REASONS] = agent.finish_reasons
                agent.held = finish(span, now)
            agent.response_id = message.api_call_id or agent.response_id
            agent.awaiting = None
        if span is not None and self._spans.content:
            text = messages.output_messages(event)
            fill(span.attributes, (names.OUTPUT_MESSAGES, text))
            if not agent.ended:
                fill(agent.span.attributes, (names.OUTPUT_MESSAGES, text))
        self._emit_held(agent)
        return span.context if span is not None else agent.span.context

    def turn_ended(self, agent: Invocation, now: int) -> None:
        """A turn ends."""
        self.finish_open(agent, now)
        agent.in_turn = False
        agent.awaiting = None

    def finish_open(self, agent: Invocation, now: int) -> None:
        """Finish and emit the held and the open span."""
        if agent.held is not None:
            self._emit_held(agent)
        if agent.chat is not None:
            chat, agent.chat = agent.chat, None
            agent.chat_totals.write(chat.attributes, caches=True)
            if agent.finish_reasons:
                chat.attributes[names.FINISH_REASONS] = agent.finish_reasons
            self._done.append(finish(chat, now))

    def compacted(self, agent: Invocation | None, event: Event, usage: Usage, now: int) -> None:
        """A call that summarised the conversation."""
        parent = agent.span.context if agent is not None else None
        span = self._measured(parent, event.id, usage, now, None)
        span.attributes[names.COMPACTED] = True
        self._done.append(span)

    def _emit_held(self, agent: Invocation) -> None:
        if agent.held is not None:
            self._done.append(agent.held)
            agent.held = None

    def _begin(
        self, parent: Context | None, opened_by: str, start: int, model: str | None, agent: Invocation | None
    ) -> Span:
        span = self._spans.begin(names.CHAT, opened_by, start, parent, model, Level.METADATA, Kind.CLIENT)
        span.attributes[names.PROVIDER] = self.provider
        if agent is not None:
            fill(span.attributes, (names.TURN_ID, agent.turn_id), (names.INTERACTION_ID, agent.interaction_id))
            if agent.agent is not None or agent.name is not None:
                fill(span.attributes, (names.AGENT_INSTANCE_ID, agent.agent), (names.AGENT_NAME, agent.name))
        return span

    def _measured(
        self, parent: Context | None, opened_by: str, usage: Usage, now: int, agent: Invocation | None
    ) -> Span:
        took_ms = min(max(usage.duration or 0, 0), _DAY_MS)
        start = max(now - int(took_ms * _MILLISECOND), 0)
        span = self._begin(parent, opened_by, start, usage.model, agent)
        _describe(span, usage)
        totals = InvocationTotals()
        totals.add(usage)
        totals.write(span.attributes, caches=True)
        if usage.finish_reason:
            span.attributes[names.FINISH_REASONS] = (usage.finish_reason,)
        return finish(span, now)


_DESCRIBE: Final = row(
    Usage,
    (names.REQUEST_MODEL, "model"),
    (names.RESPONSE_MODEL, "model"),
    (names.RESPONSE_ID, "api_call_id"),
    (names.SERVICE_REQUEST_ID, "service_request_id"),
    (names.REASONING_LEVEL, "reasoning_effort"),
    (names.SERVER_DURATION, "duration"),
    (names.INITIATOR, "initiator"),
)


def _describe(span: Span, usage: Usage) -> None:
    """Set the attributes of a call, except its sums."""
    if usage.model:
        span.target = cut(usage.model)
    _DESCRIBE(usage, span.attributes)
    if usage.time_to_first_token_ms is not None:
        span.attributes[names.TIME_TO_FIRST_CHUNK] = usage.time_to_first_token_ms / 1000
