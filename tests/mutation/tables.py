"""Places in tables of rules: expressions, counts, flags, and words of lists. What only says what a rule is stays."""

import re
from collections.abc import Iterator
from typing import Final

from tests.mutation.places import Place
from tests.mutation.regex import regex_choices

_SAID: Final = {b"id", b"provider", b"name", b"example", b"counter", b"source", b"version", b"extract"}
_WORD_LISTS: Final = {b"near", b"words", b"backwards"}
_ROW: Final = re.compile(
    rb"^#[^\n]*|^\[[^\n]*|^(?P<key>\w+) = (?P<value>'''.*?'''|\"\"\".*?\"\"\"|\[.*?\]$|[^\n]+)",
    re.MULTILINE | re.DOTALL,
)
_FORMAT: Final = re.compile(rb'\[\[format\]\]\nid = "([^"\n]+)"')
_LITERAL: Final = re.compile(rb"'''.*?'''|'[^'\n]*'|\"(?:\\.|[^\"\n\\])*\"", re.DOTALL)


def places(path: str, source: bytes) -> Iterator[Place]:
    for found in _ROW.finditer(source):
        if found["key"] is None or found["key"] in _SAID:
            continue
        for start, end, kind, choices in _of(found["key"], found["value"], found.start("value")):
            if choices:
                yield Place(path, source.count(b"\n", 0, start) + 1, start, end, kind, choices)


def row_of(place: Place, source: bytes) -> str:
    """The id of the format that the place is a part of; empty where rows depend on each other."""
    found = _FORMAT.match(source, max(0, source.rfind(b"[[format]]", 0, place.start)))
    return found[1].decode() if found else ""


def _of(key: bytes, value: bytes, at: int) -> Iterator[tuple[int, int, str, tuple[bytes, ...]]]:
    if value in (b"true", b"false"):
        yield at, at + len(value), "flag", (b"false" if value == b"true" else b"true",)
    elif value.isdigit():
        yield at, at + len(value), "constant", (b"%d" % (int(value) + 1), b"%d" % (int(value) - 1))
    elif value.startswith(b'"""'):
        yield at, at + len(value), "word", tuple(_without_one(rb"[^\s\"]+", value))
    elif key in _WORD_LISTS:
        yield at, at + len(value), "item", tuple(_without_one(rb"(?s:" + _LITERAL.pattern + rb"),?", value))
    elif value.startswith(b'"'):
        yield at - len(key) - 3, at + len(value), "dropped", (b"",)
    else:
        for literal in _LITERAL.finditer(value):
            for choices in regex_choices(literal[0]):
                yield at + literal.start(), at + literal.end(), "regex", choices


def _without_one(item: bytes, value: bytes) -> Iterator[bytes]:
    for one in re.finditer(item, value):
        yield value[: one.start()] + value[one.end() :]
