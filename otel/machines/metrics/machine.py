"""Makes measurements from events and finished spans.

A forked session begins with a copy of another session's events. Those were measured there, so they are skipped here;
they are recognised because they are older than the start of the session.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from otel import instruments as metric
from otel import names, payloads
from otel.event import Event, payload
from otel.machines.metrics.measurements import Meter, amount, label
from otel.machines.metrics.usage import NANO, Calls
from otel.machines.traces.machine import TraceResult
from otel.model import Measurement, Span, Status
from otel.names import Attribute, Semconv, Value
from otel.projection import TABLE

_AGENTS_MAX: Final = 4_096


@dataclass(slots=True)
class _AgentCounts:
    """The counts of one agent so far."""

    calls: int = 0
    tools: int = 0
    models: tuple[Value | None, Value | None] = (None, None)


class SpanMetrics:
    """Measures the spans of one session, inner ones before the agent that they belong to."""

    def __init__(self, semconv: Semconv, calls: Calls) -> None:
        self._semconv = semconv
        self._calls = calls
        self._counts: dict[bytes, _AgentCounts] = {}

    def measure(self, span: Span, meter: Meter) -> None:
        """Measure a finished span. A span that a crash ended has no meaningful duration."""
        meter.time_ns, meter.context = span.end_ns, span.context
        if names.ORPHANED in span.attributes:
            meter.note(metric.ORPHANS, 1, span.operation)
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
            case names.INVOKE_WORKFLOW:
                workflow = _label(span, names.WORKFLOW_NAME)
                meter.note(metric.WORKFLOW_DURATION, _seconds(span), workflow, _label(span, names.ERROR_TYPE))
            case names.PERMISSION:
                kind = _label(span, names.PERMISSION_KIND)
                meter.note(metric.PERMISSIONS, 1, kind, _label(span, names.PERMISSION_RESULT))
                meter.note(metric.PERMISSION_WAIT, _seconds(span), kind)
            case names.EXECUTE_HOOK:
                hook = _label(span, names.HOOK_TYPE)
                meter.note(metric.HOOKS, 1, hook, span.status is not Status.ERROR)
                meter.note(metric.HOOK_DURATION, _seconds(span), hook)

    def _call(self, span: Span, meter: Meter) -> None:
        attributes = span.attributes
        if names.COMPACTED in attributes:
            return  # as the CLI does, which counts such a call as a compaction only
        requested, response = attributes.get(names.REQUEST_MODEL), attributes.get(names.RESPONSE_MODEL)
        model = label(requested)
        models = (model, model if response is requested else label(response) or model)
        labels = (span.operation, self._provider_of(span), *models, _label(span, names.ERROR_TYPE), *meter.shared)
        parent_counts = self._counts_of_parent(span)
        parent_counts.calls += 1
        parent_counts.models = models
        if self._semconv in names.NEW:
            meter.add(metric.CALL_DURATION, _seconds(span), labels)
        if self._semconv in names.OLD:
            meter.add(metric.OPERATION_DURATION, _seconds(span), labels)

    def _tool(self, span: Span, meter: Meter) -> None:
        if names.TOOL_CALLED_BY_CLI not in span.attributes:  # as the CLI does, which counts those of the model
            self._counts_of_parent(span).tools += 1
        seconds, name = _seconds(span), _label(span, names.TOOL_NAME)
        failed = span.status is Status.ERROR
        meter.note(metric.TOOL_CALLS, 1, name, not failed)
        meter.note(metric.TOOL_DURATION, seconds, name)
        kind, agent = _label(span, names.TOOL_TYPE), _label(span, names.AGENT_NAME)
        error = _label(span, names.ERROR_TYPE)
        meter.note(metric.EXECUTE_TOOL_DURATION, seconds, name, kind, agent, error)
        meter.note(metric.OPERATION_DURATION, seconds, span.operation, self._provider_of(span), None, None, error)
        if failed:
            meter.note(metric.TOOL_ERRORS, 1, name, error)

    def _agent(self, span: Span, meter: Meter) -> None:
        counts = self._counts.pop(span.context.span_id, None) or _AgentCounts()
        seconds, agent = _seconds(span), _label(span, names.AGENT_NAME)
        error = _label(span, names.ERROR_TYPE)
        meter.note(metric.AGENT_DURATION, seconds, agent, error)
        meter.note(metric.AGENT_CALLS, counts.calls, agent)
        meter.note(metric.AGENT_TOOL_CALLS, counts.tools, agent)
        meter.note(metric.OPERATION_DURATION, seconds, span.operation, self._provider_of(span), *counts.models, error)
        turns = span.attributes.get(names.TURN_COUNT)
        if isinstance(turns, int) and names.AGENT_INSTANCE_ID not in span.attributes:
            meter.note(metric.TURNS, turns, span.operation)

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
        return label(span.attributes.get(names.PROVIDER)) or self._calls.provider


def _seconds(span: Span) -> float:
    return (span.end_ns - span.start_ns) / NANO


def _label(span: Span, attribute: Attribute) -> Value | None:
    return label(span.attributes.get(attribute))


_LOCATED: Final = frozenset(("session.start", "session.resume", "session.context_changed"))


class Metering:
    """Measures the events of one session in file order. The same events always give the same measurements."""

    def __init__(self, session: str, semconv: Semconv = "cli", user: str | None = None) -> None:
        self.calls = Calls(semconv)
        self.began_ns = 0
        self._session = session
        self._shared: tuple[Value | None, ...] = (None, session, None, user)
        self._spans = SpanMetrics(semconv, self.calls)
        self._now_ns = 0
        self._start_ns = 0
        self._copied_until_ns = 0

    def measure(self, event: Event, result: TraceResult) -> list[Measurement]:
        """Return the measurements of an event and of the spans that it ended; none for a duplicate.

        An event without a readable time takes the time of the last one.
        """
        if result.is_duplicate:
            return []
        self._now_ns = event.time_ns or self._now_ns
        if self._start_ns or event.type in _LOCATED:
            self._locate(event)
        handler = _HANDLERS.get(event.type, _unknown)
        if handler is None and not result.spans:
            return []
        meter = Meter(self._shared, self._now_ns, result.context)
        if handler is not None and self._now_ns >= self._copied_until_ns:
            handler(self, event, meter)
        if result.spans:
            self._measure_spans(result.spans, meter)
        return meter.found

    def ended(self, spans: Iterable[Span]) -> list[Measurement]:
        """Return the measurements of spans that a crash ended."""
        meter = Meter(self._shared, self._now_ns)
        self._measure_spans(spans, meter)
        return meter.found

    def _locate(self, event: Event) -> None:
        """Note the repository of the session, and whether the events after its start are copies."""
        if self._start_ns:
            self._copied_until_ns = self._start_ns if self._now_ns < self._start_ns else 0
            self._start_ns = 0
        if event.type not in _LOCATED:
            return
        if event.type != "session.context_changed":
            began = payload(event, payloads.Began)
            repository, session, version, user = self._shared
            repository, version = label(began.context.repository) or repository, label(began.copilot_version) or version
            self._shared = (repository, session, version, user)
            self.began_ns = self._now_ns
            self._start_ns = self._now_ns if event.type == "session.start" else 0
        else:
            self._shared = (label(payload(event, payloads.Where).repository), *self._shared[1:])

    def _measure_spans(self, spans: Iterable[Span], meter: Meter) -> None:
        for span in spans:
            if span.end_ns >= self._copied_until_ns:
                self._spans.measure(span, meter)


def _unknown(_: Metering, event: Event, meter: Meter) -> None:
    meter.note(metric.UNKNOWN_EVENTS, 1, label(event.type))


def _began(metering: Metering, event: Event, meter: Meter) -> None:
    metering.calls.process_began(payload(event, payloads.Began))
    meter.note(metric.SESSIONS, 1, "new" if event.type == "session.start" else "resume")


def _shut_down(metering: Metering, event: Event, meter: Meter) -> None:
    if metering.began_ns:
        seconds = max(0, meter.time_ns - metering.began_ns) / NANO
        meter.note(metric.SESSION_DURATION, seconds, label(payload(event, payloads.Shutdown).shutdown_type))
        metering.began_ns = 0
    metering.calls.shut_down(event, meter)


def _user_message(_: Metering, event: Event, meter: Meter) -> None:
    if event.agent_id is None:
        meter.note(metric.INTERACTIONS, 1, label(payload(event, payloads.UserMessage).agent_mode))


def _notification(_: Metering, event: Event, meter: Meter) -> None:
    kind = payload(event, payloads.Notification).kind
    meter.note(metric.NOTIFICATIONS, 1, label(kind.type), label(kind.status))


def _custom_notification(_: Metering, event: Event, meter: Meter) -> None:
    custom = payload(event, payloads.Custom)
    meter.note(metric.CUSTOM_NOTIFICATIONS, 1, label(custom.source), label(custom.name))


def _subagent(_: Metering, event: Event, meter: Meter) -> None:
    agent = payload(event, payloads.Subagent)
    took_ms, name = amount(agent.duration_ms), label(agent.agent_name)
    if took_ms is not None:
        meter.note(metric.SUBAGENT_DURATION, took_ms / 1000, name, event.type == "subagent.completed")
    meter.note(metric.SUBAGENT_TOKENS, amount(agent.total_tokens), name)


def _compaction(_: Metering, event: Event, meter: Meter) -> None:
    compaction = payload(event, payloads.Compaction)
    meter.note(metric.COMPACTIONS, 1, label(compaction.success))
    meter.note(metric.COMPACTED_TOKENS, amount(compaction.tokens_removed))


def _truncation(_: Metering, event: Event, meter: Meter) -> None:
    meter.note(metric.TRUNCATIONS, 1)
    meter.note(metric.TRUNCATED_TOKENS, amount(payload(event, payloads.Compaction).tokens_removed_during_truncation))


def _error(_: Metering, event: Event, meter: Meter) -> None:
    message = payload(event, payloads.MessagePayload)
    status = amount(message.status_code)
    meter.note(metric.ERRORS, 1, label(message.error_type), int(status) if status is not None else None)


# None: a known type without measurements of its own.
_HANDLERS: Final[dict[str, "Callable[[Metering, Event, Meter], None] | None"]] = {
    **dict.fromkeys(TABLE),
    "session.start": _began,
    "session.resume": _began,
    "session.shutdown": _shut_down,
    "session.usage_record": lambda metering, event, meter: metering.calls.recorded(event, meter),
    "assistant.message": lambda metering, event, meter: metering.calls.answered(event, meter),
    "user.message": _user_message,
    "system.notification": _notification,
    "session.custom_notification": _custom_notification,
    "subagent.completed": _subagent,
    "subagent.failed": _subagent,
    "session.compaction_complete": _compaction,
    "session.truncation": _truncation,
    "session.error": _error,
    "session.warning": lambda _, event, meter: meter.note(
        metric.WARNINGS, 1, label(payload(event, payloads.MessagePayload).warning_type)
    ),
    "abort": lambda _, event, meter: meter.note(
        metric.ABORTS, 1, label(payload(event, payloads.MessagePayload).reason)
    ),
    "skill.invoked": lambda _, event, meter: meter.note(metric.SKILLS, 1, label(payload(event, payloads.Skill).name)),
}
