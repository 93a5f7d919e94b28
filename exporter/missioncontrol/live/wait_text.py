"""The text of a wait: which permission is requested, or what a person is asked."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

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
