"""Bytes seen without escapes, colours or hidden characters, with every position traceable to the original."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from redaction.text.escapes import unescaped as raw_unescaped

Replacement: TypeAlias = tuple[int, int, bytes]

# One level of backslash escapes as JSON has them; any other escaped character stands for itself.
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIMPLE: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_ESCAPE_CHARACTER: Final = rb"(?:\x1b|\\{1,15}(?:u001[bB]|x1[bB]|033|e))"
# Terminal control sequences, the escape character itself or as JSON, shells and sources spell it; printable
# characters that are spelled as numbers.
_HIDDEN: Final = re.compile(
    _ESCAPE_CHARACTER + rb"(?:\[[0-9;:?]{0,24}[A-Za-z]|\][^\x07\x1b\\\n]{0,256}\x07)|\\{1,15}u00([2-7][0-9a-fA-F])"
)
HIDDEN_GATES: Final = (r"\\u00(?:1[bB]|[2-7][0-9a-fA-F])", r"\x1b[\[\]]", r"\\(?:x1[bB]|033|e)\[")
"""Expressions of which one ends in every line that `revealed` changes."""


class View:
    """Bytes in which parts of an original were replaced; `origin` answers where a span came from."""

    __slots__ = ("_at", "_end", "_parent", "_source", "data")

    def __init__(self, original: bytes, replacements: Iterable[Replacement], parent: "View | None" = None) -> None:
        """`replacements` are (start, end, new bytes) in the original, in order and not overlapping."""
        pieces: list[bytes] = []
        self._at: list[int] = []
        self._source: list[int] = []
        self._end: list[int] = []  # 0 where the segment is copied one to one
        self._parent = parent
        length = position = 0
        for start, end, new in replacements:
            if start > position:
                self._add(length, position, 0)
                pieces.append(original[position:start])
                length += start - position
            if new:
                self._add(length, start, end)
                pieces.append(new)
                length += len(new)
            position = end
        self._add(length, position, 0)
        pieces.append(original[position:])
        self.data = b"".join(pieces)

    def _add(self, at: int, source: int, end: int) -> None:
        self._at.append(at)
        self._source.append(source)
        self._end.append(end)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The span of the outermost original that became `start:end` here (not empty)."""
        first = bisect_right(self._at, start) - 1
        last = bisect_right(self._at, end - 1) - 1
        source_start = self._source[first] + (0 if self._end[first] else start - self._at[first])
        source_end = self._end[last] or self._source[last] + end - self._at[last]
        if self._parent is None:
            return source_start, source_end
        return self._parent.origin(source_start, source_end)


def revealed(line: bytes) -> View:
    """The line without colours and with characters that were spelled as numbers; for looking at only."""
    return View(
        line,
        (
            (found.start(), found.end(), bytes((int(found[1], 16),)) if found[1] else b"")
            for found in _HIDDEN.finditer(line)
        ),
    )


def plain(raw: bytes) -> bytes:
    """A secret as its owner knows it: without the escapes and colours that the line has."""
    if b"\\" not in raw and b"\x1b" not in raw:
        return raw
    return raw_unescaped(revealed(raw).data).encode("utf-8", "surrogatepass")


def unescaped(data: bytes, depth: int) -> Iterator[View]:
    """The data as it is and, while there is something to resolve, with up to `depth` levels of escapes fewer."""
    view = View(data, ())
    yield view
    for _ in range(depth):
        if b"\\" not in view.data:
            return
        view = View(view.data, _resolved(view.data), view)
        yield view


def _resolved(data: bytes) -> Iterator[Replacement]:
    for found in _ESCAPE.finditer(data):
        code, simple = found.groups()
        new = chr(int(code, 16)).encode("utf-8", "surrogatepass") if code else _SIMPLE.get(simple, simple)
        yield found.start(), found.end(), new


def snapped(line: bytes, start: int, end: int) -> tuple[int, int]:
    """The span widened at its start and narrowed at its end so that no escape of the line is cut in two."""
    slash = line.rfind(b"\\", max(0, start - 6), start)
    if slash >= 0:
        run = slash
        while run > 0 and line[run - 1] == 0x5C:
            run -= 1
        escape = _ESCAPE.match(line, slash) if (slash - run) % 2 == 0 else None
        if escape is not None and escape.end() > start:
            start = escape.start()
    tail = end
    while tail > start and line[tail - 1] == 0x5C:
        tail -= 1
    return start, end - (end - tail) % 2
