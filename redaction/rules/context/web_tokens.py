"""JSON web tokens, signed and encrypted, with all their parts; the header is decoded to tell them from other base64."""

import base64
import binascii
import re

from redaction.rules.checks import is_web_token
from redaction.rules.rule import Rule, Spans, TokenCheck
from redaction.text.escapes import starts_word

HEADER_DECODED = 400
SIGNATURE_MIN = 20
CUT_MIN = 20

_GATE_LENGTH = 16
# `{"` and a lower-case letter in base64, or `{` and a blank or newline; then as much as the shortest header has.
_GATES = ("eyJ[h-z0-6][0-9A-Za-z_-]{12}", "(?:eyAi|ewog|ew0K|ewoJ)[0-9A-Za-z_-]{12}")
_WORD = re.compile(rb"[0-9A-Za-z]*+")
_HEADER = re.compile(rb"[0-9A-Za-z_-]{16,8192}+={0,2}")
_PARTS = re.compile(rb"(?:\.[0-9A-Za-z_=+/-]*+)++")
_KNOWN = re.compile(rb"\"(?:alg|typ|enc|kid|cty|x5t|x5c|jku|jwk)\"")
_JSON_START = re.compile(rb"\{\s{0,8}\"[A-Za-z][\w.:/#-]{0,40}\"\s{0,2}:")
_JSON_BEGIN = re.compile(rb"\{\s{0,8}(?:\Z|\"(?:\Z|[A-Za-z][\w.:/#-]{0,9}(?:\"|\Z)))")
_CLOSED = re.compile(rb"[\"'`\s\\<>),;\]}]|\Z")


def _decoded(header: bytes) -> bytes:
    header = header.rstrip(b"=")[:HEADER_DECODED]
    header = header[: len(header) - (len(header) % 4 == 1)]
    try:
        return base64.urlsafe_b64decode(header + b"=" * (-len(header) % 4))
    except (binascii.Error, ValueError):
        return b""


def find_web_token(line: bytes, to: int) -> tuple[Spans, int]:
    """The token with all its parts. A header alone is no secret, unless the token was cut within it."""
    start = to - _GATE_LENGTH
    word_end = _WORD.match(line, to)
    seen = word_end.end() if word_end else to
    if not _JSON_BEGIN.match(_decoded(line[start:to])):
        return (), seen
    header = _HEADER.match(line, start) if starts_word(line, start) else None
    if header is None:
        return (), seen
    decoded = _decoded(header.group())
    if _JSON_START.match(decoded) is None:
        return (), seen
    parts = _PARTS.match(line, header.end())
    known = _KNOWN.search(decoded) is not None
    if parts is None:
        is_cut = known and not decoded.rstrip().endswith(b"}") and header.end() - start >= CUT_MIN
        if is_cut and _CLOSED.match(line, header.end()):
            return ((start, header.end()),), header.end()
        return (), seen
    body = parts.group().rstrip(b".")
    end = header.end() + len(body)
    pieces = body.split(b".", 6)[1:]
    if not pieces or not (known or (len(pieces) > 1 and len(pieces[-1]) >= SIGNATURE_MIN)):
        return (), parts.end()
    return ((start, end),), max(parts.end(), to)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (
        Rule(
            "jwt",
            "JSON web token",
            "signed or encrypted token",
            _GATES,
            find_web_token,
            example="<jwt>",
            counter="eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
            check=TokenCheck(is_web_token, proves=True),
        ),
    )
