"""Views of raw bytes without escapes, colours or percent-encoding; every position maps back to the original."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from redaction.text.escapes import unescaped as raw_unescaped

Replacement: TypeAlias = tuple[int, int, bytes]

# One level of backslash escapes of JSON; any other escaped character means itself.
_ESCAPE: Final = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SIMPLE: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_ESCAPE_CHARACTER: Final = rb"(?:\x1b|\\{1,15}(?:u001[bB]|x1[bB]|033|e))"
# Terminal control sequences, with the escape character itself or as JSON, shells and programs write it; printable
# characters that are written as numbers.
_HIDDEN: Final = re.compile(
    _ESCAPE_CHARACTER
    + rb"(?:\[[0-9;:?]{0,24}[A-Za-z]|\][^\x07\x1b\\\n]{0,256}\x07)"
    # A printable character, a letter beyond ASCII, or a quote, a dash or an arrow as sentences have them.
    + rb"|\\{1,15}u(00[2-7][0-9a-fA-F]|00[aAbB][bB]|201[0-9a-fA-F]|2192"
    + rb"|(?:00[c-fC-F]|0[1-9a-fA-F][0-9a-fA-F]|[13-9a-cA-C][0-9a-fA-F]{2}"
    + rb"|[dD][0-7][0-9a-fA-F])[0-9a-fA-F])"
)
# The words for a password that have letters beyond ASCII, as far as they tell.
_WORDS_ABROAD: Final = (
    "se\u00f1a \u00f6senord as\u0142o jelsz\u00f3 \u015fifre \u015eifre \u1eadt \u043f\u0430\u0440\u043e "
    "\u041f\u0430\u0440\u043e \u03ba\u03c9\u03b4\u03b9\u03ba \u5bc6\u7801 \u5bc6\u78bc \u53e3\u4ee4 \u30d1\u30b9\u30ef "
    "\ube44\ubc00\ubc88 \uc554\ud638 \u0e23\u0e2b\u0e31 \u092a\u093e\u0938\u0935 "
    "\u0643\u0644\u0645\u0629 \u05e1\u05d9\u05e1\u05de\u05d4"
)
HIDDEN_GATES: Final = (
    r"\\u00(?:1[bB]|[2-7][0-9a-fA-F])",
    r"\x1b[\[\]]",
    r"\\(?:x1[bB]|033|e)\[",
    # Other letters count in those words and before a host.
    r":\\{0,8}/\\{0,8}/[\w.%$-]*:[^\s\"'`<>/@\\]*\\+u[0-9a-fA-F]{4}",
    # In a password after a name, an option or a verb.
    r"(?i:pass|pwd|secret)\w*[\"'`\\]*[ ]?(?:[:=> ]|is)*[\"'`\\]*[\w!#$%&*+,.-]*\\+u[0-9a-fA-F]{4}",
    r" [/-](?:p|pw|a|u|P|w|U)[: ]?[\"'\\]*[\w.@-]*:?[\w!#$%&*+.-]*\\+u[0-9a-fA-F]{4}",
    # In a verb behind such a word.
    r"(?i:passw|senha|parola|heslo|clave|passe|kennwort|kode|sandi)[\w' .-]*[ ]\\+u(?:00e[89]|00ab|201[89a-e]|2192)",
    *(
        "".join(letter if letter.isascii() else rf"\\+u{ord(letter):04x}" for letter in word).removeprefix(r"\\+")
        for word in _WORDS_ABROAD.split()
    ),
)
"""Expressions of which one matches in every line that `revealed` changes."""

_PERCENT_CODE: Final = re.compile(rb"%(?:25)?([0-7][0-9A-Fa-f])|\\{1,15}/(?=[0-9A-Za-z+=\\])")
PERCENT_GATES: Final = (
    r"%(?:25)?(?:3[aAdD]|22|2[bBfF6]|20|0[aA])[0-9A-Za-z%+/]",
    r"[0-9A-Za-z+]{4}\\{1,15}/[0-9A-Za-z+]{4}",
    r"[0-9]\\{1,15}/(?:\\{1,15}/)?[0-9A-Za-z]{4}",
)
"""Expressions of which one matches in every line with a percent-encoded name, separator or value."""


class View:
    """Bytes in which parts of an original were replaced; `origin` maps a span back."""

    __slots__ = ("_at", "_end", "_parent", "_source", "data")

    def __init__(self, original: bytes, replacements: Iterable[Replacement], parent: "View | None" = None) -> None:
        """`replacements` are (start, end, new bytes) in the original, in order and not overlapping."""
        pieces: list[bytes] = []
        self._at: list[int] = []
        self._source: list[int] = []
        self._end: list[int] = []  # 0 if the piece is copied unchanged
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
        """The span of the outermost original that became `start:end` here, which is not empty."""
        first = bisect_right(self._at, start) - 1
        last = bisect_right(self._at, end - 1) - 1
        source_start = self._source[first] + (0 if self._end[first] else start - self._at[first])
        source_end = self._end[last] or self._source[last] + end - self._at[last]
        if self._parent is None:
            return source_start, source_end
        return self._parent.origin(source_start, source_end)


def revealed(line: bytes) -> View:
    """The line without colours and with the characters that were written as numbers; to be examined only."""
    return View(
        line,
        (
            (found.start(), found.end(), chr(int(found[1], 16)).encode() if found[1] else b"")
            for found in _HIDDEN.finditer(line)
        ),
    )


def percent_revealed(line: bytes) -> View:
    """The line with characters in place of percent codes and escaped slashes; to be examined only."""
    return View(
        line,
        (
            (found.start(), found.end(), bytes((int(found[1], 16),)) if found[1] else b"/")
            for found in _PERCENT_CODE.finditer(line)
        ),
    )


def plain(raw: bytes) -> bytes:
    """A secret as its owner knows it, without the escapes and colours of the line."""
    if b"\\" not in raw and b"\x1b" not in raw:
        return raw
    return raw_unescaped(revealed(raw).data).encode("utf-8", "surrogatepass")


def unescaped(data: bytes, depth: int) -> Iterator[View]:
    """The data as it is and then, while it has escapes, with one level of escapes less, at most `depth` times."""
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
    """The span, wider at its start and narrower at its end where it would cut an escape of the line in two."""
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
