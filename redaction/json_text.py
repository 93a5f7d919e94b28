"""The strings of a JSON line by their places in the raw text, and the paths to those that matter; nothing is ever
re-serialised."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from redaction.views import View, plain, without_escapes

# A string and, for a member's key, its colon. An unterminated one ends with the text, so that a flood of quotes is
# read once.
STRING = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)("(?:[ \t\r\n]*+:)?|\\?\Z)', re.DOTALL)
# All that may stand between strings.
BETWEEN = re.compile(r"[ \t\r\n{}\[\],:0-9eE+.\-truefalsn]*+")
TOKEN = re.compile(r'[ \t\r\n]*+(?:("(?:[^"\\]*+(?:\\.[^"\\]*+)*+)")|([{}\[\],:])|([^\s{}\[\],:"]++))', re.DOTALL)
# What may come next.
VALUE, VALUE_OR_END, KEY, KEY_OR_END, COLON, COMMA, END = (
    "value",
    "value or end",
    "key",
    "key or end",
    "colon",
    "comma",
    "end",
)
VALUE_STATES = frozenset({VALUE, VALUE_OR_END})
KEY_STATES = frozenset({KEY, KEY_OR_END})
SCALAR = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null")


class NotJsonError(Exception):
    """The line is not one JSON value."""


@dataclass(frozen=True, slots=True)
class String:
    """A string's raw text without quotes, where it begins in the line, and the raw key it is the direct value of."""

    start: int
    raw: str
    is_key: bool
    key: str | None

    def view(self) -> View:
        """The decoded string; its positions lead back to the raw text."""
        return without_escapes(plain(self.raw)) if "\\" in self.raw else plain(self.raw)

    def decoded_key(self) -> str:
        """The key this string is the value of."""
        return decoded(self.key or "")


@dataclass(slots=True)
class Step:
    """One level of a path: an object's key and where it begins in the line, or an array's index."""

    is_object: bool
    name: str | int = ""
    key_start: int = -1


def decoded(raw: str) -> str:
    """A raw string without its escapes."""
    return without_escapes(plain(raw)).text if "\\" in raw else raw


def strings(line: str) -> Iterator[String]:
    """All strings of the line; raises `NotJsonError` where anything but JSON stands between them."""
    position = 0
    key: str | None = None
    key_end = -1
    for match in STRING.finditer(line):
        start, end = match.span()
        between = BETWEEN.match(line, position, start)
        if not match[2].startswith('"') or between is None or between.end() != start:
            raise NotJsonError
        is_key = len(match[2]) > 1
        belongs = key is not None and line[key_end:start].strip() == ""
        yield String(start + 1, match[1], is_key, key if belongs and not is_key else None)
        key, key_end = (match[1], end) if is_key else (None, -1)
        position = end
    between = BETWEEN.match(line, position)
    if between is None or between.end() != len(line):
        raise NotJsonError


def pointer(path: Sequence[Step], shown: Mapping[int, str]) -> str:
    """The path as a JSON Pointer; `shown` says what to write instead of the keys that begin at these places."""
    names = (shown.get(step.key_start, str(step.name)) for step in path)
    return "".join("/" + name.replace("~", "~0").replace("/", "~1") for name in names)


def paths(line: str, wanted: Collection[int]) -> dict[int, tuple[Step, ...]]:
    """The path to each wanted string (by where its text begins); a key's path ends with its own name.

    Raises `NotJsonError` unless the line is exactly one JSON value. Depth is bounded by memory only.
    """
    found: dict[int, tuple[Step, ...]] = {}
    stack: list[Step] = []
    state = VALUE
    position, length = 0, len(line.rstrip(" \t\r\n"))
    while position < length:
        match = TOKEN.match(line, position)
        if match is None:
            raise NotJsonError
        position = match.end()
        string, mark, scalar = match.groups()
        if string is not None:
            start = match.start(1) + 1
            if state in KEY_STATES:
                stack[-1] = Step(True, decoded(string[1:-1]), start)
            if start in wanted:
                found[start] = tuple(stack)
            state = _after_string(state, stack)
        elif mark is not None:
            state = _after_mark(state, stack, mark)
        elif state in VALUE_STATES and SCALAR.fullmatch(scalar):
            state = _after_value(stack)
        else:
            raise NotJsonError
    if state != END:
        raise NotJsonError
    return found


def _after_value(stack: list[Step]) -> str:
    return COMMA if stack else END


def _after_string(state: str, stack: list[Step]) -> str:
    if state in KEY_STATES:
        return COLON
    if state in VALUE_STATES:
        return _after_value(stack)
    raise NotJsonError


def _after_mark(state: str, stack: list[Step], mark: str) -> str:
    if mark in "{[" and state in VALUE_STATES:
        stack.append(Step(True) if mark == "{" else Step(False, 0))
        return KEY_OR_END if mark == "{" else VALUE_OR_END
    if mark == ":" and state == COLON:
        return VALUE
    if not stack:
        raise NotJsonError
    top = stack[-1]
    if mark == ("}" if top.is_object else "]") and state in (COMMA, KEY_OR_END, VALUE_OR_END):
        stack.pop()
        return _after_value(stack)
    if mark != "," or state != COMMA:
        raise NotJsonError
    if top.is_object:
        return KEY
    stack[-1] = Step(False, int(top.name) + 1)
    return VALUE
