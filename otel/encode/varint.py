"""Protocol buffers by hand: the few pieces that OTLP is made of, written fast and read leniently.

Our own messages are joined from bytes. Received messages are untrusted: a message that makes no sense
has no fields; nothing here raises.
"""

from collections.abc import Generator
from typing import Final

INT64_MAX: Final = (1 << 63) - 1
INT64_MIN: Final = -(1 << 63)
UINT64_MAX: Final = (1 << 64) - 1

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _varint(number: int) -> bytes:
    if number < 1 << 14:
        return bytes((number & 0x7F | 0x80, number >> 7)) if number > 0x7F else bytes((number,))
    if number < 1 << 21:
        return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14))
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


_SMALL: Final = tuple(_varint(number) for number in range(4096))


def varint(number: int) -> bytes:
    """Return a whole number that is not negative as a varint."""
    return _SMALL[number] if number < 4096 else _varint(number)


def signed(number: int) -> bytes:
    """Return a whole number as an int64 varint; what is beyond 64 bits becomes the nearest that is not."""
    if number < 0:
        return _varint((max(number, INT64_MIN) + (1 << 64)) & UINT64_MAX)
    return varint(min(number, INT64_MAX))


def counted(tag: bytes, content: bytes) -> bytes:
    """Return a field of bytes, text or a message: its tag, its length and itself."""
    return tag + varint(len(content)) + content


def utf8(text: str) -> bytes:
    """Return text as UTF-8. Half of a surrogate pair, which UTF-8 has no bytes for, becomes U+FFFD; two halves join."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def is_message(message: bytes) -> bool:
    """Return whether these bytes are fields of protobuf from the first to the last."""
    found = fields(message)
    while True:
        try:
            next(found)
        except StopIteration as end:
            return bool(end.value)


def fields(message: bytes) -> "Generator[tuple[int, int | bytes], None, bool]":
    """Give the fields of a message in order, by number; ends at the first thing that is not one.

    The generator returns whether the fields fill the message.
    """
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            return False
        if kind == _VARINT:
            value, at = _read_varint(message, at)
            if at <= len(message):
                yield number, value
            continue
        if kind == _BYTES:
            size, at = _read_varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            return False
        if at + size > len(message):
            return False
        yield number, message[at : at + size]
        at += size
    return at == len(message)


def _read_varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a varint and where it ends, which is beyond the message when it does not end."""
    number = 0
    for shift, byte in zip(range(0, 70, 7), message[at : at + 10], strict=False):
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & UINT64_MAX, at + shift // 7 + 1
    return 0, len(message) + 1
