"""Tokens and cost of a session: each call is counted once, from its record or, where a CLI keeps none, its answer."""

from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple

from otel import instruments as metric
from otel.event import Event, payload
from otel.machines.metrics.measurements import Meter, amount, label
from otel.names import CHAT, NEW, OLD, Semconv, Value
from otel.payloads import AssistantMessage, Began, ModelMetrics, Number, Shutdown, UsageRecord

NANO: Final = 1_000_000_000
MODALITY: Final = "unknown"
INPUT: Final = "input"
OUTPUT: Final = "output"

_Tokens: TypeAlias = "tuple[float | None, float | None, float | None, float | None, float | None]"
_Calls: TypeAlias = tuple[int, int]
"""A number of calls, and of the tokens that they wrote."""


class _Used(Struct):
    """What one model has used: `calls`, five sorts of tokens, premium requests and AI units."""

    calls: Number = 0
    read: Number = 0
    written: Number = 0
    cache_read: Number = 0
    cache_written: Number = 0
    reasoning: Number = 0
    cost: Number = 0
    nano_aiu: Number = 0

    def since(self, before: "_Used", answers: int) -> "_Used":
        """Return what was used since; everything, when the count began anew: it has fewer calls than it must have.

        `answers` is how many calls have been answered since.
        """
        if self.calls < before.calls + answers:
            return self
        pairs = ((getattr(self, name), getattr(before, name)) for name in self.__struct_fields__)
        return _Used(*(max(0, now - then) for now, then in pairs))


def _with_unnamed(used: _Used, written: _Calls, unnamed: _Calls) -> tuple[_Calls, _Calls]:
    """Add to the counted calls of a model those that named none, as far as they may be its; return what is left too."""
    calls = min(unnamed[0], max(0, int(used.calls) - written[0]))
    tokens = min(unnamed[1], max(0, int(used.written) - written[1]))
    return (written[0] + calls, written[1] + tokens), (unnamed[0] - calls, unnamed[1] - tokens)


def _count(used: _Used, written: _Calls, labels: "_CallLabels", meter: Meter) -> None:
    """Count what calls of a model used; `written` are the calls, and their tokens, whose answers have been counted."""
    left = max(0, used.written - written[1])
    _count_tokens((used.read, left, used.cache_read, used.cache_written, used.reasoning), labels, meter)
    calls = int(used.calls)
    meter.spread(metric.CALL_INPUT_TOKENS, int(used.read), calls, labels.call)
    meter.spread(metric.TOKEN_USAGE, int(used.read), calls, labels.read)
    meter.spread(metric.CALL_OUTPUT_TOKENS, int(left), calls - written[0], labels.call)
    meter.spread(metric.TOKEN_USAGE, int(left), calls - written[0], labels.written)
    meter.add(metric.COST, used.cost, labels.model)
    meter.add(metric.PREMIUM_REQUESTS, used.cost, labels.model)
    meter.add(metric.AIU, used.nano_aiu / NANO, labels.model)


def _count_tokens(tokens: "_Tokens", labels: "_CallLabels", meter: Meter) -> None:
    """Count the tokens that were read, written, read from and written to a cache, and written while reasoning."""
    add, token_labels = meter.add, labels.token_labels
    read, written, cache_read, cache_written, reasoning = tokens
    add(metric.INPUT_TOKENS, read, token_labels)
    add(metric.OUTPUT_TOKENS, written, token_labels)
    add(metric.CACHE_READ_TOKENS, cache_read, token_labels)
    add(metric.CACHE_WRITE_TOKENS, cache_written, token_labels)
    add(metric.REASONING_TOKENS, reasoning, token_labels)


def _used(model: ModelMetrics) -> _Used:
    numbers = (model.requests.count, *astuple(model.usage), model.requests.cost, model.total_nano_aiu)
    return _Used(*(amount(number) or 0 for number in numbers))


_Labels: TypeAlias = "tuple[Value | None, ...]"
_AGENTS_MAX: Final = 4_096
_PER_PROCESS: Final = (1, 0, 48)
_USER_INITIATED: Final = (None, "user")


class _CallLabels(Struct, gc=False):
    """The labels of all that a call counts: `of` is what they depend on."""

    of: tuple[str | None, Value | None, _Labels]
    token_labels: _Labels
    call: _Labels
    first_chunk: _Labels
    read: _Labels
    written: _Labels
    model: _Labels

    @classmethod
    def make(cls, name: str | None, provider: Value | None, shared: _Labels) -> "_CallLabels":
        """Return the labels of a call of a model that has this name."""
        model = label(name)
        call = (CHAT, provider, model, model)
        return cls(
            of=(name, provider, shared),
            token_labels=(*call, MODALITY, *shared),
            call=(*call, *shared),
            first_chunk=(*call[:3], *shared),
            read=(*call, INPUT, *shared),
            written=(*call, OUTPUT, *shared),
            model=(model, *shared),
        )


def _is_old(version: str | None) -> bool:
    """Tell whether a version of the CLI is one whose totals begin anew with each process."""
    parts = (version or "").split("-")[0].split(".")
    return len(parts) == 3 and all(map(str.isdecimal, parts)) and tuple(map(int, parts)) <= _PER_PROCESS


