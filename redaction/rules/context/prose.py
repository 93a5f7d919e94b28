"""Passwords that sentences tell, in many languages: after a word for password and a verb, a colon or an arrow."""

import re
from typing import Final

from redaction.heuristics.certain import PARTS, is_certain, is_told
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import unescaped

_VALUE_LENGTH_MAX: Final = 120
# Names of what stands there, in marks of code.
_NAMES: Final = ("passphrase", "passcode", "passkey")
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
# Between the old password and the new one.
_CHANGED_TO: Final = re.compile(rb"(?:\\{0,15}[\"'`]|\*{1,2})? (?:to|into) (?P<open>" + _OPENED + rb")?")
# A value and the words that make it the password, which no noun follows.
_VALUE_BEFORE: Final = (
    rb"(?:(?<![^\s\"'`(])|(?<=\\[nrt]))(?P<open>\\{0,15}[\"'`]|\*{1,2}`?)?(?P<value>[^\s\"'`\\<>,;()]{4,64}?)"
    rb"(?(open)[\"'`*\\]{1,9}) "
)
_USED_AS: Final = re.compile(
    _VALUE_BEFORE
    + rb"(?:(?:as|for|is|was|to be|be) (?:the|my|your|our|their|its|his|her|a)|as) (?:[\w-]{1,14} ){0,3}\w{4,10}\Z"
)
_USED_WITH: Final = re.compile(
    rb"(?i:use|with|enter|type) (?:user )?[\"'`*\\]{0,9}[\w.@-]{2,40}[\"'`*\\]{0,9} (?:and|/|with) "
    + _VALUE_BEFORE
    + rb"(?:to|for) [\w ]{5,8}\Z"
)
_USED_AS_MAX: Final = 160
_NO_NOUN: Final = re.compile(
    rb"[.,;:!?)\"'\\\n]|[ ](?:for|on|to|and|in|at|now|here|when|until|instead|if|but|please|so|of)\b|\Z"
)
_SPANISH_IS: Final = (b"es", b"era", b"est\xc3\xa1")
# The label of a field in the language of a translation.
_LABELLED: Final = re.compile(rb"Password\\{0,15}[\"']? ?[=:] ?\\{0,15}[\"'`]\Z")
_LABELLED_MAX: Final = 48
_LABEL: Final = re.compile(
    rb"(?:[A-Z\xc3-\xef]|\\{1,15}u[0-9a-f]{4})(?:[^\s\d\\\"'`]| |\\{1,15}u[0-9a-f]{4})*\\{0,15}[\"'`]"
)
_IS_OPENED: Final = re.compile(b"(?:" + _OPENED + rb")\Z")


def extract_told(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value after `password is`, `password to` or `password:`, and what it was changed to."""
    if _LABELLED.search(line, max(0, start - _LABELLED_MAX), start) and _LABEL.match(line, start):
        return (), to
    spans, seen = _told(line, start, to, is_quoted=bool(found["open"]), is_abroad=False)
    changed = _CHANGED_TO.match(line, spans[-1][1]) if spans else None
    if changed is None:
        return spans, seen
    more, seen = _told(line, changed.end(), seen, is_quoted=bool(changed["open"]), is_abroad=False)
    return (*spans, *more), seen


def extract_told_before(line: bytes, to: int) -> Extraction:
    """The value before `as the password`."""
    found = _USED_AS.search(line, max(0, to - _USED_AS_MAX), to)
    if found is None or _NO_NOUN.match(line, to) is None:
        return (), to
    return _told(line, found.start("value"), to, is_quoted=bool(found["open"]), is_abroad=False)


def extract_told_to_log_in(line: bytes, to: int) -> Extraction:
    """The value in `use name and value to sign in`."""
    found = _USED_WITH.search(line, max(0, to - _USED_AS_MAX), to)
    if found is None:
        return (), to
    return _told(line, found.start("value"), to, is_quoted=bool(found["open"]), is_abroad=False)


def extract_told_abroad(line: bytes, to: int) -> Extraction:
    """The value after a word for password in another language than English."""
    found = _AFTER_NAME.match(line, to)
    # An element of HTML; a keyword, and the key of a setting.
    if found is None or b"<" in found.group() or found.group().startswith(b" chiave"):
        return (), to
    is_key = line[to - 5 : to].lower() == b"clave" and (found["near"] or b" es").strip() not in _SPANISH_IS
    if is_key or line[max(0, to - 12) : to] == b"alabra clave":
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
        is_certain(text, quoted=False) and not PARTS.fullmatch(text) and text.lower() not in _NAMES
        if is_quoted
        else is_told(text, is_abroad=is_abroad)
    )
    return (((start, start + len(raw)),), max(to, start + len(raw))) if is_one else ((), to)
