"""Quick checks that a value after the name of a secret is none: words, code, digests, salts, padding of base64."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.words import is_scrambled_member, share_of_words

# Most values are one of these: a call or a member, if there is no quote, or words.
_CODE = re.compile(rb"[A-Za-z_$][\w$]+(?:\.[A-Za-z_]\w*)*[(\[]|(?:[A-Za-z_]+\.)+[A-Za-z_]+(?=[\s,;)\]}\\\"'?:])")
_WORD = rb"(?:[A-Z][a-z]{1,11}+|[a-z]{1,12}+)"  # matches in one way only, or a flood of words would take long
_WORDS_OF_LETTERS = _WORD + rb"(?:(?:[ :.,_-]{1,2}|[!?] )" + _WORD + rb"){0,8}[ :.,!?=]{0,3}"
_WORDS = re.compile(_WORDS_OF_LETTERS + rb"(?=[\s\"'`\\,;)}\]<])")
_QUOTED_WORDS = re.compile(_WORDS_OF_LETTERS + rb"(?=[\"'`\\])")
_CALLS = (b"(", b"[")
_MAY_QUOTE = frozenset(b"\"'`\\")
# Before a name: says that the digest of a file with this name follows.
_DIGESTS = (
    rb"(?i)(?:\A|[^A-Za-z0-9]|\\[nrt])"
    rb"(?:md[245]|sha[-_]?\d{0,3}(?:[-_/]\d{3})?|blake\w{0,4}|rmd160|ripemd-?160|sm3|crc\d{0,2}|"
    rb"cksum|checksums?|digests?|integrity|etag|fingerprint)[-_]?(?:sum|digest)?"
)
DIGEST_NAME = re.compile(_DIGESTS + rb"(?![A-Za-z0-9])")
DIGESTED = re.compile(_DIGESTS + rb"[ \t]{0,4}(?:(?:of|for) |\([ \t]?)?[\w./~*+-]{0,100}\Z")
DIGESTED_LENGTH_MAX = 140
DIGEST = re.compile(rb"(?:[0-9a-fA-F]{8,128}|[A-Za-z0-9+/]{22,88}={0,2})(?![A-Za-z0-9+/_-])")
BASE64 = re.compile(rb"([A-Za-z0-9+/]{14,80})=\Z")
BASE64_LENGTH_MAX = 81
BASE64_WORDS_SHARE_MAX = 0.6
# The arguments of a key derivation function in its tests.
SALT = re.compile(rb"[0-9a-fA-F]{8,64}\\{0,15}[\"'],[ \t]{0,4}\d{1,7}[ \t]{0,4}[,)]")


def is_plain(line: bytes, start: int, demand: Demand, *, is_quoted: bool) -> bool:
    """Whether the value at `start`, assigned to a name with this demand, is words or code."""
    if is_quoted:
        return _QUOTED_WORDS.match(line, start) is not None
    if _WORDS.match(line, start):
        return True
    found = _CODE.match(line, start)
    if found is None or demand < Demand.PASSWORD or found.group().endswith(_CALLS):
        return found is not None
    return not is_scrambled_member(found.group().decode("ascii"))


def is_plain_for_any_name(line: bytes, start: int) -> bool:
    """Whether it is words or code for any name and any quote; much cheaper than finding out name and quote."""
    if _QUOTED_WORDS.match(line, start):
        return True
    if line[start - 1] in _MAY_QUOTE:
        return False
    if _WORDS.match(line, start):
        return True
    found = _CODE.match(line, start)
    return found is not None and found.group().endswith(_CALLS)


def is_digest(line: bytes, start: int, name_start: int, name_end: int) -> bool:
    """Whether the value at `start`, assigned to the name at this place, is the digest of a file."""
    return DIGEST.match(line, start) is not None and (
        DIGESTED.search(line, max(0, name_start - 1 - DIGESTED_LENGTH_MAX), name_start) is not None
        or DIGEST_NAME.search(line, name_end, start) is not None
    )


def is_salt(line: bytes, start: int) -> bool:
    """Whether the string at `start` is salt, because numbers follow it."""
    return SALT.match(line, start) is not None


def is_padding(line: bytes, end: int) -> bool:
    """Whether the `=` before `end` is padding of base64, which may end like a name."""
    run = BASE64.search(line, max(0, end - BASE64_LENGTH_MAX), end)
    if run is None:
        return False
    text = run[1].decode("ascii")
    is_mixed = text.lower() != text != text.upper() and any(map(str.isdigit, text))
    return is_mixed and share_of_words(text) < BASE64_WORDS_SHARE_MAX
