"""The summary of a session, computed from its events: state, title, directory, model, tokens and cost.

The fold looks into `data` for a few types only, so it costs next to nothing per event, and it can be kept as plain
JSON between two batches. Sums of `session.usage_record` and the cumulative totals of `session.shutdown` are kept
apart and never added together: the first is shown when there is any, else the second.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from exporter.core.events.envelope import read_object

TITLE_LENGTH_MAX: Final = 120
_WAITING_MAX: Final = 256
_TEXT_LENGTH_MAX: Final = 1024
_EVER: Final = "~"
_TOKEN_FIELDS: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}
_Data = dict[str, Any]


class SummaryEvent(Protocol):
    """The part of an envelope that the fold reads; `exporter.core.events.envelope.Envelope` is one."""

    @property
    def type(self) -> str: ...
    @property
    def timestamp(self) -> str: ...
    @property
    def agentId(self) -> str | None: ...  # noqa: N802  the wire's own name
    @property
    def data(self) -> msgspec.Raw: ...


class Summary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One session so far. `add` takes the events in file order; everything else only reads."""

    state: str = "idle"
    title: str | None = None
    titled: bool = False
    repository: str | None = None
    branch: str | None = None
    cwd: str | None = None
    model: str | None = None
    started: str | None = None
    last_activity: str | None = None
    events: int = 0
    copilot_version: str | None = None
    parent: str | None = None
    waiting: list[str] = []
    recorded: dict[str, float] = {}
    totals: dict[str, float] = {}

    def add(self, event: SummaryEvent, now: str = _EVER, instead: str | None = None) -> None:
        """Add one durable event. Data of an unexpected shape is ignored, never an error.

        A time after `now` is that of a wrong clock and counts as `instead`, or as `now`.
        """
        self.events += 1
        timestamp = event.timestamp
        if timestamp[:2] == "20":
            if timestamp > now:
                timestamp = instead or now
            if self.started is None:
                self.started = timestamp[:_TEXT_LENGTH_MAX]
            if self.last_activity is None or timestamp > self.last_activity or self.last_activity > now:
                self.last_activity = timestamp[:_TEXT_LENGTH_MAX]
        change = (_CHANGES if event.agentId is None else _CHILD_CHANGES).get(event.type)
        if change is not None:
            change(self, read_object(event.data))
            if self.started is not None and self.started > now:
                self.started = instead or now

    def as_session(self, session_id: str, *, masked: int, host: str | None, last_event_id: str | None) -> _Data:
        """Return the session object of the API and of `sessions list --json`."""
        return {
            "id": session_id,
            "title": self.title,
            "state": self.state,
            "repository": self.repository,
            "branch": self.branch,
            "cwd": self.cwd,
            "model": self.model,
            "parent": self.parent,
            "started": self.started,
            "last_activity": self.last_activity,
            "events": self.events,
            "tokens": self.tokens(),
            "cost": self.cost(),
            "masked": masked,
            "host": host,
            "last_event_id": last_event_id,
        }

    def tokens(self) -> _Data:
        """Return each figure with the source it comes from."""
        source, figures = ("usage_record", self.recorded) if self.recorded else ("shutdown", self.totals)
        return {name: {"value": int(figures[name]), "source": source} for name in _TOKEN_FIELDS if name in figures}

    def cost(self) -> _Data | None:
        """Return the cost with the source it comes from, None if it is unknown."""
        source, figures = ("usage_record", self.recorded) if self.recorded else ("shutdown", self.totals)
        return {"value": figures["cost"], "source": source} if "cost" in figures else None


def _text(value: object) -> str | None:
    """Return a short, storable text, or None for anything else."""
    if not isinstance(value, str) or not value:
        return None
    return value[:_TEXT_LENGTH_MAX]


