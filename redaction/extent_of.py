"""How far a token goes from where its pattern matches, and whether it is one."""

import re
from collections.abc import Callable
from typing import Final

from redaction.raw import starts_word
from redaction.rule import Spans

_VARIED_LENGTH: Final = 16
# What stands in for characters that are not shown.
_MASKS: Final = b"xX*._-0#"


class Extent:
    """How far a match of a row's pattern goes, and whether it is a secret."""

    __slots__ = ("_any_left", "_check", "_compiled", "_exact", "_rest", "_source")

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
        self._rest = f"{last_class}*+".encode() if last_class else None
        # Most rules never meet a hit, and compiling all of them would take longer than starting up.
        self._compiled: tuple[re.Pattern[bytes], re.Pattern[bytes] | None] | None = None
        self._any_left, self._exact, self._check = any_left, exact, check

    def pattern(self) -> re.Pattern[bytes]:
        """What to match; its group is the secret."""
        if self._compiled is None:
            whole = re.compile(self._source)
            secret = whole if whole.groups else re.compile(b"(%b)" % self._source)
            self._compiled = secret, re.compile(self._rest) if self._rest else None
        return self._compiled[0]

    def of(self, line: bytes, found: re.Match[bytes]) -> tuple[Spans, int]:
        """The secret of a match, with all that may belong to it."""
        start, last = found.span(1)
        rest = self._compiled[1] if self._compiled is not None else None
        if rest is not None and last == found.end():
            run = rest.match(line, last)
            end = run.end() if run is not None else last
            if self._exact and end > last:
                return (), end
            last = end
        token = line[start:last]
        if (
            not token[-_VARIED_LENGTH:].strip(_MASKS)
            or (not self._any_left and not starts_word(line, found.start()))
            or (self._check is not None and not self._check(token))
        ):
            return (), last
        return ((start, last),), last
