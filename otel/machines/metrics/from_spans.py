"""Measurements of finished spans: durations and outcomes of agents, their calls and tools."""

from dataclasses import dataclass
from typing import Final

from otel import names
from otel.instruments import (
    AGENT_CALLS,
    AGENT_DURATION,
    AGENT_TOOL_CALLS,
    CALL_DURATION,
    EXECUTE_TOOL_DURATION,
    HOOK_DURATION,
    HOOKS,
    OPERATION_DURATION,
    ORPHANS,
    PERMISSION_WAIT,
    PERMISSIONS,
    TOOL_CALLS,
    TOOL_DURATION,
    TOOL_ERRORS,
    TURNS,
)
from otel.machines.metrics.measurements import Meter, label
from otel.model import Span, Status
from otel.name_types import Attribute, Semconv, Value

_NANO: Final = 1_000_000_000
_AGENTS_MAX: Final = 4_096


@dataclass(slots=True)
class _AgentCounts:
    """The counts of one agent so far."""

    calls: int = 0
    tools: int = 0
    models: tuple[Value | None, Value | None] = (None, None)


class SpanMetrics:
    """Measures the spans of one session, inner ones before the agent that they belong to.

    `provider` is the provider of spans that do not name one.
    """

    def __init__(self, semconv: Semconv) -> None:
        self.provider: Value | None = None
        self._semconv = semconv
        self._counts: dict[bytes, _AgentCounts] = {}

    def measure(self, span: Span, meter: Meter) -> None:
        """Measure a finished span. A span that a crash ended has no meaningful duration."""
        meter.time_ns, meter.context = span.end_ns, span.context
        if names.ORPHANED in span.attributes:
            meter.note(ORPHANS, 1, span.operation)
            self._counts.pop(span.context.span_id, None)
            return
        # The most frequent ones first.
        match span.operation:
            case names.CHAT:
                self._call(span, meter)
            case names.EXECUTE_TOOL:
                self._tool(span, meter)
            case names.INVOKE_AGENT:
                self._agent(span, meter)
            case names.PERMISSION:
                kind = _label(span, names.PERMISSION_KIND)
                meter.note(PERMISSIONS, 1, kind, _label(span, names.PERMISSION_RESULT))
                meter.note(PERMISSION_WAIT, _seconds(span), kind)
            case names.EXECUTE_HOOK:
                hook = _label(span, names.HOOK_TYPE)
                meter.note(HOOKS, 1, hook, span.status is not Status.ERROR)
                meter.note(HOOK_DURATION, _seconds(span), hook)

    def _call(self, span: Span, meter: Meter) -> None:
        attributes = span.attributes
        if names.COMPACTED in attributes:
            return  # as the CLI does, which counts such a call as a compaction only
        requested, response = attributes.get(names.REQUEST_MODEL), attributes.get(names.RESPONSE_MODEL)
        model = label(requested)
        models = (model, model if response is requested else label(response) or model)
        labels = (span.operation, self._provider_of(span), *models, *meter.shared)
        parent_counts = self._counts_of_parent(span)
        parent_counts.calls += 1
        parent_counts.models = models
        if self._semconv != "legacy":
            meter.add(CALL_DURATION, _seconds(span), labels)
        if self._semconv != "latest":
            meter.add(OPERATION_DURATION, _seconds(span), labels)

    def _tool(self, span: Span, meter: Meter) -> None:
        self._counts_of_parent(span).tools += 1
        seconds, name = _seconds(span), _label(span, names.TOOL_NAME)
        failed = span.status is Status.ERROR
        meter.note(TOOL_CALLS, 1, name, not failed)
        meter.note(TOOL_DURATION, seconds, name)
        kind, agent = _label(span, names.TOOL_TYPE), _label(span, names.AGENT_NAME)
        meter.note(EXECUTE_TOOL_DURATION, seconds, name, kind, agent)
        meter.note(OPERATION_DURATION, seconds, span.operation, self._provider_of(span), None, None)
        if failed:
            meter.note(TOOL_ERRORS, 1, name, _label(span, names.ERROR_TYPE))

    def _agent(self, span: Span, meter: Meter) -> None:
        counts = self._counts.pop(span.context.span_id, None) or _AgentCounts()
        seconds, agent = _seconds(span), _label(span, names.AGENT_NAME)
        meter.note(AGENT_DURATION, seconds, agent)
        meter.note(AGENT_CALLS, counts.calls, agent)
        meter.note(AGENT_TOOL_CALLS, counts.tools, agent)
        meter.note(OPERATION_DURATION, seconds, span.operation, self._provider_of(span), *counts.models)
        turns = span.attributes.get(names.TURN_COUNT)
        if isinstance(turns, int) and names.AGENT_INSTANCE_ID not in span.attributes:
            meter.note(TURNS, turns, span.operation)

    def _counts_of_parent(self, span: Span) -> _AgentCounts:
        """Return the counts of the agent that a call or tool belongs to; unattached ones if there is none."""
        if span.parent_id is None:
            return _AgentCounts()
        counts = self._counts.get(span.parent_id)
        if counts is None:
            counts = self._counts[span.parent_id] = _AgentCounts()
            if len(self._counts) > _AGENTS_MAX:
                del self._counts[next(iter(self._counts))]
        return counts

    def _provider_of(self, span: Span) -> Value | None:
        return label(span.attributes.get(names.PROVIDER)) or self.provider


def _seconds(span: Span) -> float:
    return (span.end_ns - span.start_ns) / _NANO


def _label(span: Span, attribute: Attribute) -> Value | None:
    return label(span.attributes.get(attribute))
