"""Requests to a person: the text of each, and those that only live events have.

The latter are kept in memory, because such events are in no file; durable requests are in the feed instead. A wait
ends with its answer, with its tool call, or when the main agent continues or stops; an answer may be lost, since live
events are dropped for a slow subscriber.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from exporter.core.events.envelope import Envelope, decode, read_object

ASKING: Final = ("permission", "user_input", "elicitation", "exit_plan_mode")
"""What a session waits for; each is `NAME.requested` and, at its end, `NAME.completed`."""
NOTIFICATION_TAG: Final = re.compile(r"<[/]?system_notification>")
"""What the CLI puts around the text of a notification."""

_PART_LENGTH_MAX: Final = 400
_PARTS_MAX: Final = 12
Data = dict[str, Any]


def words(event_type: str, data: Data) -> str:
    """Return what an event of a type in `ASKING` requests; empty when it does not say."""
    return _WORDS[event_type.partition(".")[0]](data)


def _permission(data: Data) -> str:
    request = _object(data.get("permissionRequest")) or _object(data.get("promptRequest"))
    kind = _text(request, "kind")
    tell = _PERMISSIONS.get(kind)
    asked = tell(request) if tell is not None else ""
    if not asked:
        what = _text(request, "fullCommandText", "fileName", "path", "url", "toolName", "name", "operation")
        asked = ": ".join(part for part in (kind, what) if part)
    outside = "outside of the sandbox" if request.get("requestSandboxBypass") is True else ""
    return _joined(asked, _text(request, "intention", "hookMessage", "reason"), outside, _text(request, "warning"))


def _shell(request: Data) -> str:
    return _after("Run", _text(request, "fullCommandText", "command"))


def _mcp(request: Data) -> str:
    server = _text(request, "serverName")
    return _after("Use the tool", _text(request, "toolTitle", "toolName") + (f" of {server}" if server else ""))


def _extension(request: Data) -> str:
    verb = (_text(request, "operation") or "change").capitalize()
    return _after(f"{verb} the extension", _text(request, "extensionName"))


_PERMISSIONS: Final[dict[str, Callable[[Data], str]]] = {
    "shell": _shell,
    "write": lambda request: _after("Write", _text(request, "fileName", "path", "resolvedPath")),
    "read": lambda request: _after("Read", _text(request, "path", "resolvedPath")),
    "url": lambda request: _after("Fetch", _text(request, "url")),
    "mcp": _mcp,
    "memory": lambda request: _after("Remember", _text(request, "fact", "subject")),
    "custom-tool": lambda request: _after("Use the tool", _text(request, "toolName")),
    "hook": lambda request: _after("Use the tool", _text(request, "toolName")),
    "extension-management": _extension,
    "workflow": lambda request: _after("Run the workflow", _text(request, "name")),
}


def _question(data: Data) -> str:
    choices = data.get("choices")
    return _joined(_text(data, "question", "message"), _listed(choices if isinstance(choices, list) else []))


def _form(data: Data) -> str:
    fields = _object(_object(data.get("requestedSchema")).get("properties"))
    return _joined(_text(data, "message"), _listed(fields), _text(data, "url"))


def _plan(data: Data) -> str:
    actions = data.get("actions")
    return _joined(_text(data, "summary", "planContent"), _listed(actions if isinstance(actions, list) else []))


_WORDS: Final[dict[str, Callable[[Data], str]]] = {
    "permission": _permission,
    "user_input": _question,
    "elicitation": _form,
    "exit_plan_mode": _plan,
}


def _listed(values: Iterable[object]) -> str:
    names = [value[:_PART_LENGTH_MAX] for value in values if isinstance(value, str) and value.strip()]
    return " / ".join(names[:_PARTS_MAX])


def _after(verb: str, what: str) -> str:
    return f"{verb} {what}" if what else ""


def _joined(*parts: str) -> str:
    return " · ".join(part for part in parts if part)


def _text(data: Data, *names: str) -> str:
    for name in names:
        value = data.get(name)
        if isinstance(value, str) and value.strip():
            return " ".join(value[: 2 * _PART_LENGTH_MAX].split())[:_PART_LENGTH_MAX]
    return ""


def _object(value: object) -> Data:
    return value if isinstance(value, dict) else {}


SESSIONS_MAX: Final = 1000
WAITS_MAX: Final = 64
_REQUESTED: Final = {f"{name}.requested": name for name in ASKING}
_COMPLETED: Final = frozenset(f"{name}.completed" for name in ASKING)
_MARKS: Final = (b'.requested"', b'.completed"')
_ENDS_WAITS: Final = frozenset(("session.resume", "session.shutdown", "abort", "user.message", "assistant.turn_end"))
_TOOL_END: Final = "tool.execution_complete"


@dataclass(frozen=True, slots=True)
class OpenWait:
    """One unanswered request."""

    session: str
    type: str
    timestamp: str
    agent: str | None
    text: str
    tool_call: object
    number: int = field(default=0, compare=False)
    """How many there were before it."""

    @property
    def place(self) -> tuple[str, int]:
        """Where it is among all waits; no two are in the same place."""
        return self.timestamp, self.number

    def entry(self, title: str | None) -> dict[str, Any]:
        """Return it as the feed shows what waits; there is no stored event."""
        return {
            "timestamp": self.timestamp,
            "session": self.session,
            "category": "wait",
            "type": self.type,
            "status": "waiting",
            "event": None,
            "agent": self.agent,
            "text": self.text,
            "title": title,
        }


class OpenWaits:
    """The waits of all sessions. Only to be used on the event loop."""

    def __init__(self) -> None:
        self._waits: dict[str, dict[object, OpenWait]] = {}
        self._count = 0

    def add_live(self, session: str, events: Iterable[bytes]) -> bool:
        """Process live events; tell whether the waits of the session changed."""
        before = dict(self._waits.get(session, {}))
        for body in events:
            if any(mark in body for mark in _MARKS) and isinstance(envelope := decode(body), Envelope):
                self._add(session, envelope)
        return before != self._waits.get(session, {})

    def add_durable(self, session: str, events: Iterable[Envelope]) -> bool:
        """Process new durable events; tell whether the session had a wait before them."""
        waits = self._waits.get(session)
        if not waits:
            return False
        for envelope in events:
            if envelope.type in _ENDS_WAITS and envelope.agentId is None:
                waits.clear()
            elif envelope.type == _TOOL_END:
                call = read_object(envelope.data).get("toolCallId")
                for request in [key for key, wait in waits.items() if call is not None and wait.tool_call == call]:
                    del waits[request]
        if not waits:
            self.end(session)
        return True

    def end(self, session: str) -> None:
        """Forget a session."""
        self._waits.pop(session, None)

    def is_waiting(self, session: str) -> bool:
        """Tell whether a session waits for a person."""
        return session in self._waits

    def all(self) -> list[OpenWait]:
        """Return every wait, the newest first."""
        waits = [wait for of_session in self._waits.values() for wait in of_session.values()]
        return sorted(waits, key=lambda wait: wait.place, reverse=True)

    def _add(self, session: str, envelope: Envelope) -> None:
        name = _REQUESTED.get(envelope.type)
        if name is None and envelope.type not in _COMPLETED:
            return
        data = read_object(envelope.data)
        request = data.get("requestId")
        request = request if isinstance(request, str) else envelope.id
        waits = self._waits.setdefault(session, {})
        if name is None:
            waits.pop(request, None)
        else:
            text = words(envelope.type, data).encode("utf-8", "replace").decode()
            details = (envelope.timestamp, envelope.agentId, text, data.get("toolCallId"))
            self._count += 1
            waits[request] = OpenWait(session, name, *details, self._count)
        if not waits:
            del self._waits[session]
        elif len(waits) > WAITS_MAX:
            del waits[next(iter(waits))]
        if len(self._waits) > SESSIONS_MAX:
            del self._waits[next(iter(self._waits))]
