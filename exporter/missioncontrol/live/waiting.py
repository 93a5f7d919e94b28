"""Requests to a person: the text of each, and those that only live events have.

The latter are kept in memory, because such events are in no file; durable requests are in the feed instead. A wait
ends with its answer, with its tool call, or when the main agent continues or stops; an answer may be lost, since live
events are dropped for a slow subscriber.
"""

import re
from collections.abc import Iterable
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


_QUESTIONS: Final = {
    "user_input": ("choices", "question", "message"),
    "exit_plan_mode": ("actions", "summary", "planContent"),
}
"""Where the choices are, and the fields of which the first that is a text is the question."""
_PERMISSIONS: Final = {
    "shell": ("Run", "fullCommandText", "command"),
    "write": ("Write", "fileName", "path", "resolvedPath"),
    "read": ("Read", "path", "resolvedPath"),
    "url": ("Fetch", "url"),
    "mcp": ("Use the tool", "toolTitle", "toolName"),
    "memory": ("Remember", "fact", "subject"),
    "custom-tool": ("Use the tool", "toolName"),
    "hook": ("Use the tool", "toolName"),
    "extension-management": ("the extension", "extensionName"),
    "workflow": ("Run the workflow", "name"),
}
"""By the kind of a permission: what is asked for, and the fields of which the first that is a text says of what."""


def words(event_type: str, data: Data) -> str:
    """Return what an event of a type in `ASKING` requests; empty when it does not say."""
    name = event_type.partition(".")[0]
    if name == "permission":
        return _permission(data)
    if name == "elicitation":
        fields = _object(_object(data.get("requestedSchema")).get("properties"))
        return _joined(_text(data, "message"), _listed(fields), _text(data, "url"))
    choices, *names = _QUESTIONS[name]
    listed = data.get(choices)
    return _joined(_text(data, *names), _listed(listed if isinstance(listed, list) else []))


def _permission(data: Data) -> str:
    request = _object(data.get("permissionRequest")) or _object(data.get("promptRequest"))
    kind = _text(request, "kind")
    verb, *names = _PERMISSIONS.get(kind, ("",))
    what = _text(request, *names)
    if kind == "mcp" and (server := _text(request, "serverName")):
        what += f" of {server}"
    elif kind == "extension-management":
        verb = f"{(_text(request, 'operation') or 'change').capitalize()} {verb}"
    asked = f"{verb} {what}" if what else ""
    if not asked:
        what = _text(request, "fullCommandText", "fileName", "path", "url", "toolName", "name", "operation")
        asked = ": ".join(part for part in (kind, what) if part)
    outside = "outside of the sandbox" if request.get("requestSandboxBypass") is True else ""
    return _joined(asked, _text(request, "intention", "hookMessage", "reason"), outside, _text(request, "warning"))


def _listed(values: Iterable[object]) -> str:
    names = [value[:_PART_LENGTH_MAX] for value in values if isinstance(value, str) and value.strip()]
    return " / ".join(names[:_PARTS_MAX])


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
