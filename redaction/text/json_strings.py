"""A strict scanner for the strings of a JSON line: their places and paths. Nothing is ever serialised again.

Two readings: `string_around` and `strings` look near a span and need a line that `check` has accepted; `paths` scans
the whole line and is itself strict. `exporter.core.events.json_scanner` scans for other results (spans of values,
bounded steps), and neither package may import the other.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from redaction.errors import InvalidJsonError

# A string and, of a key, its colon. A string without an end reaches to the end of the line, so that a flood of quotes
# is read once.
_STRING: Final = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)("(?:[ \t\r\n]*+:)?|\\?\Z)', re.DOTALL)
_QUOTE: Final = b'"'
# What follows the quote that closes a string.
_CLOSED: Final = re.compile(rb"[ \t\r\n]*+(?:[,\]}:]|\Z)")
_KEY_LENGTH: Final = 160
# A quote that is not escaped, read backwards.
_UNESCAPED: Final = re.compile(rb'"(?=((?:\\\\)*+)(?!\\))')
_NEAR_LENGTH: Final = 1024
_QUOTES_TRIED: Final = 64
_BACKSLASH: Final = 0x5C
_TOKEN: Final = re.compile(
    rb'[ \t\r\n]*+(?:("(?:[^"\\]*+(?:\\.[^"\\]*+)*+)")|([{}\[\],:])|([^\s{}\[\],:"]++))', re.DOTALL
)
# What may come next.
VALUE, VALUE_OR_END, KEY, KEY_OR_END = "value", "value or end", "key", "key or end"
COLON, COMMA, END = "colon", "comma", "end"
VALUE_STATES = frozenset({VALUE, VALUE_OR_END})
KEY_STATES = frozenset({KEY, KEY_OR_END})
_SCALAR: Final = re.compile(rb"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null")
_ESCAPES: Final = re.compile(rb'[^\\]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^\\]*+)*+')
_VALIDATOR: Final = msgspec.json.Decoder(msgspec.Raw)


class String(NamedTuple):  # made in half the time of a frozen dataclass
    """Where the text of a string begins and ends in the line, and the key whose direct value it is, if any.

    The end is None if it was not needed; of a key it is always known.
    """

    start: int
    end: int | None
    is_key: bool
    key: bytes | None


@dataclass(slots=True)
class PathStep:
    """One level of a path: an object's key and where it begins in the line, or an array's index."""

    is_object: bool
    name: str | int = ""
    key_start: int = -1


def decoded(raw: bytes) -> str:
    """The raw text of a JSON string, decoded; raises `InvalidJsonError` for an escape that JSON does not have."""
    if b"\\" not in raw:
        return raw.decode("utf-8", "replace")
    try:
        return str(json.loads(b'"%b"' % raw, strict=False))
    except ValueError as error:
        raise InvalidJsonError from error


def check(line: bytes) -> None:
    """Raise `InvalidJsonError` unless the line is exactly one JSON value in UTF-8."""
    try:
        text = line.decode()
        if b"\\" in line and _ESCAPES.fullmatch(line) is None:  # the validator does not check strings that it skips
            raise InvalidJsonError
        _VALIDATOR.decode(line)
    except UnicodeDecodeError as error:
        raise InvalidJsonError from error
    except msgspec.DecodeError:
        _check_again(line, text)
    except RecursionError:
        paths(line, ())


def _check_again(line: bytes, text: str) -> None:
    """The same with a parser that accepts lone surrogates, numbers of any size, and any depth."""
    try:
        _TOLERANT.decode(text)
    except RecursionError:
        paths(line, ())
    except ValueError as error:
        raise InvalidJsonError from error


def _refuse(_name: str) -> None:
    """NaN and Infinity are not JSON."""
    raise ValueError


_TOLERANT: Final = json.JSONDecoder(parse_float=len, parse_int=len, parse_constant=_refuse, strict=False)


def string_around(line: bytes, start: int, end: int) -> String | None:
    """The string of a checked line that holds a span, if the bytes near it show that it is the value of a member."""
    if line.find(_QUOTE, start, end) >= 0:
        return None
    begin, key = _near(line, start)
    return String(begin + 1, None, False, key) if key is not None else None


def text_of(line: bytes, string: String) -> bytes:
    """The raw text of a string of a checked line."""
    if string.end is not None:
        return line[string.start : string.end]
    found = _STRING.match(line, string.start - 1)
    return found[1] if found is not None else b""


def strings(line: bytes, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[String, int, int]]:
    """The strings of a checked line that overlap a span, with their ends and the number of the first such span.

    The spans are in order and do not overlap.
    """
    number = 0
    begin, key = _near(line, spans[0][0]) if spans else (0, None)
    before: re.Match[bytes] | None = None
    for found in _STRING.finditer(line, begin):
        start, end = found.span(1)
        while number < len(spans) and spans[number][1] <= start:
            number += 1
        if number == len(spans):
            return
        if spans[number][0] < end:
            is_key = len(found[2]) > 1
            if before is not None:
                key = _key_of(line, before, found)
            yield String(start, end, is_key, None if is_key else key), end, number
        before = found


def _near(line: bytes, place: int) -> tuple[int, bytes | None]:
    """Where the string begins that holds this place, and its key; the beginning of the line if that is not clear."""
    at = _quote_before(line, place)
    # A quote that cannot close a string opens one.
    if at < 0 or _CLOSED.match(line, at + 1):
        return 0, None
    head = line[max(0, at - _KEY_LENGTH) : at].rstrip()
    if not head.endswith(b":"):
        return at, None
    key = _last_string(head[:-1].rstrip())
    return (at, key) if key is not None else (0, None)


def _quote_before(line: bytes, place: int) -> int:
    """The place of the last unescaped quote before this place; -1 if there is none near enough."""
    lowest = max(0, place - _NEAR_LENGTH)
    found = _UNESCAPED.search(line[lowest:place][::-1])
    if found is not None and (lowest == 0 or found.end(1) < place - lowest):
        return place - found.end()
    at = place if found is not None else lowest
    for _ in range(_QUOTES_TRIED):
        at = line.rfind(_QUOTE, 0, at)
        run = at
        while run > 0 and line[run - 1] == _BACKSLASH:
            run -= 1
        if (at - run) % 2 == 0:
            return at
        at = run
    return -1


def _last_string(head: bytes) -> bytes | None:
    """The text of the string at the end, unless something in it is escaped."""
    opened = head.rfind(_QUOTE, 0, -1)
    if opened < 0 or not head.endswith(_QUOTE) or (opened and head[opened - 1] == _BACKSLASH):
        return None
    text = head[opened + 1 : -1]
    return text if b"\\" not in text else None


def _key_of(line: bytes, before: re.Match[bytes], found: re.Match[bytes]) -> bytes | None:
    if len(before[2]) < 2 or line[before.end() : found.start()].strip():
        return None
    return before[1]


def pointer(path: Sequence[PathStep], shown: Mapping[int, str]) -> str:
    """The path as a JSON Pointer; `shown` says what to write instead of the keys that begin at these places."""
    names = (shown.get(step.key_start, str(step.name)) for step in path)
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def paths(line: bytes, wanted: Collection[int]) -> dict[int, tuple[PathStep, ...]]:
    """The path to each wanted string (by where its text begins); a key's path ends with its own name.

    Raises `InvalidJsonError` unless the line is exactly one JSON value. Depth is bounded by memory only.
    """
    found: dict[int, tuple[PathStep, ...]] = {}
    stack: list[PathStep] = []
    state = VALUE
    position, length = 0, len(line.rstrip(b" \t\r\n"))
    while position < length:
        match = _TOKEN.match(line, position)
        if match is None:
            raise InvalidJsonError
        position = match.end()
        string, mark, scalar = match.groups()
        if string is not None:
            start = match.start(1) + 1
            if state in KEY_STATES:
                stack[-1] = PathStep(True, decoded(string[1:-1]), start)
            if start in wanted:
                found[start] = tuple(stack)
            state = _after_string(state, stack)
        elif mark is not None:
            state = _after_mark(state, stack, mark)
        elif state in VALUE_STATES and _SCALAR.fullmatch(scalar):
            state = _after_value(stack)
        else:
            raise InvalidJsonError
    if state != END:
        raise InvalidJsonError
    return found


def _after_value(stack: list[PathStep]) -> str:
    return COMMA if stack else END


def _after_string(state: str, stack: list[PathStep]) -> str:
    if state in KEY_STATES:
        return COLON
    if state in VALUE_STATES:
        return _after_value(stack)
    raise InvalidJsonError


def _after_mark(state: str, stack: list[PathStep], mark: bytes) -> str:
    if mark in b"{[" and state in VALUE_STATES:
        stack.append(PathStep(True) if mark == b"{" else PathStep(False, 0))
        return KEY_OR_END if mark == b"{" else VALUE_OR_END
    if mark == b":" and state == COLON:
        return VALUE
    if not stack:
        raise InvalidJsonError
    top = stack[-1]
    if mark == (b"}" if top.is_object else b"]") and state in (COMMA, KEY_OR_END, VALUE_OR_END):
        stack.pop()
        return _after_value(stack)
    if mark != b"," or state != COMMA:
        raise InvalidJsonError
    if top.is_object:
        return KEY
    stack[-1] = PathStep(False, int(top.name) + 1)
    return VALUE
