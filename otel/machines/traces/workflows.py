"""Workflows: a span above what several agents do for one result. Only the GenAI conventions have it.

A run of a workflow begins with the first sub-agent that names it, in that agent's place, and ends with its
notification. What sub-agents of it run is below it. A plan, or a fleet of sub-agents, that a person asks for is a
workflow too: its span is the root of the trace, around the interaction.
"""

from dataclasses import dataclass, field
from typing import Final

from otel import names
from otel.event import Event, payload
from otel.machines.traces.spans import Spans, cut, fill, span_id
from otel.model import Context, Span
from otel.payloads import Notification, TextPayload, UserMessage

_PLAN: Final = "plan"
_FLEET: Final = "fleet"
_FLEET_TEXT: Final = "Fleet deployed"
"""What CLI 1.0.102 shows of a message that starts a fleet, before the person's own words."""
COMPLETED: Final = "workflow_completed"
_ENDED_WELL: Final = frozenset((None, "completed", "paused"))
_OPEN_MAX: Final = 256
_MILLISECOND: Final = 1_000_000
_DAY_MS: Final = 86_400_000


def asked_workflow(event: Event, said: UserMessage) -> str | None:
    """Return which workflow a message of a person starts, None if it is one agent's work."""
    if said.agent_mode == _PLAN:
        return _PLAN
    text = payload(event, TextPayload).content
    return _FLEET if text is not None and text.startswith(_FLEET_TEXT) else None


@dataclass(slots=True)
class Workflows:
    """The runs of workflows that are under way, by their id and trace."""

    spans: Spans
    open: dict[tuple[str, bytes], Span] = field(default_factory=dict)

    def adopt(self, agent: Span, run: str, event: Event, now: int) -> None:
        """Put a sub-agent that has just begun, so that nothing is below it, below the run that spawned it."""
        if not self.spans.genai or agent.parent_id is None:
            return
        key = (run, agent.context.trace_id)
        span = self.open.get(key)
        if span is None:
            span = self.open[key] = self.spans.begin(
                names.INVOKE_WORKFLOW, event.id, now, Context(agent.context.trace_id, agent.parent_id)
            )
            if len(self.open) > _OPEN_MAX:
                self.spans.end(self.open.pop(next(iter(self.open))), now, "never_completed")
        agent.parent_id = span.context.span_id

    def notified(self, event: Event, above: Span, now: int) -> None:
        """A notification comes; that of a run ends it. One that no sub-agent named was as long as it says."""
        kind = payload(event, Notification).kind
        if not self.spans.genai or kind.type != COMPLETED:
            return
        found = [key for key in self.open if key[0] == kind.run_id]
        ended = [self.open.pop(key) for key in found]
        if not ended:
            took_ns = int(min(max(kind.elapsed_ms or 0, 0), _DAY_MS) * _MILLISECOND)
            start = max(now - took_ns, above.start_ns)
            ended = [self.spans.begin(names.INVOKE_WORKFLOW, event.id, start, above.context)]
        error = kind.status if kind.status not in _ENDED_WELL else None
        for span in ended:
            span.target = cut(kind.workflow_name) if kind.workflow_name else None
            fill(span.attributes, (names.WORKFLOW_NAME, kind.workflow_name))
            self.spans.end(span, now, error)

    def around(self, root: Span, name: str) -> None:
        """End a workflow that a person asked for with the interaction that was all of it."""
        span = self.spans.begin(names.INVOKE_WORKFLOW, root.opened_by, root.start_ns, None, name)
        span.attributes[names.WORKFLOW_NAME] = name
        span.status = root.status
        for shared in (names.ERROR_TYPE, names.ORPHANED, names.DURATION_UNKNOWN):
            fill(span.attributes, (shared, root.attributes.get(shared)))
        root.parent_id = span_id(names.INVOKE_WORKFLOW, self.spans.session, root.opened_by)
        self.spans.end(span, root.end_ns)

    def pop_all(self) -> list[Span]:
        """Return and clear the runs under way."""
        spans = list(self.open.values())
        self.open.clear()
        return spans
