"""Expands templates of tokens, so that no file holds anything that looks like a secret.

`<base62:30>` stands for thirty characters of that alphabet, which depend on the template and a seed only.
"""

import hashlib
import json
import re
from base64 import urlsafe_b64encode
from typing import Final

from mnemonic import Mnemonic

from redaction.rules.checks import base58_checked, base62_crc32

_DIGITS: Final = "0123456789"
_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_UPPER: Final = _LOWER.upper()
ALPHABETS: Final = {
    "digits": _DIGITS,
    "lower": _LOWER,
    "upper": _UPPER,
    "letters": _LOWER + _UPPER,
    "base62": _DIGITS + _UPPER + _LOWER,
    "base64": _DIGITS + _UPPER + _LOWER + "+/",
    "base64url": _DIGITS + _UPPER + _LOWER + "-_",
    "base36": _DIGITS + _LOWER,
    "BASE36": _DIGITS + _UPPER,
    "base32": _UPPER + "234567",
    "hex": _DIGITS + "abcdef",
    "HEX": _DIGITS + "ABCDEF",
}
_PART: Final = re.compile(r"<([A-Za-z0-9]+)(?::(\d+))?>")
_TOKEN_TAIL: Final = re.compile(r"[0-9A-Za-z]*\Z")


class _Source:
    """Pseudo-random numbers from a seed."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0
        self._bytes = b""

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1, limit being at most 256."""
        while True:
            if not self._bytes:
                self._bytes = hashlib.sha512(f"{self._seed}/{self._count}".encode()).digest()
                self._count += 1
            value, self._bytes = self._bytes[0], self._bytes[1:]
            if value < 256 - 256 % limit:
                return value % limit

    def text(self, alphabet: str, length: int) -> str:
        """A text of this many characters of the alphabet."""
        return "".join(alphabet[self.below(len(alphabet))] for _ in range(length))


def _web_token(source: _Source) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": source.text(_DIGITS, 10), "iat": 1760000000})
    body = [urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*body, source.text(ALPHABETS["base64url"], 43)))


def _uuid(source: _Source) -> str:
    return "-".join(source.text(ALPHABETS["hex"], length) for length in (8, 4, 4, 4, 12))


def expanded(template: str, seed: str = "") -> str:
    """The text of a template; raises `KeyError` for an unknown alphabet."""
    source = _Source(f"{template}/{seed}")
    text, position = "", 0
    for part in _PART.finditer(template):
        text += template[position : part.start()]
        position = part.end()
        kind, length = part[1], int(part[2] or 0)
        if kind == "jwt":
            text += _web_token(source)
        elif kind == "uuid":
            text += _uuid(source)
        elif kind == "wif":
            text += base58_checked(bytes((128, *(source.below(256) for _ in range(32)), 1))).decode()
        elif kind == "bip39":
            text += Mnemonic("english").to_mnemonic(bytes(source.below(256) for _ in range(length * 4 // 3)))
        elif kind == "bytes":
            text += ",".join(str(source.below(256)) for _ in range(length))
        elif kind == "crc32":
            tail = _TOKEN_TAIL.search(text)
            text += base62_crc32((tail.group() if tail else "").encode()).decode()
        else:
            text += source.text(ALPHABETS[kind], length or 1)
    return text + template[position:]
