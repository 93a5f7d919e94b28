"""Passwords that sentences tell, in many languages: after a word for password and a verb, a colon or an arrow."""

import re
from typing import Final

from redaction.heuristics.certain import PARTS, is_certain, is_told
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import unescaped

_VALUE_LENGTH_MAX: Final = 120
(_AFTER_NAME,) = table_of(__file__).patterns("after_name")
_OPENED: Final = rb"\\{0,15}[\"'`]|\*{1,2}`?|\xe3\x80\x8c|\xe3\x80\x8e|\xc2\xab ?|\xe2\x80[\x98\x9a\x9c\x9e]"
_QUOTED: Final = re.compile(
    rb"[^\s\"'`\\\x00-\x1f]{4,80}?(?=\\{0,15}[\"'`]|\*{1,2}(?:[\s.,;:)]|\\{1,15}[nrt]|\Z)|\xe3\x80[\x8d\x8f]"
    rb"| ?\xc2\xbb|\xe2\x80[\x98-\x9f])"
)
_BARE: Final = re.compile(
    rb"(?:(?!\xe3\x80|\xef\xbc|\xef\xbd)[^\s\"'`\\<>,;()\x00-\x1f]){4,64}+"
    rb"(?:(?=\xe3\x80|\xef\xbc|\xef\xbd)|(?![^\s\"'`\\<>,;()]))"
)
# A call, or a letter as HTML writes it.
_GOES_ON: Final = re.compile(rb"[\w.$>-]+\(|[\w-]*&[a-z]{2,8};")
_STOPS: Final = b".,:;!?)"
_IS_OPENED: Final = re.compile(b"(?:" + _OPENED + rb")\Z")


def extract_told(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value after `password is`, `password to` or `password:`."""
    return _told(line, start, to, is_quoted=bool(found["open"]), is_abroad=False)


def extract_told_abroad(line: bytes, to: int) -> Extraction:
    """The value after a word for password in another language than English."""
    found = _AFTER_NAME.match(line, to)
    # An element of HTML; a keyword.
    if found is None or b"<" in found.group() or line[max(0, to - 12) : to] == b"alabra clave":
        return (), to
    is_quoted = _IS_OPENED.search(line, to, found.end()) is not None
    return _told(line, found.end(), to, is_quoted=is_quoted, is_abroad=True)


def _told(line: bytes, start: int, to: int, *, is_quoted: bool, is_abroad: bool) -> Extraction:
    limit = min(len(line), start + _VALUE_LENGTH_MAX)
    value = (_QUOTED if is_quoted else _BARE).match(line, start, limit)
    if value is None or (not is_quoted and _GOES_ON.match(line, value.start(), value.end() + 1)):
        return (), to
    raw = value.group() if is_quoted else value.group().rstrip(_STOPS)
    text = unescaped(raw)
    is_one = (
        is_certain(text, quoted=False) and not PARTS.fullmatch(text)
        if is_quoted
        else is_told(text, is_abroad=is_abroad)
    )
    return (((start, start + len(raw)),), max(to, start + len(raw))) if is_one else ((), to)
