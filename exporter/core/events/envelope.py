"""Reading the envelope of an event, leniently: eight fields at most, `data` left as raw bytes.

`decode` is the fast path and answers for one line that holds one event. `pieces` is for the lines it refuses: it
finds whole events in a line that holds several, or one behind torn bytes, and names what is left.
"""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from exporter.core.events.json_scanner import DEPTH_MAX, NotJsonError, is_deeper, members, skip_whitespace

ID_LENGTH_MAX: Final = 512
_ENVELOPE_START: Final = b'{"type":"'
_ENVELOPE_KEYS: Final = frozenset((b"type", b"id", b"timestamp"))
# How often the rest of a line may be read again in search of a whole event; this keeps the search linear.
_READINGS_MAX: Final = 4


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What the exporter looks at in an event. Fields of another type than expected read as absent."""

    id: str
    type: str = ""
    timestamp: str = ""
    parentId: str | None = None  # noqa: N815  the wire's own name
    agentId: str | None = None  # noqa: N815  the wire's own name
    ephemeral: bool = False
    data: msgspec.Raw = msgspec.Raw()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Bytes that are not an event, with the reason and, where one can be made out, an id."""

    reason: str
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line, from `start` bytes after the line's beginning: an event, or what is none."""

    start: int
    raw: bytes = field(repr=False)
    envelope: Envelope | Unreadable


decode_envelope: Final = msgspec.json.Decoder(Envelope).decode
"""Decodes one line known to be valid UTF-8, at full speed; raises one of `REFUSALS` for what msgspec does not read.

The caller checks that the id is usable.
"""
_decode_text: Final = msgspec.json.Decoder(str).decode
# What msgspec raises on bytes it does not read; everything else would be a defect and is not caught.
REFUSALS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _reads_deep() -> bool:
    try:
        msgspec.json.decode(b"[" * 2_000 + b"]" * 2_000)
    except RecursionError:
        return False
    return True


_READS_DEEP: Final = _reads_deep()
"""Python before 3.13 refuses some 1,000 levels; from 3.13 on it reads as many as the stack of the thread holds."""


def is_too_deep(text: bytes, levels: int) -> bool:
    """Tell whether JSON nests in more levels than are read here, where the decoder does not refuse it by itself."""
    return _READS_DEEP and is_deeper(text, levels)


def is_utf8(line: bytes) -> bool:
    """Tell whether the bytes are valid UTF-8."""
    if line.isascii():
        return True
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def usable_id(text: str) -> bool:
    """Tell whether an id can be a key: not empty, not huge, and representable in UTF-8."""
    if not 0 < len(text) <= ID_LENGTH_MAX:
        return False
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def decode(line: bytes) -> Envelope | Unreadable:
    """Decode a line that should hold exactly one event. Never raises."""
    if not is_utf8(line):
        return Unreadable("not_utf8")
    try:
        envelope = decode_envelope(b"" if is_too_deep(line, DEPTH_MAX) else line)
    except REFUSALS:
        found = pieces(line)
        return found[0].envelope if len(found) == 1 else Unreadable("not_json")
    return envelope if usable_id(envelope.id) else Unreadable("bad_id")


def pieces(line: bytes) -> list[Piece]:
    """Split a line that msgspec refused into whole events and what is not one, in order. Never raises.

    A line of one event gives one piece; two events glued together give two; an event behind torn bytes or NULs
    gives the rubbish and the event. Every byte but whitespace is in some piece.
    """
    if not is_utf8(line):
        return [Piece(0, line, Unreadable("not_utf8"))]
    result: list[Piece] = []
    position = skip_whitespace(line, 0)
    while position < len(line):
        try:
            fields, end = members(line, position)
        except NotJsonError:
            resume = _next_event(line, position + 1)
            rubbish = line[position:resume]
            reason = "nul_bytes" if not rubbish.strip(b"\0 \t\r") else "not_json"
            result.append(Piece(position, rubbish, Unreadable(reason)))
            position = resume
            continue
        result.append(Piece(position, line[position:end], _from_fields(line, fields)))
        position = skip_whitespace(line, end)
    return result


