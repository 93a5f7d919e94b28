"""Tokens and cost of a session: each call is counted once, from its record or, where a CLI keeps none, its answer."""

from typing import Final, TypeAlias

from msgspec import Struct

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
from otel.machines.metrics.measurements import Meter, amount, label
from otel.machines.metrics.totals import INPUT, MODALITY, NANO, OUTPUT, SessionTotals
from otel.name_types import Semconv, Value
from otel.names import CHAT
from otel.payloads.events import AssistantMessage, Usage, UsageRecord

_Labels: TypeAlias = "tuple[Value | None, ...]"
_AGENTS_MAX: Final = 4_096
_BY_A_PERSON: Final = (None, "user")


class _CallLabels(Struct, gc=False):
    """The labels of all that a call counts: `of` is what they depend on."""

    of: tuple[str | None, Value, _Labels]
    told: _Labels
    call: _Labels
    first_chunk: _Labels
    read: _Labels
    written: _Labels
    model: _Labels

    @classmethod
    def make(cls, name: str | None, provider: Value, shared: _Labels) -> "_CallLabels":
        """Return the labels of a call of a model that has this name."""
        model = label(name)
        call = (CHAT, provider, model, model)
        return cls(
            of=(name, provider, shared),
            told=(*call, MODALITY, *shared),
            call=(*call, *shared),
            first_chunk=(*call[:3], *shared),
            read=(*call, INPUT, *shared),
            written=(*call, OUTPUT, *shared),
            model=(model, *shared),
        )


class Calls:
    """Counts what the calls of a model in one session used. `provider` is who answered last."""

    def __init__(self, semconv: Semconv) -> None:
        self.provider: Value = "github"
        self._latest = semconv != "legacy"
        self._legacy = semconv != "latest"
        self._totals = SessionTotals()
        self._labels: _CallLabels | None = None
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
        self._totals.recorded(usage.model or "")
        labels = self._labels_of(usage.model, meter)
        if self._latest:
            _count_tokens(usage, labels, meter)
        if self._legacy:
            meter.add(TOKEN_USAGE, amount(usage.input_tokens), labels.read)
            meter.add(TOKEN_USAGE, amount(usage.output_tokens), labels.written)
        cost = amount(usage.cost)
        meter.add(COST, cost, labels.model)
        if usage.initiator in _BY_A_PERSON:
            meter.add(PREMIUM_REQUESTS, cost, labels.model)
        if usage.copilot_usage is not None:
            charged = amount(usage.copilot_usage.total_nano_aiu)
            meter.add(AIU, charged / NANO if charged is not None else None, labels.model)

    def _labels_of(self, name: str | None, meter: Meter) -> "_CallLabels":
        """Return the labels of a call of a model; mostly it is the model of the call before."""
        labels = self._labels
        if labels is None or labels.of != (name, self.provider, meter.shared):
            labels = self._labels = _CallLabels.make(name, self.provider, meter.shared)
        return labels

    def answered(self, event: Event, meter: Meter) -> None:
        """Count what an answer wrote, when only the answer says so."""
        answer = payload(event, AssistantMessage)
        written = amount(answer.output_tokens)
        recorded = event.agent_id in self._unanswered
        self._unanswered.discard(event.agent_id)
        if written is None or recorded or self._totals.has_records_of(answer.model):
            return
        labels = self._labels_of(answer.model, meter)
        self._totals.written(answer.model or "", int(written))
        meter.add(OUTPUT_TOKENS, written, labels.told)
        meter.add(CALL_OUTPUT_TOKENS, written, labels.call)
        meter.add(TOKEN_USAGE, written, labels.written)

    def shut_down(self, event: Event, meter: Meter) -> None:
        """Count what the totals of a shutdown say beyond that."""
        self._unanswered.clear()
        self._totals.shut_down(event, self.provider, meter)


def _count_tokens(usage: Usage, labels: _CallLabels, meter: Meter) -> None:
    add, told, call = meter.add, labels.told, labels.call
    read, written = amount(usage.input_tokens), amount(usage.output_tokens)
    add(INPUT_TOKENS, read, told)
    add(OUTPUT_TOKENS, written, told)
    add(CACHE_READ_TOKENS, amount(usage.cache_read_tokens), told)
    add(CACHE_WRITE_TOKENS, amount(usage.cache_write_tokens), told)
    add(REASONING_TOKENS, amount(usage.reasoning_tokens), told)
    add(CALL_INPUT_TOKENS, read, call)
    add(CALL_OUTPUT_TOKENS, written, call)
    first_ms = amount(usage.time_to_first_token_ms)
    add(TIME_TO_FIRST_CHUNK, first_ms / 1000 if first_ms is not None else None, labels.first_chunk)
