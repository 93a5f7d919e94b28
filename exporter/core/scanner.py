"""A strict JSON scanner that says where values begin and end, for what msgspec refuses.

msgspec refuses lone surrogate escapes, deep nesting and text after the first value, all of which real session files
hold. This scanner accepts exactly JSON's grammar with those three allowed. It is iterative, so depth costs memory
and not the stack, and it never builds objects: the bytes are the result.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

_WHITESPACE: Final = re.compile(rb"[ \t\r\n]*+")
STRING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_SCALAR: Final = re.compile(rb"true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")

_OPEN_OBJECT, _CLOSE_OBJECT = ord("{"), ord("}")
_OPEN_ARRAY, _CLOSE_ARRAY = ord("["), ord("]")
_COMMA, _COLON, _QUOTE = ord(","), ord(":"), ord('"')


_AS_ANY: Final[Mapping[bytes, Callable[[bytes, int], int]]] = {}


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


def _scan_scalar(text: bytes, position: int) -> int:
    if position < len(text) and text[position] == _QUOTE:
        return scan_string(text, position)
    match = _SCALAR.match(text, position)
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
        position = skip_whitespace(text, position)
        if position >= len(text):
            raise NotJsonError(position)
        byte, container = text[position], open_containers[-1]
        if byte == _COMMA:
            position = skip_whitespace(text, position + 1)
            return (_scan_key(text, position) if container == _OPEN_OBJECT else position), True
        if byte != (_CLOSE_OBJECT if container == _OPEN_OBJECT else _CLOSE_ARRAY):
            raise NotJsonError(position)
        open_containers.pop()
        position += 1
    return position, False


def scan_value(text: bytes, position: int = 0) -> int:
    """Return the position after the one JSON value that begins at `position`; raise `NotJsonError` where it breaks."""
    open_containers = bytearray()
    while True:
        byte = text[position] if position < len(text) else -1
        if byte in (_OPEN_OBJECT, _OPEN_ARRAY):
            inside = skip_whitespace(text, position + 1)
            closing = _CLOSE_OBJECT if byte == _OPEN_OBJECT else _CLOSE_ARRAY
            if inside < len(text) and text[inside] == closing:
                position = inside + 1
            else:
                open_containers.append(byte)
                position = _scan_key(text, inside) if byte == _OPEN_OBJECT else inside
                continue
        else:
            position = _scan_scalar(text, position)
        position, more = _after_value(text, position, open_containers)
        if not more:
            return position


def members(
    text: bytes, position: int = 0, scan: Mapping[bytes, Callable[[bytes, int], int]] = _AS_ANY
) -> tuple[dict[bytes, tuple[int, int]], int]:
    """Return the raw keys of the object at `position` with their value's span, and the position after the object.

    A key is given as its bytes between the quotes, undecoded; of a repeated key the last value counts, as in every
    common JSON reader. `scan` finds the end of the values of these keys in place of `scan_value`.
    """
    if position >= len(text) or text[position] != _OPEN_OBJECT:
        raise NotJsonError(position)
    found: dict[bytes, tuple[int, int]] = {}
    position = skip_whitespace(text, position + 1)
    if position < len(text) and text[position] == _CLOSE_OBJECT:
        return found, position + 1
    while True:
        start = _scan_key(text, position)
        key = text[position + 1 : scan_string(text, position) - 1]
        end = scan.get(key, scan_value)(text, start)
        found[key] = (start, end)
        position = skip_whitespace(text, end)
        if position < len(text) and text[position] == _CLOSE_OBJECT:
            return found, position + 1
        if position >= len(text) or text[position] != _COMMA:
            raise NotJsonError(position)
        position = skip_whitespace(text, position + 1)


def elements(text: bytes, position: int, count_max: int | None = None) -> tuple[list[tuple[int, int]], int]:
    """Return the span of each element of the array at `position`, and the position after the array.

    Raises `TooManyError` as soon as there are more than `count_max`.
    """
    if position >= len(text) or text[position] != _OPEN_ARRAY:
        raise NotJsonError(position)
    spans: list[tuple[int, int]] = []
    position = skip_whitespace(text, position + 1)
    if position < len(text) and text[position] == _CLOSE_ARRAY:
        return spans, position + 1
    while True:
        if len(spans) == count_max:
            raise TooManyError(len(spans))
        end = scan_value(text, position)
        spans.append((position, end))
        position = skip_whitespace(text, end)
        if position < len(text) and text[position] == _CLOSE_ARRAY:
            return spans, position + 1
        if position >= len(text) or text[position] != _COMMA:
            raise NotJsonError(position)
        position = skip_whitespace(text, position + 1)