def _next_event(line: bytes, position: int) -> int:
    """Return where the next whole event begins, or the end of the line when none does."""
    budget = _READINGS_MAX * (len(line) - position)
    while budget > 0 and (position := line.find(_ENVELOPE_START, position)) >= 0:
        try:
            fields, end = members(line, position)
        except NotJsonError as error:
            budget -= error.position - position
            position += 1
            continue
        rest = skip_whitespace(line, end)
        # An event that something else follows is part of what that belongs to.
        if fields.keys() >= _ENVELOPE_KEYS and (rest == len(line) or line[rest] in b"{\0"):
            return position
        budget -= end - position
        position = end
    return len(line)


def _from_fields(line: bytes, fields: dict[bytes, tuple[int, int]]) -> Envelope | Unreadable:
    if any(b"\\" in key for key in fields):
        fields = {_plain_key(key): span for key, span in fields.items()}

    def text(name: bytes) -> str | None:
        return _text(line[slice(*fields.get(name, (0, 0)))])

    identity = text(b"id")
    if identity is None:
        return Unreadable("bad_id" if b"id" in fields else "no_id")
    if not usable_id(identity):
        return Unreadable("bad_id")
    start, end = fields.get(b"ephemeral", (0, 0))
    data_start, data_end = fields.get(b"data", (0, 0))
    return Envelope(
        id=identity,
        type=text(b"type") or "",
        timestamp=text(b"timestamp") or "",
        parentId=text(b"parentId"),
        agentId=text(b"agentId"),
        ephemeral=line[start:end] == b"true",
        data=msgspec.Raw(line[data_start:data_end]),
    )


def _text(raw: bytes) -> str | None:
    """Return the text that is written so in JSON; None for what is no text."""
    try:
        return _decode_text(raw)
    except REFUSALS:
        return None


def _plain_key(key: bytes) -> bytes:
    """Return a key without escapes; as it is when it is no text."""
    plain = _text(b'"' + key + b'"')
    return key if plain is None else plain.encode()


DATA_DEPTH_MAX: Final = 500
"""How deep an object is that `read_object` reads: whoever walks it takes a frame of the stack for each level."""
_LEVELS_MAX: Final = 4
_DIGITS_MAX: Final = 4_000
# Escaped backslashes and whole pairs are skipped, so that the group matches half of a pair only.
_HALF: Final = re.compile(
    rb"(?:\\\\)++|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def read_object(data: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return the object that these bytes hold, empty when they hold none. Never raises.

    Half of a surrogate pair reads as U+FFFD, a number out of range as None. What nests too deep reads as None; the
    values beside it are read.
    """
    plain = bytes(data)
    try:
        return _decode(b"" if is_too_deep(plain, DATA_DEPTH_MAX) else plain)
    except REFUSALS:
        text = plain.strip(b" \t\r\n")
    if not text.startswith(b"{"):
        return {}
    value = _value(_HALF.sub(lambda found: b"\\ufffd" if found[1] else found[0], text), _LEVELS_MAX)
    return value if isinstance(value, dict) else {}


def _value(text: bytes, levels: int) -> Any:
    try:
        if not is_deeper(text, DATA_DEPTH_MAX):
            return _decode_leniently(text.decode("utf-8", "replace"))
    except ValueError:
        return None
    except RecursionError:
        pass  # whoever called is deep in the stack already
    return _around_deep(text, levels - 1) if levels and text.startswith(b"{") else None


def _around_deep(text: bytes, levels: int) -> dict[str, Any] | None:
    try:
        fields, _ = members(text)
    except NotJsonError:
        return None
    return {str(_value(b'"%b"' % key, 0)): _value(text[start:end], levels) for key, (start, end) in fields.items()}


def _integer(digits: str) -> int | None:
    return int(digits) if len(digits) <= _DIGITS_MAX else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


_decode_leniently: Final = json.JSONDecoder(
    parse_int=_integer, parse_float=_finite, parse_constant=lambda _: None
).decode