class Calls:
    """Counts what the calls of a model in one session used. `provider` is who answered last, as far as records say.

    Remembers what the session's shutdowns said, and which calls were counted one by one since the last of them.
    """

    def __init__(self, semconv: Semconv) -> None:
        self.provider: Value | None = None
        self._new = semconv in NEW
        self._old = semconv in OLD
        self._labels: _CallLabels | None = None
        self._last_call: str | None = None
        self._unanswered: set[str | None] = set()
        # What the last shutdown said of each model, and of lines added and removed.
        self._models: dict[str, _Used] = {}
        self._lines = (0.0, 0.0)
        self._version: str | None = None
        self._model: Value | None = None  # that answered last
        # The models whose calls have records, and the calls of each of which only the written tokens are known.
        self._recorded: set[str] = set()
        self._written: dict[str, _Calls] = {}

    def process_began(self, began: Began) -> None:
        """Another process of the CLI has the session from now on; the totals of CLI 1.0.48 are those of a process."""
        self._version = began.copilot_version or self._version
        if _is_old(self._version):
            self._models.clear()
            self._lines = (0.0, 0.0)

    def recorded(self, event: Event, meter: Meter) -> None:
        """Count a call by its record."""
        usage = payload(event, UsageRecord).usage
        if usage.api_call_id is not None and usage.api_call_id == self._last_call:
            return
        self._last_call = usage.api_call_id
        self._unanswered.add(event.agent_id)
        if len(self._unanswered) > _AGENTS_MAX:
            self._unanswered.clear()
        self.provider = label(usage.provider) or self.provider
        self._model = label(usage.model) or self._model
        self._version = None  # an older one keeps no records
        self._recorded.add(usage.model or "")
        labels = self._labels_of(usage.model, meter)
        read, written = amount(usage.input_tokens), amount(usage.output_tokens)
        if self._new:
            cache_read, cache_written = amount(usage.cache_read_tokens), amount(usage.cache_write_tokens)
            tokens = (read, written, cache_read, cache_written, amount(usage.reasoning_tokens))
            _count_tokens(tokens, labels, meter)
            meter.add(metric.CALL_INPUT_TOKENS, read, labels.call)
            meter.add(metric.CALL_OUTPUT_TOKENS, written, labels.call)
            first_ms = amount(usage.time_to_first_token_ms)
            chunk_ms, room = amount(usage.inter_token_latency_ms), amount(usage.max_prompt_tokens)
            meter.add(metric.TIME_PER_CHUNK, chunk_ms / 1000 if chunk_ms is not None else None, labels.first_chunk)
            if room and read is not None:
                meter.add(metric.CONTEXT_UTILIZATION, read / room, labels.model)
            meter.add(metric.TIME_TO_FIRST_CHUNK, first_ms / 1000 if first_ms is not None else None, labels.first_chunk)
        if self._old:
            meter.add(metric.TOKEN_USAGE, read, labels.read)
            meter.add(metric.TOKEN_USAGE, written, labels.written)
        cost = amount(usage.cost)
        meter.add(metric.COST, cost, labels.model)
        if usage.initiator in _USER_INITIATED:
            meter.add(metric.PREMIUM_REQUESTS, cost, labels.model)
        if usage.copilot_usage is not None:
            charged = amount(usage.copilot_usage.total_nano_aiu)
            meter.add(metric.AIU, charged / NANO if charged is not None else None, labels.model)

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
        self._model = label(answer.model) or self._model
        recorded = event.agent_id in self._unanswered
        self._unanswered.discard(event.agent_id)
        if written is None or recorded or (answer.model in self._recorded if answer.model else self._recorded):
            return
        labels = self._labels_of(answer.model, meter)
        calls, total = self._written.get(answer.model or "", (0, 0))
        self._written[answer.model or ""] = (calls + 1, total + int(written))
        meter.add(metric.OUTPUT_TOKENS, written, labels.token_labels)
        meter.add(metric.CALL_OUTPUT_TOKENS, written, labels.call)
        meter.add(metric.TOKEN_USAGE, written, labels.written)

    def shut_down(self, event: Event, meter: Meter) -> None:
        """Count the totals of a `session.shutdown` beyond what was counted already."""
        self._unanswered.clear()
        said = payload(event, Shutdown)
        unnamed = self._written.pop("", (0, 0))
        for name, model_metrics in said.model_metrics.items():
            now = _used(model_metrics)
            used = now.since(self._models.get(name, _Used()), self._written.get(name, (0, 0))[0])
            self._models[name] = now
            if name not in self._recorded:
                written, unnamed = _with_unnamed(used, self._written.get(name, (0, 0)), unnamed)
                _count(used, written, _CallLabels.make(name, self.provider, meter.shared), meter)
        self._recorded.clear()
        self._written.clear()
        added, removed = amount(said.code_changes.lines_added) or 0, amount(said.code_changes.lines_removed) or 0
        anew = added < self._lines[0] or removed < self._lines[1]
        before = (0, 0) if anew else self._lines
        self._lines = (added, removed)
        meter.note(metric.LINES_ADDED, added - before[0], self._model, self.provider)
        meter.note(metric.LINES_REMOVED, removed - before[1], self._model, self.provider)
