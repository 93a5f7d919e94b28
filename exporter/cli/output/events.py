"""One event as one readable line: time, who or what, and a short text."""

import json
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Final

from exporter.cli.output.table import TerminalView, Tone
from exporter.cli.output.text import moment, number, plain, shorten

TYPE_WIDTH: Final = 26
TEXT_MAX: Final = 200
_TEXTS: Final = ("content", "message", "reason", "newModel", "errorType", "infoType", "warningType")
_ARGUMENTS: Final = ("command", "path", "file_path", "pattern", "query", "url", "description", "prompt")
_TONES: dict[str, Tone] = {
    "user.message": "strong",
    "assistant.message": "strong",
    "system.notification": "warn",
    "session.warning": "warn",
    "session.error": "bad",
    "abort": "bad",
}


class EventLines:
    """Renders events one after the other; a new day is announced by a line of its own."""

    def __init__(self, view: TerminalView) -> None:
        self._palette = view.palette
        self._text_width = max(20, view.width - len("00:00:00  ") - TYPE_WIDTH) if view.width else TEXT_MAX
        self._day: date | None = None

    def text(self, line: bytes) -> str:
        """The line or two for this event; never empty."""
        event = _decoded(line)
        if event is None:
            return f"--:--:--  {self._palette.paint('(not readable)', 'bad')} {len(line):,} bytes"
        kind, when = plain(event.get("type", "?")), moment(event.get("timestamp"))
        local = when.astimezone() if when else None
        indent = "  " if event.get("agentId") else ""
        name = shorten(indent + kind, TYPE_WIDTH - 2).ljust(TYPE_WIDTH)
        said = shorten(summary(event), self._text_width)
        clock = f"{local:%H:%M:%S}" if local else "--:--:--"
        shown = (
            f"{self._palette.paint(clock, 'dim')}  {self._palette.paint(name, _TONES.get(kind, 'dim'))}{said}".rstrip()
        )
        return self._announced(local) + shown

    def _announced(self, local: datetime | None) -> str:
        if local is None or local.date() == self._day:
            return ""
        self._day = local.date()
        return self._palette.paint(f"{local:%A} {local.day} {local:%B %Y}", "dim") + "\n"


def _decoded(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def summary(event: Mapping[str, Any]) -> str:
    """What an event says, in a few words; empty when it says nothing a person would read."""
    data = event.get("data")
    if not isinstance(data, dict):
        return ""
    match str(event.get("type", "")).split("."):
        case ["tool", "execution_start"]:
            return f"{plain(data.get('toolName', ''))}: {_argument(data.get('arguments'))}"
        case ["tool", "execution_complete"]:
            return _tool_result(data)
        case ["assistant", "message"]:
            return plain(data.get("content") or "") or _requests(data.get("toolRequests"))
        case ["session", "usage_record"]:
            return _usage(data.get("usage"))
        case ["system", "notification"]:
            return _notification(data)
        case ["subagent", _]:
            return plain(data.get("agentDisplayName") or data.get("agentName") or data.get("model") or "")
        case ["session", "start"]:
            return plain(f"copilot {data.get('copilotVersion', '?')}, {data.get('selectedModel', '')}")
        case ["session", "shutdown"]:
            return plain(data.get("shutdownType", ""))
        case _:
            return _first_text(data)


def _first_text(data: Mapping[str, Any], keys: Iterable[str] = _TEXTS) -> str:
    return next((plain(data[key]) for key in keys if isinstance(data.get(key), str)), "")


def _argument(arguments: object) -> str:
    if not isinstance(arguments, dict):
        return plain(arguments or "")
    return _first_text(arguments, (*_ARGUMENTS, *arguments))


def _tool_result(data: Mapping[str, Any]) -> str:
    result, shell, error = data.get("result"), data.get("shellExecution"), data.get("error")
    said = (
        result.get("content") if isinstance(result, dict) else error.get("message") if isinstance(error, dict) else ""
    )
    code = shell.get("exitCode") if isinstance(shell, dict) else None
    failed = data.get("success") is False or code not in (None, 0)
    mark = f"failed ({code}) " if failed and code else "failed " if failed else "ok "
    return (mark + plain(said or "")).rstrip()


def _requests(requests: object) -> str:
    names = (
        [plain(one.get("name", "?")) for one in requests if isinstance(one, dict)] if isinstance(requests, list) else []
    )
    return f"calls {', '.join(names)}" if names else ""


def _usage(usage: object) -> str:
    if not isinstance(usage, dict):
        return ""
    amounts = [(usage.get(key), word) for key, word in (("inputTokens", "in"), ("outputTokens", "out"))]
    tokens = [f"{number(value)} {word}" for value, word in amounts if isinstance(value, int | float)]
    return f"{plain(usage.get('model', ''))} {', '.join(tokens)}".strip()


def _notification(data: Mapping[str, Any]) -> str:
    kind = data.get("kind")
    if not isinstance(kind, dict):
        return _first_text(data)
    code = f", exit code {plain(kind['exitCode'])}" if kind.get("exitCode") is not None else ""
    about = next(
        (kind[key] for key in ("displayName", "description", "sourcePath", "summary", "workflowName") if kind.get(key)),
        "",
    )
    return plain(f"{str(kind.get('type', '')).replace('_', ' ')}{code}: {about}").removesuffix(":")
