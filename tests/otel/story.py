"""Telling the trace machine a session in few words, and reading what it made of it."""

import json
from typing import Any

from otel import names
from otel.event import read
from otel.machines.traces.machine import TraceResult, Traces
from otel.model import Span
from otel.names import Attribute, Semconv, Value

SESSION = "11111111-2222-3333-4444-555555555555"


class Story:
    """A session that is told event by event; each comes `after` milliseconds after the one before."""

    def __init__(self, *, semconv: Semconv = "cli", content: bool = False, **settings: Any) -> None:
        self.machine = Traces(SESSION, semconv=semconv, content=content, **settings)
        self.spans: list[Span] = []
        self.now_ms = 0
        self._count = 0

    def tell(
        self, kind: str, data: Any = None, *, agent: str | None = None, after: int = 10, event_id: str | None = None
    ) -> TraceResult:
        """Let something happen."""
        self._count += 1
        self.now_ms += after
        seconds, milliseconds = divmod(self.now_ms, 1000)
        line: dict[str, Any] = {
            "type": kind,
            "data": {} if data is None else data,
            "id": event_id or f"event-{self._count}",
            "timestamp": f"2026-11-18T10:{seconds // 60:02}:{seconds % 60:02}.{milliseconds:03}Z",
        }
        if agent is not None:
            line["agentId"] = agent
        event = read(json.dumps(line).encode())
        assert event is not None
        taken = self.machine.take(event)
        self.spans += taken.spans
        return taken

    def ask(self, interaction: str = "first", **more: Any) -> TraceResult:
        """A person says something, and a turn begins."""
        taken = self.tell("user.message", {"delivery": "idle", "interactionId": interaction, "content": "Hi.", **more})
        self.tell("assistant.turn_start", {"turnId": "0", "interactionId": interaction})
        return taken

    def answer(self, *calls: str, agent: str | None = None, response: str | None = None) -> None:
        """The model answers, and perhaps asks for tools."""
        response = response or f"response-{self._count}"
        usage = {"model": "model-x", "inputTokens": 100, "outputTokens": 10, "duration": 8, "apiCallId": response}
        self.tell("session.usage_record", {"usage": usage}, agent=agent)
        requests = [{"toolCallId": call, "name": "bash", "arguments": {}} for call in calls]
        message = {"model": "model-x", "content": "Yes.", "apiCallId": response, "toolRequests": requests}
        self.tell("assistant.message", message, agent=agent)

    def start(self, call: str, name: str = "bash", *, agent: str | None = None, **more: Any) -> TraceResult:
        """A tool begins."""
        return self.tell("tool.execution_start", {"toolCallId": call, "toolName": name, **more}, agent=agent)

    def complete(self, call: str, *, agent: str | None = None, **more: Any) -> TraceResult:
        """A tool ends."""
        return self.tell("tool.execution_complete", {"toolCallId": call, "success": True, **more}, agent=agent)

    def end_turn(self, *, agent: str | None = None) -> TraceResult:
        """The turn ends."""
        return self.tell("assistant.turn_end", {"turnId": "0"}, agent=agent)

    def tree(self) -> list[str]:
        """What left so far, a span a line below the one that it hangs on, in order of their beginning."""
        by_place: dict[bytes | None, list[Span]] = {}
        for span in sorted(self.spans, key=lambda span: (span.start_ns, -span.end_ns)):
            by_place.setdefault(span.parent_id, []).append(span)

        def below(parent: bytes | None, depth: int) -> list[str]:
            lines = []
            for span in by_place.get(parent, []):
                failed = span.attributes.get(names.ERROR_TYPE)
                lines.append("  " * depth + name_of(span) + (f" ! {failed}" if failed else ""))
                lines += below(span.context.span_id, depth + 1)
            return lines

        return below(None, 0)

    def one(self, name: str) -> Span:
        """The only span of a name."""
        [span] = [span for span in self.spans if name_of(span) == name]
        return span


def name_of(span: Span) -> str:
    """The span's name at a level that tells everything."""
    return f"{span.operation} {span.target}" if span.target else span.operation


def said(span: Span) -> list[str]:
    """The names of a span's events, without what they have in common."""
    return [event.name.name.removeprefix("github.copilot.") for event in span.events]


def value(span: Span, attribute: Attribute) -> Value | None:
    """An attribute of a span."""
    return span.attributes.get(attribute)
