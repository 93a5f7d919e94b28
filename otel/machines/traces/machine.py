"""The machine that turns the events of a session into finished spans: one trace per interaction.

It is pure: no clock, no input or output, no randomness. The same events give the same spans with the same ids, whether
they are read live, a month later, or by several processes in turn. The rules:

* `user.message` of the main agent opens an interaction; so does anything else that the main agent does while none is
  open, such as a notification.
* An interaction ends at the end of the turn in which the model's last answer asks for no tools, or in which it was
  aborted or failed; otherwise at its last event, once the next interaction, a shutdown or a resume ends it.
* A resume without a shutdown before it means that the process died: open spans end with the last event.
* An event counts once, by its id.

`semconv="legacy"` also gives spans the shape that CLI 1.0.48 gives them: the root is a client span, a `chat` span
lasts for its whole turn (see `chats`) and carries notifications and hooks.
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

RECENT_IDS_MIN: Final = 4_096
# Events that do not extend the interaction.
_PASSIVE: Final = frozenset(
    kind for kind in HANDLERS if kind.startswith("session.") and kind not in ("session.usage_record", "session.error")
)


class TraceResult(Struct, gc=False):
    """The effect of an event: the spans that it finished, and the span that it belongs to.

    `is_duplicate` says that its id occurred before, so it has no effect. `path` has the sub-agents from the outermost
    to the one whose event it is.
    """

    spans: list[Span]
    context: Context | None
    is_duplicate: bool = False
    path: tuple[str, ...] = ()


class Traces:
    """The spans of one session. Never raises, whatever the events hold; its memory is bounded.

    `content` adds what only content level `redacted` may send: texts, arguments and results, cut to 64 KiB each.
    `traceparent` is the span that started the session: roots link to it, or are its
    children with `parent_mode="child"`.
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
        self._state = TraceState(spans, traceparent, parent_mode)
        self._last_ns = 0
        self._recent_ids = RecentIds(RECENT_IDS_MIN)

    @property
    def open(self) -> bool:
        """Tell whether any span has begun and not ended."""
        return self._state.open

    def take(self, event: Event) -> TraceResult:
        """Process the next event of the session. A duplicate has no effect."""
        handler = HANDLERS.get(event.type)
        state = self._state
        is_duplicate = self._recent_ids.check_and_add(event.id)
        if is_duplicate or handler is None:
            return TraceResult([], state.context_of(event), is_duplicate, state.path_of(event))
        # An event without a readable time happened when the last one did.
        now = self._last_ns = event.time_ns or self._last_ns
        context = handler(state, event, now)
        if event.type not in _PASSIVE:
            state.active_ns = now
        return TraceResult(self._finished() if state.done else [], context, False, state.path_of(event))

    def process_died(self) -> list[Span]:
        """End all open spans at the last event, because the process died. A second call returns nothing."""
        self._state.end_all(self._state.active_ns, crashed=True)
        return self._finished()

    def _finished(self) -> list[Span]:
        done = self._state.done
        finished = done[:]
        done.clear()
        return finished
