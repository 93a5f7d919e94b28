"""A string seen without its escapes, colours or masked parts, with every position traceable to the original.

A secret may be written with JSON escapes (several levels deep) or with terminal colours inside it. Rules stay
simple because they read a view of the text; what they find is mapped back, and only whole escapes are ever replaced
in the original.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

# One level of backslash escapes as JSON has them; any other escaped character stands for itself.
ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
# Terminal control sequences, with the escape character itself or as shells and sources spell it.
ANSI = re.compile(r"(?:\x1b|(?<!\\)\\++(?:x1b|u001b|033|e))(?:\[[0-9;?]{0,24}[A-Za-z]|\][^\x07\x1b\\\n]{0,256}\x07)")
LEVELS_MAX = 4

Replacement = tuple[int, int, str]


class View:
    """Text in which parts of an original were replaced; `origin` answers where a span came from."""

    __slots__ = ("_at", "_end", "_source", "parent", "text")

    def __init__(self, original: str, replacements: Iterable[Replacement], parent: "View | None" = None) -> None:
        """`replacements` are (start, end, new text) in the original, in order and not overlapping."""
        pieces: list[str] = []
        self._at: list[int] = []
        self._source: list[int] = []
        self._end: list[int] = []  # 0 where the segment is copied one to one
        self.parent = parent
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
        self.text = "".join(pieces)

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
        if self.parent is None:
            return source_start, source_end
        return self.parent.origin(source_start, source_end)


def plain(text: str) -> View:
    """The text as it is."""
    return View(text, ())


def _unescaped(text: str) -> Iterator[Replacement]:
    for match in ESCAPE.finditer(text):
        code, simple = match.groups()
        yield match.start(), match.end(), chr(int(code, 16)) if code else SIMPLE.get(simple, simple)


def without_escapes(view: View) -> View:
    """One level of escapes resolved."""
    return View(view.text, _unescaped(view.text), view)


def without_colours(view: View) -> View:
    """Terminal control sequences taken out."""
    return View(view.text, ((match.start(), match.end(), "") for match in ANSI.finditer(view.text)), view)


def layers(view: View) -> Iterator[View]:
    """The view itself and then, while there is something to resolve, without colours and with fewer escapes."""
    for _ in range(LEVELS_MAX):
        yield view
        if ("\x1b" in view.text or "\\" in view.text) and ANSI.search(view.text):
            yield without_colours(view)
        if not ESCAPE.search(view.text):
            return
        view = without_escapes(view)


def snap(text: str, start: int, end: int) -> tuple[int, int]:
    """The span widened at its start and narrowed at its end so that no escape sequence of `text` is cut in two."""
    window = text.rfind("\\", max(0, start - 6), start)
    if window >= 0:
        run = window
        while run > 0 and text[run - 1] == "\\":
            run -= 1
        first = run + (window - run) // 2 * 2  # the backslash that begins the escape, if the run is odd
        match = ESCAPE.match(text, first) if (window - run) % 2 == 0 else None
        if match is not None and match.end() > start:
            start = match.start()
    tail = end
    while tail > start and text[tail - 1] == "\\":
        tail -= 1
    return start, end - (end - tail) % 2
