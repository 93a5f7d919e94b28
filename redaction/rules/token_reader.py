"""Reads the token at a place: whether it matches its pattern, how far it goes, and whether it is a secret.

Most formats are literals and counted classes in a row. These are read as steps, without an expression of their own: to
compile one for each format that is met costs a hundred times what it takes to try it, and the expressions for runs of a
class are shared.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

from redaction.heuristics.placeholders import is_sequence_of_bases
from redaction.rules.rule import Extraction
from redaction.rules.shape import UNBOUNDED
from redaction.text.escapes import starts_word

_VARIED_LENGTH: Final = 16
# Characters that replace those that are not shown.
_MASKS: Final = b"xX*._-0#"
_BODY_LENGTH_MIN: Final = 16
_ESCAPED: Final = (b"\\n", b"\\r", b"\\t", b"\\b", b"\\f")
# The end of a long run of base64, in which a token is found by chance.
_BASE64: Final = re.compile(
    rb"(?=[0-9A-Za-z+/]{0,31}[0-9])(?=[0-9A-Za-z+/]{0,31}[a-z])(?=[0-9A-Za-z+/]{0,31}[A-Z])[0-9A-Za-z+/]{31}[+/]\Z"
)
_BASE64_LENGTH: Final = 32
# A token without a separator before it is part of a name if its words are no longer than this.
_WORD_LENGTH_MIN: Final = 10
# In the language of `shape`: items whose brackets do not group, and a bracket that captures.
_NO_GROUP: Final = re.compile(rb"\\.|\[[^\]]*\]")
_GROUP: Final = re.compile(rb"\((?!\?)")
# Where a match begins, where its secret begins and ends, and where the match ends.
Found: TypeAlias = tuple[int, int, int, int]
# A literal or, if that is empty, a run of characters: its matcher, the least and the most characters.
Step: TypeAlias = tuple[bytes, Callable[[bytes, int, int], re.Match[bytes] | None] | None, int, int]
_ITEM: Final = re.compile(r"(?:(\[[^\[\]\\]*\])|\\([^A-Za-z0-9])|([^\\\[\](){}|*+?.^$]))(?:\{(\d+)(?:(,)(\d*))?\})?")


@cache
def run_of(characters: str) -> re.Pattern[bytes]:
    """The expression for as many characters of a class as there are."""
    return re.compile(f"{characters}*+".encode())


def steps_of(pattern: str) -> tuple[Step, ...] | None:
    """The steps of a pattern of the language of `shape`.

    None if it is more than literals and counted classes of which only the last has a varying count.
    """
    steps: list[Step] = []
    literal = ""
    at = 0
    while at < len(pattern):
        item = _ITEM.match(pattern, at)
        if item is None or (steps and steps[-1][2] != steps[-1][3]):
            return None
        at = item.end()
        characters, escaped, plain, least, is_range, most = item.groups()
        if characters is None and least is None:
            literal += escaped or plain
            continue
        if literal:
            steps.append((literal.encode(), None, 0, 0))
            literal = ""
        fewest = int(least or 1)
        run = run_of(characters or f"[{re.escape(escaped or plain)}]")
        steps.append((b"", run.match, fewest, (int(most) if most else UNBOUNDED) if is_range else fewest))
    if literal:
        if steps and steps[-1][2] != steps[-1][3]:
            return None
        steps.append((literal.encode(), None, 0, 0))
    return tuple(steps)


def length_of(steps: Sequence[Step]) -> int | None:
    """The length of every match of the steps; None if it varies."""
    if any(least != most for _, _, least, most in steps):
        return None
    return sum(len(literal) or least for literal, _, least, _ in steps)


def end_of(steps: Sequence[Step], line: bytes, at: int) -> int:
    """Where the match ends that begins at this place, as of the compiled pattern; -1 if there is none."""
    for literal, run, least, most in steps:
        if run is None:
            if not line.startswith(literal, at):
                return -1
            at += len(literal)
        else:
            found = run(line, at, at + most)
            if found is None or found.end() < at + least:
                return -1
            at = found.end()
    return at


class TokenReader:
    """Reads the tokens of one format."""

    __slots__ = ("_any_left", "_check", "_compiled", "_exact", "_last_class", "_rest", "_source", "_steps")

    def __init__(
        self,
        pattern: str,
        last_class: str | None,
        *,
        exact: bool,
        any_left: bool,
        check: Callable[[bytes], bool] | None,
    ) -> None:
        self._source = pattern.encode()
        self._last_class = last_class
        # Prepared on first use: most rules never meet a hit.
        self._steps: Sequence[Step] | None = ()
        self._rest: re.Pattern[bytes] | None = None
        self._compiled: re.Pattern[bytes] | None = None
        self._any_left, self._exact, self._check = any_left, exact, check

    def match(self, line: bytes, start: int) -> Found | None:
        """The match that begins at this place."""
        steps = self._steps
        if steps is not None and not steps:
            steps = self._steps = steps_of(self._source.decode())
        if steps is not None:
            end = end_of(steps, line, start)
            return (start, start, end, end) if end >= 0 else None
        found = self.pattern().match(line, start)
        return (start, *found.span(1), found.end()) if found is not None else None

    def pattern(self) -> re.Pattern[bytes]:
        """The compiled pattern; its group is the secret."""
        if self._compiled is None:
            has_group = _GROUP.search(_NO_GROUP.sub(b"", self._source)) is not None
            self._compiled = re.compile(self._source if has_group else b"(%b)" % self._source)
        return self._compiled

    def of(self, line: bytes, found: Found) -> Extraction:
        """The secret of a match, with all characters that may belong to it."""
        begin, start, last, end_of_match = found
        if self._last_class is not None and last == end_of_match:
            rest = self._rest
            if rest is None:
                rest = self._rest = run_of(self._last_class)
            run = rest.match(line, last)
            end = run.end() if run is not None else last
            if self._exact and end > last:
                return (), end
            last = end
        token = line[start:last]
        if (
            not token[-_VARIED_LENGTH:].strip(_MASKS)
            or not self._may_begin(line, begin, token)
            or _is_of_bases(token)
            or (self._check is not None and not self._check(token))
        ):
            return (), last
        return ((start, last),), last

    @property
    def may_hold_digits(self) -> bool:
        """Whether the values of the format may contain digits."""
        return b"0-9" in self._source

    def _may_begin(self, line: bytes, start: int, token: bytes) -> bool:
        """Whether a token may begin here rather than in the middle of something else."""
        if start and line.startswith(_ESCAPED, start - 1) and line.startswith(self._source[:1], start):
            return False  # its first letter belongs to the escape
        if token.isalnum() and _BASE64.search(line, max(0, start - _BASE64_LENGTH), start):
            return False
        if starts_word(line, start):
            return True
        is_joined = line[start : start + 1].isalnum() or line.startswith(b"_", start)
        return self._any_left and (not is_joined or token.count(b"_") * _WORD_LENGTH_MIN <= len(token))


def _is_of_bases(token: bytes) -> bool:
    """Whether the token is a sequence of DNA bases, which some formats look like."""
    # Samples of documentation are masked too: nothing distinguishes them from a secret that looks alike.
    return len(token) >= _BODY_LENGTH_MIN and is_sequence_of_bases(token.decode("latin-1"))
