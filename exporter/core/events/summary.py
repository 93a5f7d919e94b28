"""The summary of a session, computed from its events: state, title, directory, model, tokens and cost.

The fold looks into `data` for a few types only, so it costs next to nothing per event, and it can be kept as plain
JSON between two batches. Sums of `session.usage_record` and the cumulative totals of `session.shutdown` are kept
apart and never added together: the first is shown when there is any, else the second.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import Envelope, read_object

TITLE_LENGTH_MAX: Final = 120
_WAITING_MAX: Final = 256
_TEXT_LENGTH_MAX: Final = 1024
_EVER: Final = "~"
_USAGE_TYPES: Final = ("session.usage_record", "session.shutdown")
_TOKEN_FIELDS: Final = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cache_read": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}
_AS_IT_IS: Final = ("title", "state", "repository", "branch", "cwd", "model", "parent", "started", "last_activity")
_Data = dict[str, Any]


class Summary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One session so far. `add` takes the events in file order; everything else only reads."""

    state: str = "idle"
    title: str | None = None
    titled: bool = False
    repository: str | None = None
    branch: str | None = None
    cwd: str | None = None
    model: str | None = None
    begun: str | None = None
    """When the session's own part began: a fork's file begins with copies, which have the times of the originals."""
    copied: bool = False
    """Whether the copies of a fork have usage: its totals at the end are then those of both, and are not shown."""
    started: str | None = None
    last_activity: str | None = None
    events: int = 0
    copilot_version: str | None = None
    parent: str | None = None
    waiting: list[str] = []
    recorded: dict[str, float] = {}
    totals: dict[str, float] = {}

    def add(self, event: Envelope, now: str = _EVER, instead: str | None = None) -> None:
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
        if event.type == "session.start" and event.agentId is None:
            self.begun = timestamp if timestamp == event.timestamp else None  # else the clock was wrong
        elif event.type in _USAGE_TYPES and self.begun is not None and timestamp < self.begun:
            self.copied = True  # used, and ended, by the session that this one was forked from
            return
        change = (_CHANGES if event.agentId is None else _CHILD_CHANGES).get(event.type)
        if change is not None:
            change(self, read_object(event.data))
            if self.started is not None and self.started > now:
                self.started = instead or now

    def as_session(self, session_id: str, *, masked: int, host: str | None, last_event_id: str | None) -> _Data:
        """Return the session object of the API and of `sessions list --json`."""
        return {
            "id": session_id,
            **{name: getattr(self, name) for name in _AS_IT_IS},
            "events": self.events,
            "tokens": self.tokens(),
            "cost": self.cost(),
            "masked": masked,
            "host": host,
            "last_event_id": last_event_id,
        }

    def tokens(self) -> _Data:
        """Return each figure with the source it comes from."""
        source, figures = self._figures()
        return {name: {"value": int(figures[name]), "source": source} for name in _TOKEN_FIELDS if name in figures}

    def cost(self) -> _Data | None:
        """Return the cost with the source it comes from, None if it is unknown."""
        source, figures = self._figures()
        return {"value": figures["cost"], "source": source} if "cost" in figures else None

    def _figures(self) -> tuple[str, dict[str, float]]:
        return ("usage_record", self.recorded) if self.recorded else ("shutdown", self.totals)


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


def _take(summary: Summary, data: _Data, **fields: str) -> None:
    """Set what the data tell: the name of a field of the summary, and that of the field of the data."""
    for name, field in fields.items():
        setattr(summary, name, _text(data.get(field)) or getattr(summary, name))


def _context_changed(summary: Summary, data: _Data) -> None:
    _take(summary, data, cwd="cwd", branch="branch", repository="repository")


def _session_start(summary: Summary, data: _Data) -> None:
    summary.state = "idle"
    _take(summary, data, started="startTime", model="selectedModel", copilot_version="copilotVersion")
    _take(summary, data, parent="forkedFrom")
    _take(summary, data, parent="parentSessionId")
    _context_changed(summary, _dictionary(data.get("context")))


def _session_resume(summary: Summary, data: _Data) -> None:
    summary.state, summary.waiting = "idle", []
    _take(summary, data, model="selectedModel")
    _context_changed(summary, _dictionary(data.get("context")))


def _model_change(summary: Summary, data: _Data) -> None:
    _take(summary, data, model="newModel")


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


def _add_usage(sums: dict[str, float], usage: _Data, cost: _Data) -> None:
    """Add the tokens of a usage, and the cost that stands in `cost`."""
    named = [(name, usage[field]) for name, field in _TOKEN_FIELDS.items() if field in usage]
    if "cost" in cost:
        named.append(("cost", cost["cost"]))
    for name, value in named:
        sums[name] = sums.get(name, 0) + _number(value)


def _usage_record(summary: Summary, data: _Data) -> None:
    usage = _dictionary(data.get("usage"))
    summary.recorded = dict(summary.recorded)
    _add_usage(summary.recorded, usage, usage)


def _main_usage_record(summary: Summary, data: _Data) -> None:
    _usage_record(summary, data)
    if summary.model is None:
        summary.model = _text(_dictionary(data.get("usage")).get("model"))


def _session_shutdown(summary: Summary, data: _Data) -> None:
    summary.state, summary.waiting = "ended", []
    totals: dict[str, float] = {}
    for metrics in _dictionary(data.get("modelMetrics")).values():
        of_model = _dictionary(metrics)
        _add_usage(totals, _dictionary(of_model.get("usage")), _dictionary(of_model.get("requests")))
    if not summary.copied:
        summary.totals = totals or summary.totals


_WAITS: Final = {
    f"{family}.{end}": change
    for family in ("permission", "user_input", "elicitation", "exit_plan_mode")
    for end, change in (("requested", _requested), ("completed", _completed))
}
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
    **_WAITS,
}
# The events of sub-agents that change the summary too.
_CHILD_CHANGES: Final = {**_WAITS, "session.usage_record": _usage_record}
# The types that must be read again to rebuild a summary; all others are only counted.
SUMMARY_TYPES: Final = frozenset(_CHANGES)
