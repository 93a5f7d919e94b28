"""The words of entries: tool calls, and notifications, waits, problems and marks in a session's life.

The titles, levels and facts of the latter are rows of `wording.toml`; here is what depends on the data of an event.
"""

import json
import re
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from exporter.core.events.envelope import Envelope
from exporter.missioncontrol.live.waiting import ASKING, NOTIFICATION_TAG, words
from exporter.missioncontrol.pages.formats import counted, duration, figure
from exporter.missioncontrol.pages.timeline.entry import (
    TEXT_MAX,
    Block,
    Data,
    Entry,
    Kind,
    Level,
    begin,
    block,
    inner,
    number_of,
    one_line,
    text_of,
)
from exporter.missioncontrol.store.amounts import amount

NOTIFICATION: Final = "system.notification"
_ASKED: Final = frozenset(f"{name}.requested" for name in ASKING)
_WORDS: Final = ("message", "content", "question", "summaryContent", "error", "reason", "intention", "title", "name")
_VALUE: Final = re.compile(r"\{([\w.]+)(\[\])?(?::([^}]+))?\}")


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the events of a type are shown."""

    kind: Kind
    title: str
    level: Level = ""
    facts: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    notes: dict[str, _Row]
    notifications: dict[str, str]
    quiet: frozenset[str]
    """Types of events for machines: they are shown by themselves only when everything is wanted."""
    stops: dict[str, tuple[str, ...]]
    """Types of events that may be a stop of each kind."""


@cache
def table() -> _Table:
    """Return what `wording.toml` says."""
    return msgspec.toml.decode(files(__package__).joinpath("wording.toml").read_bytes(), type=_Table)


def level_of(event_type: str, data: Data) -> Level | None:
    """Return how bad an event is that has an entry of these kinds; None for others."""
    row = table().notes.get(event_type)
    if row is None or (event_type == "hook.end" and data.get("success") is not False):
        return None
    if event_type == NOTIFICATION:
        kind = inner(data, "kind")
        if text_of(kind, "status") in ("failed", "error"):
            return "error"
        return "warning" if number_of(kind, "exitCode") else row.level
    if event_type == "permission.completed" and _decision(data).startswith("denied"):
        return "warning"
    if event_type == "session.shutdown" and data.get("shutdownType") == "error":
        return "error"
    return "error" if _has_not_compacted(event_type, data) else row.level


def note(envelope: Envelope, data: Data, place: tuple[int, int]) -> Entry | None:
    """Return the entry of an event of these kinds, or None for others."""
    level = level_of(envelope.type, data)
    if level is None:
        return None
    row = table().notes[envelope.type]
    entry = begin(row.kind, envelope, place, row.title)
    entry.level = level
    entry.text = _text(envelope.type, data)[:TEXT_MAX]
    entry.facts = [shown for pattern in row.facts if (shown := fact(pattern, data))]
    if envelope.type == NOTIFICATION and (name := text_of(inner(data, "kind"), "type")):
        entry.title = table().notifications.get(name) or name
    elif envelope.type == "permission.completed" and (decision := _decision(data)):
        entry.facts = [decision]
    elif _has_not_compacted(envelope.type, data):
        entry.title = "Compaction failed"
    return entry


def fact(pattern: str, data: Data) -> str:
    """Return a fact, which `wording.toml` describes, with its values; "" when one of them is missing."""
    text, wanted = _parsed(pattern)
    values = [_shown(data, *value) for value in wanted]
    return text.format(*values) if all(values) else ""


@cache
def _parsed(pattern: str) -> tuple[str, list[tuple[list[str], str, str]]]:
    """Return the text of a fact with a {} for each value; and the names, the mark of a list, and the form of each."""
    return _VALUE.sub("{}", pattern), [(path.split("."), mark, form) for path, mark, form in _VALUE.findall(pattern)]


def _shown(data: Data, path: list[str], is_list: str, form: str) -> str:
    *outer, name = path
    for one in outer:
        data = inner(data, one)
    if not form:
        return text_of(data, name)
    value = data.get(name)
    number = (len(value) or None if isinstance(value, list) else None) if is_list else amount(value)
    if number is None:
        return ""
    if form == "ms":
        return duration(number / 1000)
    if form.startswith("."):
        return format(number, form)
    return figure(number) if form == "#" else counted(number, form)


def _text(event_type: str, data: Data) -> str:
    if event_type == NOTIFICATION:
        return NOTIFICATION_TAG.sub("", text_of(data, "content")).strip()
    text = words(event_type, data) if event_type in _ASKED else ""
    return text or text_of(data, *_WORDS) or text_of(inner(data, "error"), "message")


def _has_not_compacted(event_type: str, data: Data) -> bool:
    return event_type == "session.compaction_complete" and data.get("success") is False


def _decision(data: Data) -> str:
    result = data.get("result")
    if isinstance(result, dict):
        result = result.get("kind")
    return result if isinstance(result, str) else ""


_TELLING: Final = ("command", "path", "file_path", "pattern", "query", "url", "description", "prompt", "intent")
_TEXTS: Final = ("content", "detailedContent", "message", "error")


def started(envelope: Envelope, data: Data, place: tuple[int, int]) -> Entry:
    """Return the entry of a tool call that begins."""
    entry = begin("tool", envelope, place, text_of(data, "toolName", "mcpToolName", "name") or "tool")
    entry.key = text_of(data, "toolCallId")
    entry.is_running = True
    arguments = data.get("arguments")
    if isinstance(arguments, dict):
        entry.line = one_line(text_of(arguments, *_TELLING) or _json(arguments))
        entry.text = text_of(arguments, "description")
        entry.blocks = _of_arguments(arguments, envelope.id)
    elif arguments is not None:
        text = arguments if isinstance(arguments, str) else _json(arguments)
        entry.line = one_line(text)
        entry.blocks = [block("arguments", text, envelope.id)]
    return entry


def completed(entry: Entry, envelope: Envelope, data: Data) -> None:
    """Take in how a tool call ended."""
    entry.end = envelope.timestamp
    entry.is_running = False
    if envelope.id not in entry.ids:
        entry.ids.append(envelope.id)
    code = number_of(inner(data, "shellExecution"), "exitCode")
    if code is not None:
        entry.facts.append(f"exit {code:.0f}")
    if data.get("success") is False:
        entry.level = "error"
        entry.facts.append("failed")
    elif code:
        entry.level = "warning"
    shown = _result(data)
    if shown:
        entry.blocks.append(block("result", shown, envelope.id))


def without_start(envelope: Envelope, data: Data, place: tuple[int, int]) -> Entry:
    """Return the entry of a tool call whose beginning is not in sight."""
    entry = begin("tool", envelope, place, text_of(data, "toolName") or "result of an earlier call")
    entry.key = text_of(data, "toolCallId")
    completed(entry, envelope, data)
    entry.at = envelope.timestamp
    entry.end = None
    return entry


def is_trouble(data: Data) -> bool:
    """Tell whether a tool call went wrong: it failed, or its command ended with another code than 0."""
    return data.get("success") is False or bool(number_of(inner(data, "shellExecution"), "exitCode"))


def _of_arguments(arguments: Data, event: str) -> list[Block]:
    blocks: list[Block] = []
    rest = dict(arguments)
    command = text_of(arguments, "command")
    if command:
        blocks.append(block("command", command, event))
        del rest["command"]
    for name, label in (("old_str", "before"), ("new_str", "after"), ("file_text", "text"), ("prompt", "prompt")):
        if isinstance(rest.get(name), str):
            blocks.append(block(label, rest.pop(name), event))
    rest.pop("description", None)
    if rest:
        blocks.insert(0 if not command else 1, block("arguments", _json(rest), event))
    return blocks


def _result(data: Data) -> str:
    result = data.get("result")
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        return text_of(result, *_TEXTS) or (_json(result) if result else "")
    error = data.get("error")
    if isinstance(error, dict):
        return text_of(error, "message") or _json(error)
    return error if isinstance(error, str) else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
