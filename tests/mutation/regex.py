"""Small mistakes in a regular expression, as text: a count, an alternative, a flag, a sign that repeats."""

import re
from collections.abc import Iterator
from typing import Final

_COUNT: Final = re.compile(rb"(?<!\\)\{(\d+)(?:(,)(\d*))?\}")
_REPEATED: Final = re.compile(rb"(?<![\\(+*?}|\[{,])([+*?])")
_FLAG: Final = re.compile(rb"\(\?i(:|\))")
_LOOK: Final = re.compile(rb"\(\?(<?)([=!])")
_CLASS: Final = re.compile(rb"(?<!\\)\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)


def regex_choices(text: bytes) -> list[tuple[bytes, ...]]:
    """The text with one mistake: for each sign where one can be made, what may be made there."""
    classes = [found.span() for found in _CLASS.finditer(text)]
    by_span: dict[tuple[int, int], list[bytes]] = {}
    for start, end, new in _changes(text, classes):
        by_span.setdefault((start, end), []).append(text[:start] + new + text[end:])
    return [tuple(choices) for choices in by_span.values()]


def _changes(text: bytes, classes: list[tuple[int, int]]) -> Iterator[tuple[int, int, bytes]]:
    def outside(found: re.Match[bytes]) -> bool:
        return not any(start <= found.start() < end for start, end in classes)

    for found in filter(outside, _COUNT.finditer(text)):
        least, comma, most = int(found[1]), found[2] or b"", found[3] or b""
        for change in (1, -1):
            if least + change >= 0 and (not most or least + change <= int(most)):
                yield *found.span(), b"{%d%s%s}" % (least + change, comma, most)
            if most and int(most) + change >= least:
                yield *found.span(), b"{%d,%d}" % (least, int(most) + change)
    for found in filter(outside, _REPEATED.finditer(text)):
        yield *found.span(), {b"+": b"*", b"*": b"+", b"?": b""}[found[1]]
    for found in filter(outside, _FLAG.finditer(text)):
        yield *found.span(), b"(?:" if found[1] == b":" else b""
    for found in filter(outside, _LOOK.finditer(text)):
        yield *found.span(), b"(?" + found[1] + (b"!" if found[2] == b"=" else b"=")
    yield from _alternatives(text, classes)
    for start, end in classes:
        if b"-" not in text[start + 1 : end - 1] and end - start > 4 and b"\\" not in text[start:end]:
            yield end - 2, end - 1, b""


def _alternatives(text: bytes, classes: list[tuple[int, int]]) -> Iterator[tuple[int, int, bytes]]:
    """Each alternative after a bar that holds no parentheses, dropped with its bar."""
    for found in re.finditer(rb"(?<!\\)\|((?:\\.|[^|()\\'\"\n\[\]]){1,60})(?=[|)]|['\"]+\Z)", text):
        if not any(start <= found.start() < end for start, end in classes):
            yield *found.span(), b""
