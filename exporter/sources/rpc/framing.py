"""Cuts a byte stream into the messages of LSP-style framing: headers with a Content-Length, an empty line, the body.

Between two chunks it holds at most `body_bytes_max` of a body and `HEADER_BYTES_MAX` of a header, whatever length is
announced: the body of a longer message is skipped as it arrives and reported by its size and beginning.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

HEADER_BYTES_MAX: Final = 8192
HEAD_BYTES: Final = 256
_SKIPPED_BYTES_MAX: Final = 1 << 40
_DIGITS_MAX: Final = 13


class FramingError(Exception):
    """The bytes are not framed, so nothing after them can be read. The message says why and never quotes them."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """A message that was skipped because of its size, with its first bytes."""

    size: int
    head: bytes = field(repr=False)


Message: TypeAlias = bytes | TooLong


def frame(body: bytes) -> bytes:
    """Return a message with its header."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Framer:
    """Returns whole messages in order, however the chunks are cut. It cannot be used after a `FramingError`."""

    __slots__ = ("_body_bytes_max", "_held", "_length", "_skipped")

    def __init__(self, body_bytes_max: int) -> None:
        self._body_bytes_max = body_bytes_max
        self._held = bytearray()
        self._length: int | None = None  # of the body that is being read; None while in the header
        self._skipped = 0

    @property
    def held(self) -> int:
        """Return how many bytes of an incomplete message are held."""
        return len(self._held)

    def feed(self, chunk: bytes) -> list[Message]:
        """Return the messages that `chunk` completes. Raises `FramingError`."""
        messages: list[Message] = []
        self._held += chunk
        while (length := self._body_length()) is not None:
            is_too_long = length > self._body_bytes_max
            if is_too_long:
                excess = max(0, min(len(self._held), length - self._skipped) - HEAD_BYTES)
                del self._held[HEAD_BYTES : HEAD_BYTES + excess]
                self._skipped += excess
            end = length - self._skipped
            if len(self._held) < end:
                break
            body = bytes(self._held[:end])
            del self._held[:end]
            messages.append(TooLong(length, body) if is_too_long else body)
            self._length, self._skipped = None, 0
        return messages

    def _body_length(self) -> int | None:
        """Return the length of the body that is being read, None while its header is not complete."""
        if self._length is None:
            end = self._held.find(b"\r\n\r\n", 0, HEADER_BYTES_MAX + 4)
            if end >= 0:
                self._length = _content_length(bytes(self._held[:end]))
                del self._held[: end + 4]
            elif len(self._held) >= HEADER_BYTES_MAX:
                raise FramingError("a header is longer than any header is")
            elif not _may_be_header(self._held):
                raise FramingError("what came is no header")
        return self._length


def _may_be_header(held: bytearray) -> bool:
    """Tell whether a header may begin like this: another protocol is detected at its first line, not after 8 KiB."""
    line = held.partition(b"\r\n")[0]
    return b"\n" not in line and (len(line) < 64 or b":" in line)


def _content_length(header: bytes) -> int:
    lengths = set()
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            raise FramingError("a line of a header has no colon")
        if name.strip().lower() == b"content-length":
            digits = value.strip()
            if not digits.isdigit() or len(digits) > _DIGITS_MAX:
                raise FramingError("a Content-Length is no length")
            lengths.add(int(digits))
    if len(lengths) != 1:
        raise FramingError("a header has no Content-Length, or two of them")
    (length,) = lengths
    if length > _SKIPPED_BYTES_MAX:
        raise FramingError("a Content-Length is no length")
    return length
