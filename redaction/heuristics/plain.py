"""Values that are seen to be no secret without a look at anything else: words, and where there is no quote, code."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.words import is_scrambled_member

# What most looks end with: a call or a member, where there is no quote, and words.
_CODE = re.compile(rb"[A-Za-z_$][\w$]+(?:\.[A-Za-z_]\w*)*[(\[]|(?:[A-Za-z_]+\.)+[A-Za-z_]+(?=[\s,;)\]}\\\"'?:])")
_WORD = rb"(?:[A-Z][a-z]{1,11}+|[a-z]{1,12}+)"  # in one way only, or a flood of words takes long
_WORDS_OF_LETTERS = _WORD + rb"(?:(?:[ :.,_-]{1,2}|[!?] )" + _WORD + rb"){0,8}[ :.,!?=]{0,3}"
_WORDS = re.compile(_WORDS_OF_LETTERS + rb"(?=[\s\"'`\\,;)}\]<])")
_QUOTED_WORDS = re.compile(_WORDS_OF_LETTERS + rb"(?=[\"'`\\])")
_CALLS = (b"(", b"[")
_MAY_QUOTE = frozenset(b"\"'`\\")


def is_plain(line: bytes, start: int, demand: Demand, *, is_quoted: bool) -> bool:
    """Whether the value at `start`, given to a name with this demand, is words or code."""
    if is_quoted:
        return _QUOTED_WORDS.match(line, start) is not None
    if _WORDS.match(line, start):
        return True
    found = _CODE.match(line, start)
    if found is None or demand < Demand.PASSWORD or found.group().endswith(_CALLS):
        return found is not None
    return not is_scrambled_member(found.group().decode("ascii"))


def is_plain_anyhow(line: bytes, start: int) -> bool:
    """Whether it is, whatever the name demands and whether it is quoted; many times cheaper than to ask for those."""
    if _QUOTED_WORDS.match(line, start):
        return True
    if line[start - 1] in _MAY_QUOTE:
        return False
    if _WORDS.match(line, start):
        return True
    found = _CODE.match(line, start)
    return found is not None and found.group().endswith(_CALLS)
