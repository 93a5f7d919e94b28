"""What is said to and by a model, as the GenAI conventions and the CLI write it: JSON lists of messages and parts.

What is too long for a value is cut within its texts, so that what is left can still be parsed.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from otel.event import Event, items, payload
from otel.machines.traces.spans import TEXT_BYTES_MAX, cut
from otel.payloads import AssistantMessage, TextPayload

_Messages: TypeAlias = list[dict[str, Any]]
_TEXT_BYTES_LEAST: Final = 64


class _Request(msgspec.Struct, rename="camel"):
    tool_call_id: str | None = None
    name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")


def input_messages(event: Event) -> str | None:
    """Return what a `user.message` says, as the model gets it, or None when it says nothing."""
    said = payload(event, TextPayload)
    text = said.transformed_content or said.content
    return _fitting(text, lambda short, _: [{"role": "user", "parts": [_text(short)]}]) if text else None


def system_instructions(event: Event) -> str | None:
    """Return what a `system.message` says, or None when it says nothing. Instructions are parts, of no message."""
    text = payload(event, TextPayload).content
    return _fitting(text, lambda short, _: [_text(short)]) if text else None


def output_messages(event: Event, finished: str | None = None) -> str:
    """Return what an `assistant.message` says, what the model thought before, and the tools that it asks for.

    `finished` is why the answer ended, where that is to be told.
    """
    thought = payload(event, TextPayload).reasoning_text
    requests = items(payload(event, AssistantMessage).tool_requests, _Request)

    def build(text: str, bytes_max: int) -> _Messages:
        parts: list[dict[str, Any]] = [{"type": "reasoning", "content": cut(thought, bytes_max)}] if thought else []
        parts += [_text(text)] if text else []
        for one in requests:
            named = {"id": _short(one.tool_call_id, bytes_max), "name": _short(one.name, bytes_max)}
            parts.append({"type": "tool_call", **named, "arguments": _arguments(one.arguments, bytes_max)})
        return [{"role": "assistant", "parts": parts} | ({"finish_reason": finished} if finished else {})]

    return _fitting(payload(event, TextPayload).content or "", build)


def _fitting(text: str, build: Callable[[str, int], _Messages]) -> str:
    """Return what `build` makes of a text, and of how long its other texts may be, with room for it in a value."""
    bytes_max = TEXT_BYTES_MAX
    text = cut(text)
    written = msgspec.json.encode(build(text, bytes_max))
    while len(written) > TEXT_BYTES_MAX and bytes_max > _TEXT_BYTES_LEAST:
        bytes_max = bytes_max * 3 // 4
        written = msgspec.json.encode(build(cut(text, bytes_max), bytes_max))
    return written.decode()


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _short(text: str | None, bytes_max: int) -> str | None:
    return cut(text, bytes_max) if text is not None else None


def _arguments(arguments: msgspec.Raw, bytes_max: int) -> msgspec.Raw | str:
    """Return arguments as they are, or as a text that was cut when they are too long."""
    text = bytes(arguments)
    return arguments if len(text) <= bytes_max else cut(text.decode("utf-8", "replace"), bytes_max)
