"""One run of an agent, from start to end: the main agent for one interaction, or a sub-agent for one task."""

from dataclasses import dataclass, field

from msgspec import Struct

from otel import names
from otel.machines.traces.spans import fill, finish
from otel.model import Attributes, Span
from otel.payloads.events import Number, Usage


class InvocationTotals(Struct, gc=False):
    """The sums over calls of a model."""

    calls: int = 0
    input: Number = 0
    output: Number = 0
    cache_read: Number = 0
    cache_write: Number = 0
    reasoning: Number = 0
    cost: float | None = None
    nano_aiu: float | None = None

    def add(self, usage: Usage) -> None:
        """Count one more call."""
        self.calls += 1
        self.input += usage.input_tokens or 0
        self.output += usage.output_tokens or 0
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
    tool calls that the session had when the agent began.
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
