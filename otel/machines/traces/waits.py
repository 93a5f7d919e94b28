"""The spans of permissions and hooks: a request, and later a response with the same id."""

from typing import Final

from otel import names
from otel.event import Event
from otel.machines.traces.spans import Spans, add_event, cut, fill, finish
from otel.model import Attributes, Context, Span
from otel.payloads.tools import Hook, PermissionCompleted, PermissionRequested

OPEN_MAX: Final = 256
# Hooks of these types run when the interaction is over; all others that run while nothing does, run for the next one.
AFTERWARDS: Final = frozenset(("agentStop", "subagentStop", "sessionEnd", "errorOccurred"))


class Waits:
    """The pending permissions and hooks of a session; finished spans go to `done`."""

    __slots__ = ("_done", "_held", "_open", "_spans")

    def __init__(self, spans: Spans, done: list[Span]) -> None:
        self._spans = spans
        self._done = done
        self._open: dict[tuple[str, str], Span] = {}
        self._held: list[tuple[Event, Hook, int]] = []

    @property
    def open(self) -> bool:
        """Tell whether any permission or hook is pending."""
        return bool(self._open)

    def permission_requested(self, event: Event, data: PermissionRequested, parent: Context, now: int) -> Context:
        """A permission is asked for."""
        span = self._spans.begin(names.PERMISSION, event.id, now, parent)
        request = data.permission_request
        fill(
            span.attributes,
            (names.PERMISSION_KIND, request.kind),
            (names.PERMISSION_TOOL, request.tool_name),
            (names.TOOL_CALL_ID, request.tool_call_id),
        )
        self._keep((names.PERMISSION, data.request_id or ""), span, now)
        return span.context

    def permission_completed(self, data: PermissionCompleted, now: int) -> Context | None:
        """A permission is given or denied."""
        span = self._open.pop((names.PERMISSION, data.request_id or ""), None)
        if span is None:
            return None
        fill(span.attributes, (names.PERMISSION_RESULT, data.result.kind))
        self._done.append(finish(span, now))
        return span.context

    def hook_started(self, event: Event, hook: Hook, above: Span, now: int, *, over: bool) -> Context:
        """A hook begins below a span, which gets a span event unless it is `over`."""
        if not over:
            add_event(above, now, names.HOOK_START, _identity(hook))
        return self.hook_after(event, hook, above.context, now)

    def hook_after(self, event: Event, hook: Hook, above: Context, now: int) -> Context:
        """A hook begins after the interaction that it belongs to has ended."""
        span = self._spans.begin(names.EXECUTE_HOOK, event.id, now, above, cut(hook.hook_type or "unknown"))
        span.attributes.update(_identity(hook))
        self._keep((names.EXECUTE_HOOK, hook.hook_invocation_id or ""), span, now)
        return span.context

    def hook_ended(self, hook: Hook, above: Span | None, now: int) -> Context | None:
        """A hook ends; the parent span gets a span event if it is still open."""
        span = self._open.pop((names.EXECUTE_HOOK, hook.hook_invocation_id or ""), None)
        if span is None:
            return None
        attributes = _identity(hook)
        failed = hook.success is False
        if failed:
            message = hook.error.message if hook.error is not None else None
            fill(span.attributes, (names.HOOK_ERROR_MESSAGE, message))
            fill(attributes, (names.HOOK_ERROR_MESSAGE, message))
        if not self._spans.legacy:
            attributes[names.HOOK_DURATION] = max(now - span.start_ns, 0) / 1e9
        if above is not None:
            add_event(above, now, names.HOOK_ERROR if failed else names.HOOK_END, attributes)
        self._done.append(finish(span, now, "HookError" if failed else None))
        return span.context

    def hold_hook(self, event: Event, hook: Hook, now: int) -> None:
        """Hold a hook event that occurs between interactions, for the next interaction."""
        self._held.append((event, hook, now))
        del self._held[:-OPEN_MAX]

    def pop_held(self) -> list[tuple[Event, Hook, int]]:
        """Return and clear the held events."""
        held, self._held = self._held, []
        return held

    def pop_all(self) -> list[Span]:
        """Return and clear all pending spans."""
        spans = list(self._open.values())
        self._open.clear()
        return spans

    def _keep(self, key: tuple[str, str], span: Span, now: int) -> None:
        earlier = self._open.pop(key, None)
        if earlier is None and len(self._open) >= OPEN_MAX:
            earlier = self._open.pop(next(iter(self._open)))
        if earlier is not None:
            self._done.append(finish(earlier, now, "never_completed"))
        self._open[key] = span


def _identity(hook: Hook) -> Attributes:
    return fill({}, (names.HOOK_TYPE, hook.hook_type), (names.HOOK_INVOCATION_ID, hook.hook_invocation_id))
