"""Structure that proves a token: checksums and decodable parts.

A failed check makes a finding less sure; if the format says that the check must pass, there is no finding.
"""

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from redaction.heuristics.words import share_of_words

_BASE62: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BASE58: Final = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_CHECKSUM_LENGTH: Final = 6
_CHECKED_LENGTH: Final = 36  # of the part after `ghp_`, with its checksum
_NAME_WORDS_SHARE_MIN: Final = 0.6
_ORDINARY: Final = bytes.maketrans(b"-_", b"+/")  # from base64 for URLs


def base62_crc32(data: bytes) -> bytes:
    """CRC32 as six digits to base 62, as GitHub and npm append it to their tokens."""
    rest = zlib.crc32(data)
    digits = bytearray()
    for _ in range(_CHECKSUM_LENGTH):
        rest, digit = divmod(rest, len(_BASE62))
        digits.append(_BASE62[digit])
    return bytes(reversed(digits))


def base58_checked(body: bytes) -> bytes:
    """The bytes and their checksum to base 58, as Bitcoin writes keys."""
    number = int.from_bytes(body + hashlib.sha256(hashlib.sha256(body).digest()).digest()[:4], "big")
    digits = bytearray()
    while number:
        number, digit = divmod(number, len(BASE58))
        digits.append(BASE58[digit])
    return bytes(reversed(digits))


def has_phrase_checksum(numbers: Sequence[int]) -> bool:
    """Whether words of BIP 39 with these numbers, 12 to 24 of them, end with their own checksum."""
    bits = len(numbers) // 3
    whole = 0
    for number in numbers:
        whole = whole << 11 | number
    body = (whole >> bits).to_bytes(4 * bits, "big")
    return hashlib.sha256(body).digest()[0] >> (8 - bits) == whole & ((1 << bits) - 1)


def ends_with_crc32(token: bytes) -> bool:
    """Whether the part after the last underscore ends with its own checksum, or does so before text that adjoins it."""
    body = token.rpartition(b"_")[2]
    return _is_checked(body) or _is_checked(body[:_CHECKED_LENGTH])


def _is_checked(body: bytes) -> bool:
    return base62_crc32(body[:-_CHECKSUM_LENGTH]) == body[-_CHECKSUM_LENGTH:]


def is_base64(text: bytes) -> bool:
    """Whether an encoder of either alphabet wrote the text: whole bytes, no bits left over, padding in full or none."""
    decoded = decoded_base64(text)
    if decoded is None:
        return False
    encoded = base64.b64encode(decoded)
    written = text.translate(_ORDINARY)
    return written in (encoded, encoded.rstrip(b"="))


def decoded_base64(text: bytes) -> bytes | None:
    """The bytes that base64 of either alphabet, padded or not, encodes; None if it is not base64."""
    body = text.rstrip(b"=").translate(_ORDINARY)
    try:
        return base64.b64decode(body + b"=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def is_web_token(token: bytes) -> bool:
    """Whether the first part decodes to the header of a JSON web token."""
    header = decoded_base64(token.partition(b".")[0])
    try:
        names = json.loads(header) if header else None
    except (ValueError, RecursionError):
        return False
    return isinstance(names, dict) and not names.keys().isdisjoint(("alg", "typ", "enc", "kid", "cty"))


def passes_luhn(number: bytes) -> bool:
    """Whether the check digit is right."""
    digits = [byte - 48 for byte in number if 48 <= byte <= 57]
    odd, even = digits[-1::-2], digits[-2::-2]
    return len(digits) > 1 and (sum(odd) + sum(sum(divmod(2 * digit, 10)) for digit in even)) % 10 == 0


def is_no_name(token: bytes) -> bool:
    """Whether the part after the last dot has a digit, or its letters are no words."""
    body = token.rpartition(b".")[2].decode("latin-1")
    return any(map(str.isdigit, body)) or share_of_words(body) < _NAME_WORDS_SHARE_MIN


CHECKS: Final[Mapping[str, Callable[[bytes], bool]]] = {
    "crc32": ends_with_crc32,
    "base64": is_base64,
    "jwt": is_web_token,
    "luhn": passes_luhn,
    "no-name": is_no_name,
}
"""The checks that formats can name."""

PROOFS: Final = frozenset(("crc32", "jwt"))
"""The checks that no text passes by chance."""
