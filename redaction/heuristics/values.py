"""A value at its place in a line: where it ends, whether it was cut off, and whether it is a secret.

The quick checks tell without a decision that a value after the name of a secret is none: words, code, digests, salts,
padding of base64.
"""

import re
from typing import Final

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement, is_secret
from redaction.heuristics.words import is_scrambled_member, segments, share_of_words
from redaction.text.escapes import opening_quote, unescaped
from redaction.text.extent import extent

EXAMINED_LENGTH_MAX = 64  # of a longer value only the beginning is examined

# Letters whose case changes more often than in any name that is made of words.
_LETTERS = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z_.-]{8,}")
_OUTER_END = re.compile(rb"\\+(?:\"|\Z)")
_PART_LENGTH_MAX = 2.7
_RUN: Final = re.compile(rb"[0-9A-Za-z_+/=.~%-]{0,1024}+")
# Says that something was left out here.
_LEFT_OUT: Final = re.compile(
    rb"(?:\s|\\{1,15}[nrt]){0,4}+(?:\.\.|\xe2\x80\xa6|\\{1,15}u2026"
    rb"|[\[(<{*#=-]{1,5} ?[\w ,.:%+-]{0,40}?(?i:trunc|cut|omit|more|snip|elid|clip|exceed|too l|limit|chars)"
    rb"|[\[(<{]{1,3} ?(?:\.\.\.|\xe2\x80\xa6)"
    rb"|(?i:[\w ]{0,20}(?:truncated|omitted|too long|exceeded)))"
)
_JSON: Final = (b"{", b"[", b'"')


def value_span(line: bytes, start: int) -> tuple[int, int]:
    """The span of the value that starts there, up to the closing quote or to the end of the word."""
    quote = opening_quote(line, start)
    value = extent(line, start, quote)
    if quote and not line.startswith(quote, value.end):
        # It was cut off: a quote of the text around it ends it, perhaps after half an escape.
        cut = _OUTER_END.search(line, start, value.end)
        return start, cut.start() if cut else value.end
    return start, value.end


def in_marker(line: bytes, at: int) -> bool:
    """Whether this place is within a marker of a secret that is masked already."""
    opened = line.rfind(b"[REDACTED:", max(0, at - 80), at)
    return opened >= 0 and line.find(b"]", opened, at) < 0


def is_value(raw: bytes, demand: Demand, placement: Placement = Placement.QUOTED) -> bool:
    """Whether the raw value is a secret, by what its name demands and by its placement in the text."""
    text = unescaped(raw[: 2 * EXAMINED_LENGTH_MAX])[:EXAMINED_LENGTH_MAX]
    if is_secret(text, demand, placement):
        return True
    if not Demand.KEY <= demand < Demand.CERTAIN or not _is_scrambled(text):
        return False
    # A member of an object with a short name, as minified code has it.
    return placement is Placement.QUOTED or demand_of(text.rpartition(".")[2].encode()) < Demand.TOKEN


def _is_scrambled(text: str) -> bool:
    if _LETTERS.fullmatch(text) is None:
        return False
    parts = segments(text)
    return sum(map(len, parts)) < _PART_LENGTH_MAX * len(parts)


def cut_end(line: bytes, at: int) -> int:
    """Where the token that continues at `at` ends, if the text ends there or says that it was cut off; else -1."""
    run = _RUN.match(line, at)
    end = run.end() if run is not None else at
    last = end
    while last > at and line[last - 1 : last] == b".":
        last -= 1
    if end == len(line) or end - last > 1 or _LEFT_OUT.match(line, end):
        return last
    return last if line[end : end + 1] == b'"' and line.startswith(_JSON) else -1


def looks_random(part: bytes) -> bool:
    """Whether the rest of a token that was cut off is random."""
    return is_secret(unescaped(part), Demand.TOKEN)


# Most values are one of these: a call or a member, if there is no quote, or words.
_CODE = re.compile(
    rb"[A-Za-z_$][\w$]+(?:(?:\.|::)[A-Za-z_]\w*)*[(\[]|[A-Za-z_$]\((?=\(|function\b)|![01](?=[;,)}=])|!![A-Za-z_$]|[A-Za-z_$]\w{0,20}(?:\.\w{1,40})+=[\w$.]{1,40}\(|-\["
    rb"|(?:[A-Za-z_]+\.)+[A-Za-z_]+(?=[\s,;)\]}\\\"'?:])"
)
_WORD = rb"(?:[A-Z][a-z]{1,11}+|[a-z]{1,12}+)"  # matches in one way only, or a flood of words would take long
_WORDS_OF_LETTERS = _WORD + rb"(?:(?:[ :.,_-]{1,2}|[!?] )" + _WORD + rb"){0,8}[ :.,!?=]{0,3}"
_WORDS = re.compile(_WORDS_OF_LETTERS + rb"(?=[\s\"'`\\,;)}\]<])")
_QUOTED_WORDS = re.compile(_WORDS_OF_LETTERS + rb"(?=[\"'`\\])")
_CALLS = (b"(", b"[", b"!0", b"!1")
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
