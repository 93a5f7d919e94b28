"""The machine that turns the events of a session into finished spans: one trace per interaction.

It is pure: no clock, no input or output, no chance. The same events give the same spans with the same ids, whether they
are read while they happen, a month later, or by ten processes one after the other. What it relies on:

* `user.message` of the main agent opens an interaction; so does anything else that the main agent does while none is
  open, such as a notification that wakes it.
* An interaction ends at the end of the turn in which the model's last answer asks for no tools, or in which it was
  aborted or failed; else at its last event, when the next interaction, a shutdown or a resume shows that it is over.
* A resume without a shutdown before it means that the process died: what was open ended with the last event.
* An event counts once, by its id.

`semconv="legacy"` also gives spans the shape that CLI 1.0.48 gives them: the root is a client span, a `chat` span
lasts for its whole turn (see `chats`), and notifications and hooks are told on it.
"""

from typing import Final, Literal

from msgspec import Struct

from otel.event import Event
from otel.machines.recent_ids import RecentIds
from otel.machines.traces.handlers import HANDLERS
from otel.machines.traces.spans import Spans
from otel.machines.traces.trace_state import TraceState
from otel.model import Context, Span
from otel.name_types import Semconv

SEEN_MAX: Final = 4_096
# What is no sign that an interaction goes on, among the events that the machine knows.
_PASSIVE: Final = frozenset(
    kind for kind in HANDLERS if kind.startswith("session.") and kind not in ("session.usage_record", "session.error")
)


class Taken(Struct, gc=False):
    """What an event led to: the spans finished by it, and the span that it belongs to.

    `again` says that it leads to nothing because its id has come before; `path` are the sub-agents from the outermost
    to the one whose event it is.
    """

    spans: list[Span]
    context: Context | None
    again: bool = False
    path: tuple[str, ...] = ()


class Traces:
    """The spans of one session. Never raises, whatever the events hold; what it remembers is bounded.

    `content` adds what only content level `redacted` may send: texts, arguments and results, cut to 64 KiB each.
    `traceparent` is where the session was started from: roots refer to it, or with `parent_mode="child"` belong to it.
    """

    def __init__(
        self,
        session: str,
        *,
        semconv: Semconv = "latest",
        content: bool = False,
        traceparent: str | None = None,
        parent_mode: Literal["link", "child"] = "link",
    ) -> None:
        spans = Spans(session, legacy=semconv == "legacy", content=content)
        self._stage = TraceState(spans, traceparent, parent_mode)
        self._last_ns = 0
        self._seen = RecentIds(SEEN_MAX)

    @property
    def open(self) -> bool:
        """Tell whether any span has begun and not ended."""
        return self._stage.open

    def take(self, event: Event) -> Taken:
        """Take the next event of the session. One that was taken already leads to nothing."""
        handler = HANDLERS.get(event.type)
        stage = self._stage
        again = self._seen.again(event.id)
        if again or handler is None:
            return Taken([], stage.around(event), again, stage.agents.path(event.agent_id) if event.agent_id else ())
        # An event without a readable time happened when the last one did.
        now = self._last_ns = event.time_ns or self._last_ns
        context = handler(stage, event, now)
        if event.type not in _PASSIVE:
            stage.active_ns = now
        path = stage.agents.path(event.agent_id) if event.agent_id else ()
        return Taken(self._finished() if stage.done else [], context, False, path)

    def process_died(self) -> list[Span]:
        """End what is open with the last sign of life, because no more events come. Nothing the second time."""
        self._stage.end_all(self._stage.active_ns, crashed=True)
        return self._finished()

    def _finished(self) -> list[Span]:
        done = self._stage.done
        finished = done[:]
        done.clear()
        return finished
