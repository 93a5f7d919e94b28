"""How far a token goes from where its pattern matches, and whether it is one."""

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from redaction.heuristics.samples import is_sequence_of_bases
from redaction.rules.rule import Spans
from redaction.rules.steps import Step, end_of, run_of, steps_of
from redaction.text.escapes import starts_word

_VARIED_LENGTH: Final = 16
# What stands in for characters that are not shown.
_MASKS: Final = b"xX*._-0#"
_BODY_LENGTH_MIN: Final = 16
_ESCAPED: Final = (b"\\n", b"\\r", b"\\t", b"\\b", b"\\f")
# What a long run of base64 ends with before a token that is found in it by chance.
_BASE64: Final = re.compile(
    rb"(?=[0-9A-Za-z+/]{0,31}[0-9])(?=[0-9A-Za-z+/]{0,31}[a-z])(?=[0-9A-Za-z+/]{0,31}[A-Z])[0-9A-Za-z+/]{31}[+/]\Z"
)
_BASE64_LENGTH: Final = 32
# A token that is glued to what stands before is part of a name if its words are no longer than this.
_WORD_LENGTH_MIN: Final = 10
# In the language of `shape`: what may hold a bracket that groups nothing, and one that captures.
_NO_GROUP: Final = re.compile(rb"\\.|\[[^\]]*\]")
_GROUP: Final = re.compile(rb"\((?!\?)")
# Where a match begins, where its secret begins and ends, and where the match ends.
Found: TypeAlias = tuple[int, int, int, int]


class TokenReader:
    """Says of the matches of one row's pattern how far their tokens go, and whether they are secrets."""

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
        # Most rules never meet a hit, and making all of them ready would take longer than starting up.
        self._steps: Sequence[Step] | None = ()
        self._rest: re.Pattern[bytes] | None = None
        self._compiled: re.Pattern[bytes] | None = None
        self._any_left, self._exact, self._check = any_left, exact, check

    def match(self, line: bytes, start: int) -> Found | None:
        """The match that begins there."""
        steps = self._steps
        if steps is not None and not steps:
            steps = self._steps = steps_of(self._source.decode())
        if steps is not None:
            end = end_of(steps, line, start)
            return (start, start, end, end) if end >= 0 else None
        found = self.pattern().match(line, start)
        return (start, *found.span(1), found.end()) if found is not None else None

    def pattern(self) -> re.Pattern[bytes]:
        """What to match; its group is the secret."""
        if self._compiled is None:
            has_group = _GROUP.search(_NO_GROUP.sub(b"", self._source)) is not None
            self._compiled = re.compile(self._source if has_group else b"(%b)" % self._source)
        return self._compiled

    def of(self, line: bytes, found: Found) -> tuple[Spans, int]:
        """The secret of a match, with all that may belong to it."""
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
            or not self._begins(line, begin, token)
            or _is_of_bases(token)
            or (self._check is not None and not self._check(token))
        ):
            return (), last
        return ((start, last),), last

    @property
    def may_hold_digits(self) -> bool:
        """Whether the row's values are drawn from digits, too."""
        return b"0-9" in self._source

    def _begins(self, line: bytes, start: int, token: bytes) -> bool:
        """Whether a token may begin here rather than in the middle of something else."""
        if start and line.startswith(_ESCAPED, start - 1) and line.startswith(self._source[:1], start):
            return False  # its first letter is the escape's
        if token.isalnum() and _BASE64.search(line, max(0, start - _BASE64_LENGTH), start):
            return False
        return starts_word(line, start) or (self._any_left and token.count(b"_") * _WORD_LENGTH_MIN <= len(token))


def _is_of_bases(token: bytes) -> bool:
    """Whether it is a sequence of bases, which some formats look like."""
    # Samples of documentation are masked like any other: nobody can tell them from a secret that looks like one.
    return len(token) >= _BODY_LENGTH_MIN and is_sequence_of_bases(token.decode("latin-1"))
