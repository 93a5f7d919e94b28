"""Seeded chance: random text of the documented alphabets, and the secrets that are drawn with it."""

import base64
import json
import random
import re
import string
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

LETTERS = string.ascii_letters
ALNUM = string.digits + LETTERS
CRC_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
ALPHABETS = {
    "d": string.digits,
    "x": "0123456789abcdef",
    "X": "0123456789ABCDEF",
    "a": string.ascii_lowercase,
    "A": string.ascii_uppercase,
    "m": LETTERS,
    "l": string.ascii_lowercase + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "w": ALNUM,
    "u": ALNUM + "-_",
    "b": ALNUM + "+/",
    "t": string.ascii_uppercase + "234567",
    "T": string.ascii_lowercase + "234567",
    "p": ALNUM + "_~.-",
    "c": BECH32,
    "s": ALNUM + "!#%*+-_.?^~@",
    "dna": "ACGT",
    "protein": "ACDEFGHIKLMNPQRSTVWY",
    "k": "abcdefghijklmnopqrstuvwxyz0123456789!@#$%^&*(-_=+)",
}
PLACE = re.compile(r"\{(~?)(\w+):(\d+)(?:-(\d+))?\}")  # after ~, a part that is no secret by itself
RUN_MIN = 5  # a run of more than four characters of the random part is a leak


@dataclass(frozen=True, slots=True)
class Secret:
    """A made-up secret: its text, the random runs in it that must not survive, and the names it usually goes by."""

    value: str
    parts: tuple[str, ...]
    names: tuple[str, ...] = ()
    bare: bool = True


class Dice(random.Random):
    """A generator that also draws text."""

    def of(self, alphabet: str, count: int) -> str:
        """So many characters of the named alphabet."""
        return "".join(self.choices(ALPHABETS[alphabet], k=count))

    def guid(self) -> str:
        """A random UUID in its usual spelling."""
        return str(uuid.UUID(bytes=self.randbytes(16), version=4))

    def piece(self, kind: str, low: int, high: int) -> str:
        """The text for one place of a pattern."""
        size = self.randint(low, high)
        match kind:
            case "uuid":
                return self.guid()
            case "b64":
                return base64.b64encode(self.randbytes(size)).decode()
            case "b64u":
                return base64.urlsafe_b64encode(self.randbytes(size)).decode().rstrip("=")
            case "word":
                return self.word()
            case "pw":
                return self.password()
            case "pp":
                return self.plain_password()
            case "hp":
                return self.human_password()
            case "basic":
                return base64.b64encode(f"{self.word()}:{self.plain_password()}".encode()).decode()
            case "b64pp":
                return base64.b64encode(self.plain_password().encode()).decode()
            case _:
                return self.of(kind, size)

    def fill(self, pattern: str) -> tuple[str, tuple[str, ...]]:
        """The pattern with every `{alphabet:length}` drawn, and what was drawn of the secret."""
        drawn: list[str] = []

        def one(match: re.Match[str]) -> str:
            low = int(match[3])
            text = self.piece(match[2], low, int(match[4] or low))
            if not match[1]:
                drawn.append(text)
            return text

        return PLACE.sub(one, pattern), tuple(drawn)

    def password(self) -> str:
        """A password as a generator makes it: all classes, and safe in quotes of every language."""
        return self.of("m", 2) + self.of("s", self.randint(9, 18)) + self.of("d", 2) + self.of("m", 1)

    def plain_password(self) -> str:
        """A password that needs no quotes and no escapes."""
        return self.of("m", 2) + self.of("w", self.randint(10, 18)) + self.of("d", 2)

    def human_password(self) -> str:
        """A password as a person makes it: two invented words, a number and a sign."""
        return self.word().title() + self.word().title() + self.of("d", self.randint(2, 4)) + self.choice("!#*.-")

    def word(self) -> str:
        """A pronounceable word that is in no dictionary."""
        return "".join(self.choice("bdfgklmnprstvz") + self.choice("aeiou") for _ in range(self.randint(2, 3)))


Make: TypeAlias = Callable[[Dice], Secret]


def crc_tail(text: str) -> str:
    """The six base-62 digits of the CRC32 that GitHub and npm put at the end of a token."""
    number, digits = zlib.crc32(text.encode()), ""
    while number:
        number, rest = divmod(number, 62)
        digits = CRC_DIGITS[rest] + digits
    return digits.rjust(6, "0")


def segment(value: object) -> str:
    """The value as a segment of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def bech32(prefix: str, dice: Dice, size: int) -> str:
    """Random bytes in bech32 with a valid checksum (BIP 173)."""
    bits = "".join(f"{byte:08b}" for byte in dice.randbytes(size))
    bits += "0" * (-len(bits) % 5)
    values = [int(bits[at : at + 5], 2) for at in range(0, len(bits), 5)]
    spread = [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]
    check = _polymod([*spread, *values, 0, 0, 0, 0, 0, 0]) ^ 1
    values += [(check >> 5 * (5 - at)) & 31 for at in range(6)]
    return prefix + "1" + "".join(BECH32[value] for value in values)


def _polymod(values: list[int]) -> int:
    factors = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
    check = 1
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for at, factor in enumerate(factors):
            if top >> at & 1:
                check ^= factor
    return check


def parse(table: str) -> dict[str, Make]:
    """The kinds of a table of lines `sign name | pattern | NAMES`; `+` is known by its form, `=` only by its name."""
    kinds: dict[str, Make] = {}
    for line in table.strip().splitlines():
        head, pattern, names = (column.strip() for column in line.split(" | "))
        kinds[head[1:].strip()] = drawn_from(pattern, tuple(names.split()), head.startswith("+"))
    return kinds


def drawn_from(pattern: str, names: tuple[str, ...], bare: bool) -> Make:
    """A maker of secrets of this pattern."""

    def make(dice: Dice) -> Secret:
        value, drawn = dice.fill(pattern)
        parts = tuple(part.rstrip("=") for part in drawn if len(part) >= RUN_MIN)
        return Secret(value, parts, names, bare)

    return make