def _number(value: object) -> float:
    """Return a finite number from 0 up; what is none of that counts as 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return value if 0 <= value < 1e18 else 0


def _dictionary(value: object) -> _Data:
    return value if isinstance(value, dict) else {}


def _take_context(summary: Summary, context: _Data) -> None:
    summary.cwd = _text(context.get("cwd")) or summary.cwd
    summary.branch = _text(context.get("branch")) or summary.branch
    summary.repository = _text(context.get("repository")) or summary.repository


def _session_start(summary: Summary, data: _Data) -> None:
    summary.state = "idle"
    summary.started = _text(data.get("startTime")) or summary.started
    summary.model = _text(data.get("selectedModel")) or summary.model
    summary.copilot_version = _text(data.get("copilotVersion")) or summary.copilot_version
    summary.parent = _text(data.get("parentSessionId")) or _text(data.get("forkedFrom")) or summary.parent
    _take_context(summary, _dictionary(data.get("context")))


def _session_resume(summary: Summary, data: _Data) -> None:
    summary.state = "idle"
    summary.waiting = []
    summary.model = _text(data.get("selectedModel")) or summary.model
    _take_context(summary, _dictionary(data.get("context")))


def _context_changed(summary: Summary, data: _Data) -> None:
    _take_context(summary, data)


def _model_change(summary: Summary, data: _Data) -> None:
    summary.model = _text(data.get("newModel")) or summary.model


def _title_changed(summary: Summary, data: _Data) -> None:
    title = _text(data.get("title"))
    if title:
        summary.title, summary.titled = title[:TITLE_LENGTH_MAX], True


def _user_message(summary: Summary, data: _Data) -> None:
    summary.state = "working"
    content = _text(data.get("content"))
    if summary.title is None and content and content.strip():
        summary.title = content.strip().splitlines()[0][:TITLE_LENGTH_MAX]


def _turn_start(summary: Summary, data: _Data) -> None:
    summary.state = "working"


def _turn_end(summary: Summary, data: _Data) -> None:
    if not summary.waiting:
        summary.state = "idle"


def _abort(summary: Summary, data: _Data) -> None:
    summary.state, summary.waiting = "idle", []


def _requested(summary: Summary, data: _Data) -> None:
    if len(summary.waiting) < _WAITING_MAX:
        summary.waiting = [*summary.waiting, _text(data.get("requestId")) or ""]
    summary.state = "needs_attention"


def _completed(summary: Summary, data: _Data) -> None:
    request = _text(data.get("requestId")) or ""
    summary.waiting = [waiting for waiting in summary.waiting if waiting != request]
    if not summary.waiting and summary.state == "needs_attention":
        summary.state = "working"


def _usage_record(summary: Summary, data: _Data) -> None:
    usage = _dictionary(data.get("usage"))
    summed = dict(summary.recorded)
    for name, field in _TOKEN_FIELDS.items():
        if field in usage:
            summed[name] = summed.get(name, 0) + _number(usage[field])
    if "cost" in usage:
        summed["cost"] = summed.get("cost", 0) + _number(usage["cost"])
    summary.recorded = summed


def _main_usage_record(summary: Summary, data: _Data) -> None:
    _usage_record(summary, data)
    if summary.model is None:
        summary.model = _text(_dictionary(data.get("usage")).get("model"))


def _session_shutdown(summary: Summary, data: _Data) -> None:
    summary.state, summary.waiting = "ended", []
    models = _dictionary(data.get("modelMetrics"))
    totals: dict[str, float] = {}
    for metrics in models.values():
        usage = _dictionary(_dictionary(metrics).get("usage"))
        requests = _dictionary(_dictionary(metrics).get("requests"))
        for name, field in _TOKEN_FIELDS.items():
            if field in usage:
                totals[name] = totals.get(name, 0) + _number(usage[field])
        if "cost" in requests:
            totals["cost"] = totals.get("cost", 0) + _number(requests["cost"])
    summary.totals = totals or summary.totals


_CHANGES: Final[dict[str, Callable[[Summary, _Data], None]]] = {
    "session.start": _session_start,
    "session.resume": _session_resume,
    "session.context_changed": _context_changed,
    "session.model_change": _model_change,
    "session.title_changed": _title_changed,
    "session.usage_record": _main_usage_record,
    "session.shutdown": _session_shutdown,
    "user.message": _user_message,
    "assistant.turn_start": _turn_start,
    "assistant.turn_end": _turn_end,
    "abort": _abort,
    "permission.requested": _requested,
    "permission.completed": _completed,
    "user_input.requested": _requested,
    "user_input.completed": _completed,
    "elicitation.requested": _requested,
    "elicitation.completed": _completed,
    "exit_plan_mode.requested": _requested,
    "exit_plan_mode.completed": _completed,
}
# The events of sub-agents that change the summary too.
_CHILD_CHANGES: Final = {
    **{kind: change for kind, change in _CHANGES.items() if change in (_requested, _completed)},
    "session.usage_record": _usage_record,
}
# The types that must be read again to rebuild a summary; all others are only counted.
SUMMARY_TYPES: Final = frozenset(_CHANGES)
