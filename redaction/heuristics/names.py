"""What a name demands of its value: a password may be short, a `key` must look like nothing but a secret."""

import re
from enum import IntEnum
from functools import lru_cache

from redaction.heuristics.words import alternatives, word_list

PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Demand(IntEnum):
    """How sure the name makes it that the value is a secret: the less sure, the more random the value must be."""

    NONE = 0
    WEAK = 1
    TOKEN = 2
    KEY = 3
    SECRET = 4
    PASSWORD = 5
    CERTAIN = 6
    """The place proves that a password is there; see `certain`."""


PASSWORDS = re.compile(
    r"(?:pass(?:word|wort|wd|w|phrase|code|key)|pwd|kennwort|contrasena|contrase|passwrd|passwords?|pword|userpass|dbpass)s?$"
)
SECRETS = re.compile(r"secrets?$")
KEYS = re.compile(rf"(?:{alternatives('joined_key_owners')})keys?$")
KEY_OWNERS = word_list("key_owners")
TOKENS = re.compile(r"(?:api|access|auth|authentication|authorization|bearer|refresh|id|bot|oauth|jwt|secret)tokens?$")
OTHERS = {
    **dict.fromkeys(("pass", "pw", "psw"), Demand.SECRET),
    **dict.fromkeys(word_list("token_names"), Demand.TOKEN),
    **dict.fromkeys(("pin", "session", "sas"), Demand.WEAK),
}
HARMLESS_BEFORE_KEY = word_list("harmless_before_key")
HARMLESS_BEFORE_TOKEN = word_list("harmless_before_token")
HARMLESS_AFTER = word_list("harmless_after")
QUALIFIERS = word_list("qualifiers")
FILE = re.compile(rf".*\.(?:{alternatives('file_endings')})".encode(), re.IGNORECASE)
SAYS_OTHERWISE = frozenset({"public", "publishable", "encrypted", "hashed", "sealed", "ciphertext"})
LIBRARIES = frozenset({"jsonwebtoken"})
AFTER_MAX = 4
NOUNS_OF_KEY = frozenset({"key", "keys"})
NOUNS_OF_TOKEN = frozenset({"token", "tokens"})


def _noun(parts: list[str], at: int) -> Demand | None:
    """What the part at this place demands; None if it is no noun for a secret."""
    part = parts[at]
    before = parts[at - 1] if at else ""
    if PASSWORDS.search(part):
        return Demand.PASSWORD
    if SECRETS.search(part):
        return Demand.SECRET
    if part in NOUNS_OF_KEY:
        if before == "secret":
            return Demand.SECRET
        if before in KEY_OWNERS:
            return Demand.KEY
        return Demand.NONE if before in HARMLESS_BEFORE_KEY else Demand.WEAK
    if part in NOUNS_OF_TOKEN:
        if before in HARMLESS_BEFORE_TOKEN:
            return Demand.NONE
        return Demand.KEY if at else Demand.TOKEN
    if KEYS.search(part) or TOKENS.search(part):
        return Demand.KEY
    if part.endswith(("token", "tokens")) and part not in LIBRARIES:
        return Demand.TOKEN
    return OTHERS.get(part)


@lru_cache(maxsize=4096)
def demand_of(name: bytes) -> Demand:
    """What the name demands of its value; NONE if the value is no secret whatever it looks like."""
    if FILE.fullmatch(name):
        return Demand.NONE
    parts = [part.lower() for part in PART.findall(name.decode("latin-1"))]
    unknown = 0
    for at in range(len(parts) - 1, max(-1, len(parts) - 2 - AFTER_MAX), -1):
        demand = _noun(parts, at)
        if demand is not None:
            if not SAYS_OTHERWISE.isdisjoint(parts):
                return Demand.NONE
            return demand if not unknown else min(demand, Demand.TOKEN)
        if parts[at] in HARMLESS_AFTER:
            return Demand.NONE
        if parts[at] not in QUALIFIERS and not parts[at].isdigit():
            unknown += 1
    return Demand.NONE
