"""Tokens and cost of a session: each call is counted once, from its record or, where a CLI keeps none, its answer."""

from typing import Final

from otel.event import Event, payload
from otel.instruments import (
    AIU,
    CACHE_READ_TOKENS,
    CACHE_WRITE_TOKENS,
    CALL_INPUT_TOKENS,
    CALL_OUTPUT_TOKENS,
    COST,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    PREMIUM_REQUESTS,
    REASONING_TOKENS,
    TIME_TO_FIRST_CHUNK,
    TOKEN_USAGE,
)
from otel.meter import Meter, amount, label
from otel.name import Semconv, Value
from otel.names import CHAT
from otel.payloads import AssistantMessage, Usage, UsageRecord
from otel.totals import INPUT, MODALITY, NANO, OUTPUT, Totals

_AGENTS_MAX: Final = 4_096
_BY_A_PERSON: Final = (None, "user")


class Calls:
    """Counts what the calls of a model in one session used. `provider` is who answered last."""

    def __init__(self, semconv: Semconv) -> None:
        self.provider: Value = "github"
        self._latest = semconv != "legacy"
        self._legacy = semconv != "latest"
        self._totals = Totals()
        self._last_call: str | None = None
        self._unanswered: set[str | None] = set()

    def recorded(self, event: Event, meter: Meter) -> None:
        """Count a call by its record."""
        usage = payload(event, UsageRecord).usage
        if usage.api_call_id is not None and usage.api_call_id == self._last_call:
            return
        self._last_call = usage.api_call_id
        self._unanswered.add(event.agent_id)
        if len(self._unanswered) > _AGENTS_MAX:
            self._unanswered.clear()
        if usage.is_byok and usage.provider_type:
            self.provider = label(usage.provider_type) or self.provider
        model = label(usage.model)
        self._totals.recorded(usage.model or "")
        call = (CHAT, self.provider, model, model)
        if self._latest:
            self._count_tokens(usage, call, meter)
        if self._legacy:
            meter.note(TOKEN_USAGE, amount(usage.input_tokens), *call, INPUT)
            meter.note(TOKEN_USAGE, amount(usage.output_tokens), *call, OUTPUT)
        cost = amount(usage.cost)
        meter.note(COST, cost, model)
        if usage.initiator in _BY_A_PERSON:
            meter.note(PREMIUM_REQUESTS, cost, model)
        charged = amount(usage.copilot_usage.total_nano_aiu) if usage.copilot_usage is not None else None
        meter.note(AIU, charged / NANO if charged is not None else None, model)

    @staticmethod
    def _count_tokens(usage: Usage, call: tuple[Value | None, ...], meter: Meter) -> None:
        told = (*call, MODALITY)
        read, written = amount(usage.input_tokens), amount(usage.output_tokens)
        meter.note(INPUT_TOKENS, read, *told)
        meter.note(OUTPUT_TOKENS, written, *told)
        meter.note(CACHE_READ_TOKENS, amount(usage.cache_read_tokens), *told)
        meter.note(CACHE_WRITE_TOKENS, amount(usage.cache_write_tokens), *told)
        meter.note(REASONING_TOKENS, amount(usage.reasoning_tokens), *told)
        meter.note(CALL_INPUT_TOKENS, read, *call)
        meter.note(CALL_OUTPUT_TOKENS, written, *call)
        first_ms = amount(usage.time_to_first_token_ms)
        meter.note(TIME_TO_FIRST_CHUNK, first_ms / 1000 if first_ms is not None else None, *call[:3])

    def answered(self, event: Event, meter: Meter) -> None:
        """Count what an answer wrote, when only the answer says so."""
        answer = payload(event, AssistantMessage)
        written = amount(answer.output_tokens)
        recorded = event.agent_id in self._unanswered
        self._unanswered.discard(event.agent_id)
        if written is None or recorded or self._totals.has_records_of(answer.model):
            return
        model = label(answer.model)
        call = (CHAT, self.provider, model, model)
        self._totals.written(answer.model or "", int(written))
        meter.note(OUTPUT_TOKENS, written, *call, MODALITY)
        meter.note(CALL_OUTPUT_TOKENS, written, *call)
        meter.note(TOKEN_USAGE, written, *call, OUTPUT)

    def shut_down(self, event: Event, meter: Meter) -> None:
        """Count what the totals of a shutdown say beyond that."""
        self._unanswered.clear()
        self._totals.shut_down(event, self.provider, meter)
