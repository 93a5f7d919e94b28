"""Tool calls as a person reads them: what was asked for in one line, what came out, and whether it went well."""

import json
from typing import Final

from exporter.core.events.envelope import Envelope
from exporter.missioncontrol.pages.timeline.entry import (
    Block,
    Data,
    Entry,
    begin,
    block,
    inner,
    number_of,
    one_line,
    text_of,
)

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
