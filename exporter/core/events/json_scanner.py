"""A strict JSON scanner that says where values begin and end, for what msgspec refuses.

msgspec refuses lone surrogate escapes, deep nesting and text after the first value, all of which real session files
hold. This scanner accepts exactly JSON's grammar with those three allowed. It is iterative, so depth costs memory and
not the stack, and it never builds objects: the bytes are the result.

Containers without nested containers are skipped by one regular expression. All else takes a step in Python for
each part, and one call takes no more than `STEPS_MAX` of them, nor more than `DEPTH_MAX` levels: what is beyond was
made to be slow. Real events have under a thousand such parts, and under a hundred levels.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

DEPTH_MAX: Final = 10_000
STEPS_MAX: Final = 200_000
"""About a quarter of a second."""

_GAP: Final = rb"[ \t\r\n]*+"
_TEXT: Final = rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_WORD: Final = rb"true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_WHITESPACE: Final = re.compile(_GAP)
STRING: Final = re.compile(_TEXT)
_SCALAR: Final = re.compile(_WORD)


def _container(value: bytes) -> bytes:
    """Return an expression for an array or object that holds such values; what matched is not tried in another way."""
    member = _TEXT + _GAP + rb":" + _GAP + value
    some = rb"%s(?>%s(?>%s,%s%s)*+)?+%s"
    in_array, in_object = (some % (_GAP, one, _GAP, _GAP, one, _GAP) for one in (value, member))
    return rb"\[%s\]|\{%s\}" % (in_array, in_object)


_PLAIN: Final = rb"(?>%s|%s)" % (_TEXT, _WORD)
_FLAT: Final = rb"(?>%s|%s|%s)" % (_TEXT, _WORD, _container(_PLAIN))
_VALUE: Final = re.compile(_FLAT)
_NEXT_ELEMENTS: Final = re.compile(rb"(?>%s,%s%s)*+" % (_GAP, _GAP, _FLAT))
_NEXT_MEMBERS: Final = re.compile(rb"(?>%s,%s%s%s:%s%s)*+" % (_GAP, _GAP, _TEXT, _GAP, _GAP, _FLAT))

_OPEN_OBJECT, _OPEN_ARRAY = ord("{"), ord("[")
_CLOSING: Final = {_OPEN_OBJECT: ord("}"), _OPEN_ARRAY: ord("]")}
_OPENING: Final = frozenset(_CLOSING)
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_INNERMOST: Final = re.compile(rb"\[\]|\{\}")
_PASSES: Final = 3
_QUOTED: Final = re.compile(rb'"[^"]*+"?')
_COMMA, _COLON = ord(","), ord(":")


class Steps:
    """How many more steps may be taken."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = STEPS_MAX


Scan: TypeAlias = Callable[[bytes, int, Steps], int]
_AS_ANY: Final[Mapping[bytes, Scan]] = {}


class NotJsonError(ValueError):
    """The bytes at `position` do not continue a JSON value."""

    def __init__(self, position: int) -> None:
        super().__init__(f"not JSON at byte {position}")
        self.position = position


class TooManyError(ValueError):
    """There are more than `count_max` of something."""

    def __init__(self, count_max: int) -> None:
        super().__init__(f"more than {count_max}")
        self.count_max = count_max


def is_deeper(text: bytes, levels: int) -> bool:
    """Tell whether JSON nests in more levels than these. Never raises; of what is not JSON it tells a guess."""
    if len(text) <= levels or text.count(b"{") + text.count(b"[") <= levels:
        return False
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_BRACKETS)
    brackets = _QUOTED.sub(b"", plain)
    for taken in range(_PASSES):  # each takes the innermost level away, which is most of what there is
        if taken + len(brackets) // 2 <= levels:
            return False
        brackets = _INNERMOST.sub(b"", brackets)
    depth = deepest = 0
    for byte in brackets:
        depth += 1 if byte in _OPENING else -1
        deepest = max(deepest, depth)
    return deepest + _PASSES > levels


def skip_whitespace(text: bytes, position: int) -> int:
    """Return the first position at or after `position` that is not JSON whitespace."""
    match = _WHITESPACE.match(text, position)
    assert match is not None
    return match.end()


