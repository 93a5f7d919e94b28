"""Which of many values are in some bytes."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from redaction.prefilter.gate import HyperscanGate

_OURS: Final = re.compile(
    rb"\[REDACTED:[a-z0-9.-]+:[0-9a-f]{8}\]|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|call_[0-9a-f]{16}"
)
"""A short value of hexadecimal digits may be in a tag of a marker, or in an id of an event or a call, by chance."""
_AROUND: Final = 80
_PIECE_BYTES: Final = 8 << 20


def words_of_ours(data: bytes) -> set[str]:
    """Return the words of our markers and ids in some bytes, as the index of the store has them."""
    return {word.decode() for one in _OURS.findall(data) for word in re.findall(rb"[0-9a-z]+", one.lower())}


class Search:
    """Looks for all of these values at once."""

    def __init__(self, values: Iterable[str]) -> None:
        self._values = sorted({value.encode() for value in values})
        self._longest = max(map(len, self._values))
        self._gate = HyperscanGate(self._values, None, literal=True)

    def found(self, place: str, data: bytes) -> Iterator[str]:
        """Yield where a value is, with what stands around it."""
        for begin in range(0, len(data), _PIECE_BYTES):
            piece = data[max(0, begin - self._longest) : begin + _PIECE_BYTES]
            for number, end in self._gate.hits(piece):
                value = self._values[number]
                around = piece[max(0, end - len(value) - _AROUND) : end + _AROUND]
                if value in _OURS.sub(b"", around):
                    yield f"{place}: {value.decode()} in {around!r}"
