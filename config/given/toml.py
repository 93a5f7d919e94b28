"""TOML as text: the line of each key, which tomllib does not report, and values in TOML syntax."""

import bisect
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Place: TypeAlias = tuple[str | int, ...]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\r\n]*")
_STRINGS = (
    r'"""(?:[^"\\]|\\.|"(?!"")|"(?="""))*"""',
    r"'''(?:[^']|'(?!'')|'(?='''))*'''",
    r'"(?:[^"\\\n]|\\.)*"',
    r"'[^'\n]*'",
)
_STRING = re.compile("|".join(_STRINGS), re.DOTALL)


def key_lines(text: str) -> dict[Place, int]:
    """The line, from 1, of every key, table and array element; the text must be TOML that tomllib accepts."""
    return _Lines(text).found


def written(value: object) -> str:
    """The value as it is written in a TOML file, on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{_written_key(name)} = {written(held)}" for name, held in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, Sequence):
        return f"[{', '.join(written(held) for held in value)}]"
    raise TypeError(f"a setting never holds a {type(value).__name__}")


def _written_key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else written(name)


class _Lines:
    """One pass over a valid document. It skips values without checking them, which tomllib has done."""

    def __init__(self, text: str) -> None:
        self.found: dict[Place, int] = {}
        self._text = text
        self._at = 0
        self._line_ends = [found.start() for found in re.finditer("\n", text)]
        self._elements: dict[Place, int] = {}  # the number of tables of an array of tables so far
        table: Place = ()
        self._skip_space()
        while self._at < len(text):
            if self._next_is("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip_space()

    def _header(self) -> Place:
        line = self._line()
        is_element = self._take("[[")
        if not is_element:
            self._take("[")
        keys = self._keys()
        self._take("]]" if is_element else "]")
        place = self._inside(keys[:-1], line)
        last = (*place, keys[-1])
        if not is_element:
            place = self._inside(keys, line)
            self.found[place] = line
            return place
        self.found.setdefault(last, line)
        self._elements[last] = self._elements.get(last, 0) + 1
        element = (*last, self._elements[last] - 1)
        self.found[element] = line
        return element

    def _inside(self, keys: Sequence[str], line: int) -> Place:
        """The place of these keys; in an array of tables they lead into its latest table."""
        place: Place = ()
        for key in keys:
            place = (*place, key)
            self.found.setdefault(place, line)
            if place in self._elements:
                place = (*place, self._elements[place] - 1)
        return place

    def _pair(self, table: Place) -> None:
        line = self._line()
        place = table
        for key in self._keys():
            place = (*place, key)
            self.found.setdefault(place, line)
        self._take("=")
        self._skip_space()
        self._value(place)

    def _value(self, place: Place) -> None:
        if self._take("["):
            self._skip_space()
            index = 0
            while not self._take("]"):
                self.found[(*place, index)] = self._line()
                self._value((*place, index))
                self._take(",")
                index += 1
        elif self._take("{"):
            while not self._take("}"):
                self._pair(place)
                self._take(",")
        elif not self._match(_STRING):
            self._match(_SCALAR)
        self._skip_space()

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while self._take("."):
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        literal = self._match(_STRING) or self._match(_BARE_KEY)
        self._skip_space()
        return str(tomllib.loads(f"key = {literal}")["key"]) if literal[0] in "\"'" else literal

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _skip_space(self) -> None:
        self._match(_SPACE)

    def _next_is(self, mark: str) -> bool:
        return self._text.startswith(mark, self._at)

    def _take(self, mark: str) -> bool:
        if not self._next_is(mark):
            return False
        self._at += len(mark)
        self._skip_space()
        return True

    def _line(self) -> int:
        return bisect.bisect_left(self._line_ends, self._at) + 1
