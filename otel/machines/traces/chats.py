"""One run of an agent, from start to end, and the spans of its calls of a model.

A CLI that records usage says how long a call took: the span begins that much before the record, and ends when the
answer comes, a moment after it. Without records, it goes from when an answer is awaited to the answer. In the legacy
shape it is what CLI 1.0.48 makes of it: from the start of a turn to its end, tools included, and one for all turns of a
sub-agent that has none recorded.
"""

from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from otel import names
from otel.event import Event
from otel.machines.traces import messages
from otel.machines.traces.spans import Spans, cut, fill, finish, row
from otel.model import Attributes, Context, Kind, Span
from otel.payloads import AssistantMessage, Number, Turn, Usage


class InvocationTotals(Struct, gc=False):
    """The sums over calls of a model."""

    calls: int = 0
    input: Number = 0
    output: Number | None = None
    cache_read: Number = 0
    cache_write: Number = 0
    reasoning: Number = 0
    cost: float | None = None
    nano_aiu: float | None = None

    def add(self, usage: Usage) -> None:
        """Count one more call."""
        self.calls += 1
        self.input += usage.input_tokens or 0
        if usage.output_tokens is not None:
            self.output = (self.output or 0) + usage.output_tokens
        self.cache_read += usage.cache_read_tokens or 0
        self.cache_write += usage.cache_write_tokens or 0
        self.reasoning += usage.reasoning_tokens or 0
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        if usage.nano_aiu is not None:
            self.nano_aiu = (self.nano_aiu or 0.0) + usage.nano_aiu

    def write(self, attributes: Attributes, *, caches: bool) -> None:
        """Set the sums; leave out those that no call reports and, without `caches`, the cache and reasoning tokens."""
        if self.calls == 0:
            return
        fill(
            attributes,
            (names.INPUT_TOKENS, self.input or None),
            (names.OUTPUT_TOKENS, self.output),
            (names.COST, self.cost),
            (names.NANO_AIU, self.nano_aiu),
        )
        if caches:
            fill(
                attributes,
                (names.CACHE_READ_TOKENS, self.cache_read or None),
                (names.CACHE_WRITE_TOKENS, self.cache_write or None),
                (names.REASONING_TOKENS, self.reasoning or None),
            )


@dataclass(slots=True)
class Invocation:
    """The state of an active agent. `agent` is its id, None for the main agent; `path` has the agents from the
    outermost to this one.

    `has_answered` says whether the model answered in this turn, `requested_tools` whether its last answer requests
    tools. `awaiting` is the event and time since which an answer is pending. `chat` is an open span of a turn (only in
    the legacy shape); `held` is a finished one that waits for the text of its answer. `first_tool` is the number of
    tool calls that the session had when the agent began. `workflow` is what a person asked for that is more than one
    agent's work.
    """

    span: Span
    agent: str | None = None
    path: tuple[str, ...] = ()
    name: str | None = None
    tool_call_id: str | None = None
    first_tool: int = 0
    resumed: bool = False
    ended: bool = False
    in_turn: bool = False
    has_turns: bool = False
    has_answered: bool = False
    requested_tools: bool = False
    turn_id: str | None = None
    interaction_id: str | None = None
    turns: int = 0
    awaiting: tuple[str, int] | None = None
    chat: Span | None = None
    chat_totals: InvocationTotals = field(default_factory=InvocationTotals)
    held: Span | None = None
    response_id: str | None = None
    finish_reasons: tuple[str, ...] = ()
    totals: InvocationTotals = field(default_factory=InvocationTotals)
    error: str | None = None
    aborted: str | None = None
    skill: str | None = None
    workflow: str | None = None

    def end(self, time_ns: int, *, caches: bool) -> Span:
        """Finish the span with the sums of the calls. The caller first ends what is open below it."""
        attributes = self.span.attributes
        self.totals.write(attributes, caches=caches)
        fill(attributes, (names.ABORT_REASON, self.aborted))
        if self.finish_reasons:
            attributes[names.FINISH_REASONS] = self.finish_reasons
        if self.agent is None or caches:
            attributes[names.TURN_COUNT] = self.turns
        self.ended = True
        error = self.error or ("cancelled" if self.aborted is not None else None)
        return finish(self.span, time_ns, error)


_SECOND: Final = 1_000_000_000
_MILLISECOND: Final = 1_000_000
_DAY_MS: Final = 86_400_000


@dataclass(slots=True)
class Chats:
    """Makes the `chat` spans of a session."""

    spans: Spans
    provider: str | None = None  # who answered last, as far as a record says

    @property
    def provider_of_agent(self) -> str | None:
        """The provider as far as spans of agents tell it: with the GenAI conventions only model calls have one."""
        return None if self.spans.genai else self.provider

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
        if self.spans.legacy and agent.chat is None:
            self.open(agent, event.id, now)

    def open(self, agent: Invocation, opened_by: str, now: int) -> None:
        """Open a span that stays open over several calls (legacy shape)."""
        agent.chat = self._begin(agent.span.context, opened_by, now, None, agent)
        agent.chat_totals = InvocationTotals()

    def used(self, agent: Invocation | None, event: Event, usage: Usage, now: int) -> Context | None:
        """A call was answered and its usage recorded; without an active agent it is a trace of its own."""
        self.provider = usage.provider or self.provider
        if agent is None:
            span = self._measured(None, event.id, usage, now, None)
            self.spans.done.append(span)
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
            asks = agent.requested_tools and not self.spans.legacy  # CLI 1.0.48 says "stop" of every answer
            agent.finish_reasons = ("tool_calls",) if asks else ("stop",)
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
        elif recorded and agent.held is not None and 0 <= now - agent.held.end_ns <= _SECOND:
            agent.held.end_ns = now  # nearer to the end of the call than its record
        if span is not None and self.spans.content:
            text = messages.output_messages(event, "stop" if self.spans.legacy else None)
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
        self._emit_held(agent)
        if agent.chat is not None:
            chat, agent.chat = agent.chat, None
            agent.awaiting = None  # a late answer has no span of its own, which would be this one again
            agent.chat_totals.write(chat.attributes, caches=True)
            fill(chat.attributes, (names.PROVIDER, self.provider))
            if agent.finish_reasons:
                chat.attributes[names.FINISH_REASONS] = agent.finish_reasons
            self.spans.end(chat, now, None if agent.has_answered else agent.error)

    def compacted(self, agent: Invocation | None, event: Event, usage: Usage, now: int) -> None:
        """A call that summarised the conversation."""
        parent = agent.span.context if agent is not None else None
        span = self._measured(parent, event.id, usage, now, None)
        span.attributes[names.COMPACTED] = True
        self.spans.done.append(span)

    def _emit_held(self, agent: Invocation) -> None:
        if agent.held is not None:
            self.spans.done.append(agent.held)
            agent.held = None

    def _begin(
        self, parent: Context | None, opened_by: str, start: int, model: str | None, agent: Invocation | None
    ) -> Span:
        span = self.spans.begin(names.CHAT, opened_by, start, parent, model, Kind.CLIENT)
        fill(span.attributes, (names.PROVIDER, self.provider))
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
