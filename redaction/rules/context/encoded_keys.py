"""Private keys in other clothes: a PEM file in base64, and the private members of a JSON web key."""

import base64
import re

from redaction.rules.context.private_keys import LINES, after_escape, is_material
from redaction.rules.rule import Rule, Spans
from redaction.text.escapes import STRING_QUOTE as _QUOTE

KEY_DISTANCE_MAX = 4096
LENGTH_MAX = 64 * 1024
BEFORE_MAX = 4096

_MARK = b"PRIVATE KEY-"
_BACKWARDS = re.compile(rb"[A-Za-z0-9+/_-]*+")
_FORWARDS = re.compile(rb"[A-Za-z0-9+/=_-]*+" + LINES.pattern)

_MEMBER_BYTES = 32
# One gate for each name: as alternatives of one they make the first reading measurably slower.
_MEMBERS = tuple(
    rf"[\"']{name}{_QUOTE}\s{{0,2}}:\s{{0,2}}{_QUOTE}[A-Za-z0-9_-]{{{_MEMBER_BYTES}}}"
    for name in ("d", "p", "q", "dp", "dq", "qi", "k")
)
_VALUE = re.compile(rb"[A-Za-z0-9_-]*+={0,2}(?=\\{0,15}[\"']|\Z|\.\.\.)")
_KIND = re.compile(rb"kty\\{0,15}[\"']\s{0,2}:\s{0,2}\\{0,15}[\"'](?:RSA|EC|OKP|oct|AKP)")


def _encoded_mark(alignment: int) -> str:
    """What base64 makes of the mark when so many bytes of a group of three stand before it."""
    encoded = base64.b64encode(bytes(alignment) + _MARK).decode()
    return encoded[(alignment * 8 + 5) // 6 : (alignment + len(_MARK)) * 8 // 6]


def find_encoded_pem(line: bytes, to: int) -> tuple[Spans, int]:
    """The whole run of base64 in which a private key's mark is, with the lines it goes on in."""
    lowest = max(0, to - BEFORE_MAX)
    before = _BACKWARDS.match(line[lowest:to][::-1])
    after = _FORWARDS.match(line, to, min(len(line), to + LENGTH_MAX))
    if before is None or after is None:
        return (), to
    if not is_material(line, to, after.end()):
        return (), after.end()
    return ((after_escape(line, to - before.end()), after.end()),), after.end()


def find_jwk_member(line: bytes, to: int) -> tuple[Spans, int]:
    """A private member's value, when `kty` of a JSON web key is near."""
    start = to - _MEMBER_BYTES
    value = _VALUE.match(line, start, min(len(line), start + LENGTH_MAX))
    if value is None:
        return (), to
    lowest = max(0, start - KEY_DISTANCE_MAX)
    if not (
        _KIND.search(line, lowest, start) or _KIND.search(line, value.end(), min(len(line), to + KEY_DISTANCE_MAX))
    ):
        return (), to
    return ((start, value.end()),), value.end()


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (
        Rule(
            "private-key-base64",
            "PEM in base64",
            "private key",
            tuple(_encoded_mark(alignment) for alignment in range(3)),
            find_encoded_pem,
            example="LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1<base64:200>",
            counter="LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
        ),
        Rule(
            "jwk-private",
            "JSON web key",
            "private member",
            _MEMBERS,
            find_jwk_member,
            example='{"kty":"EC","crv":"P-256","d":"<base64url:43>"}',
            counter='{"name":"EC","d":"<base64url:43>"}',
        ),
    )