def scan_string(text: bytes, position: int) -> int:
    """Return the position after the string that begins at `position`."""
    match = STRING.match(text, position)
    if match is None:
        raise NotJsonError(position)
    return match.end()


def _scan_key(text: bytes, position: int) -> int:
    """Return the position of the value that belongs to the key at `position`."""
    position = skip_whitespace(text, scan_string(text, position))
    if position >= len(text) or text[position] != _COLON:
        raise NotJsonError(position)
    return skip_whitespace(text, position + 1)


def _after_value(text: bytes, position: int, open_containers: bytearray) -> tuple[int, bool]:
    """Close what closes after a value; return the position of the next value and whether one follows."""
    while open_containers:
        container = open_containers[-1]
        flat = (_NEXT_MEMBERS if container == _OPEN_OBJECT else _NEXT_ELEMENTS).match(text, position)
        assert flat is not None
        position = skip_whitespace(text, flat.end())
        if position >= len(text):
            raise NotJsonError(position)
        byte = text[position]
        if byte == _COMMA:
            position = skip_whitespace(text, position + 1)
            return (_scan_key(text, position) if container == _OPEN_OBJECT else position), True
        if byte != _CLOSING[container]:
            raise NotJsonError(position)
        open_containers.pop()
        position += 1
    return position, False


def scan_value(text: bytes, position: int = 0, steps: Steps | None = None) -> int:
    """Return the position after the one JSON value that begins at `position`; raise `NotJsonError` where it breaks."""
    open_containers = bytearray()
    steps = steps or Steps()
    while True:
        steps.left -= 1
        if steps.left < 0 or len(open_containers) >= DEPTH_MAX:
            raise NotJsonError(position)
        value = _VALUE.match(text, position)
        if value is None:
            byte = text[position] if position < len(text) else -1
            if byte not in _CLOSING:
                raise NotJsonError(position)
            # It holds containers, so it is not empty.
            open_containers.append(byte)
            position = skip_whitespace(text, position + 1)
            if byte == _OPEN_OBJECT:
                position = _scan_key(text, position)
            continue
        position, more = _after_value(text, value.end(), open_containers)
        if not more:
            return position


def members(
    text: bytes, position: int = 0, scan: Mapping[bytes, Scan] = _AS_ANY
) -> tuple[dict[bytes, tuple[int, int]], int]:
    """Return the raw keys of the object at `position` with their value's span, and the position after the object.

    A key is given as its bytes between the quotes, undecoded; of a repeated key the last value counts, as in every
    common JSON reader. `scan` finds the end of the values of these keys in place of `scan_value`.
    """
    found, end = _entries(text, position, _OPEN_OBJECT, Steps(), scan)
    return dict(found), end


def elements(
    text: bytes, position: int, count_max: int | None = None, steps: Steps | None = None
) -> tuple[list[tuple[int, int]], int]:
    """Return the span of each element of the array at `position`, and the position after the array.

    Raises `TooManyError` as soon as there are more than `count_max`.
    """
    found, end = _entries(text, position, _OPEN_ARRAY, steps or Steps(), _AS_ANY, count_max)
    return [span for _, span in found], end


def _entries(
    text: bytes, position: int, opening: int, steps: Steps, scan: Mapping[bytes, Scan], count_max: int | None = None
) -> tuple[list[tuple[bytes, tuple[int, int]]], int]:
    """Return the key, empty in an array, and the span of each value in the container, and the position after it."""
    if position >= len(text) or text[position] != opening:
        raise NotJsonError(position)
    closing = _CLOSING[opening]
    found: list[tuple[bytes, tuple[int, int]]] = []
    position = skip_whitespace(text, position + 1)
    if position < len(text) and text[position] == closing:
        return found, position + 1
    while True:
        if len(found) == count_max:
            raise TooManyError(len(found))
        key, start = b"", position
        if opening == _OPEN_OBJECT:
            start = _scan_key(text, position)
            key = text[position + 1 : scan_string(text, position) - 1]
        end = scan.get(key, scan_value)(text, start, steps)
        found.append((key, (start, end)))
        position = skip_whitespace(text, end)
        if position < len(text) and text[position] == closing:
            return found, position + 1
        if position >= len(text) or text[position] != _COMMA:
            raise NotJsonError(position)
        position = skip_whitespace(text, position + 1)
