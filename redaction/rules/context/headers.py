"""Credentials in HTTP headers: as they are sent, in arguments of curl, and in dictionaries of code."""

import re

from redaction.heuristics.certain import is_certain
from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import in_marker, is_value, value_span
from redaction.rules.checks import decoded_base64
from redaction.rules.context.extractors import UUID
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction
from redaction.text.escapes import after_escape

COOKIES_MAX = 64
COOKIE_MIN = 8

_VALUE_BYTES = 8
_BEARER = re.compile(rb"[A-Za-z0-9_.~+/=:|-]{8,}+(?![({\[]|<(?!\\{0,15}/)|\$[{(\w])")
_PADDING = re.compile(rb"[=%\\]")
_BASIC = re.compile(rb"[A-Za-z0-9+/_-]{8,}+(?:=|%3[Dd]|\\u003[dD]){0,2}")
# After the name `Authorization`: the opening of the value and perhaps its scheme.
_TYPE_NAME = re.compile(rb"::[A-Z][a-z]\w{0,40}\\{0,8}[\"']?[:=,]\Z")
_HEX, _COOKIE, _SESSION = table_of(__file__).patterns("hex", "cookie", "session")


def extract_bearer(line: bytes, to: int) -> Extraction:
    """The token after `Bearer`, anywhere."""
    start = after_escape(line, to - _VALUE_BYTES)
    found = _BEARER.match(line, start)
    if found is None:
        return (), to
    value = found.group().rstrip(b".:")
    demand = Demand.KEY if UUID.fullmatch(value) else Demand.TOKEN
    return (((start, start + len(value)),), found.end()) if is_value(value, demand) else ((), found.end())


def _basic_password(encoded: bytes) -> str:
    """The password of a base64 `user:password`; empty if it is something else."""
    decoded = decoded_base64(_PADDING.split(encoded, 1)[0]) or b""
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        text = decoded.decode("latin-1")
    user, colon, password = text.partition(":")
    if not colon or user.startswith("{") or not (user.isascii() and user.isprintable()):
        return ""
    return password or user if password.isprintable() or len(user) >= 8 else ""


def extract_basic(line: bytes, to: int) -> Extraction:
    """The credentials after `Basic`, confirmed by decoding them."""
    start = after_escape(line, to - _VALUE_BYTES)
    found = _BASIC.match(line, start)
    if found is None:
        return (), to
    password = _basic_password(found.group())
    if password == "x-oauth-basic" or not is_certain(password, quoted=True):
        return (), to
    return (found.span(),), found.end()


def extract_authorization(line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The value of an `Authorization` header with any scheme except the two that have their own rule."""
    if in_marker(line, to) or found["other"] is not None or _TYPE_NAME.search(line, max(0, to - 60), to):
        return (), to
    value = found["value"].rstrip(b".:")
    if _OTHER_HEADER.fullmatch(value) or not is_value(value.rstrip(b"="), Demand.KEY, Placement.BARE):
        return (), found.end()
    return ((found.start("value"), found.start("value") + len(value)),), found.end()


def extract_named_header(line: bytes, _start: int, opened: re.Match[bytes], to: int) -> Extraction:
    """The value of a header with the name of a key."""
    header = _HEADER.search(line, max(0, to - _HEADER_MAX), to)
    if header is None or in_marker(line, to) or _is_other(line, header, opened.end()):
        return (), to
    start, end = value_span(line, opened.end())
    value = _HEADER_VALUE.match(line, start, end)
    if value is None:
        return (), to
    if not is_value(value.group(), Demand.KEY, Placement.QUOTED if opened.group().strip() else Placement.BARE):
        return (), value.end()
    return (value.span(),), value.end()


def _is_other(line: bytes, header: re.Match[bytes], start: int) -> bool:
    """Whether the name is part of something longer or names no secret, or the value is a digest."""
    if line[header.start() - 1 : header.start()] == b":" and line[start - 1 : start] == b":":
        return True
    if _HARMLESS.search(header["name"]):
        return True
    before = line[max(0, header.start() - _HEADER_MAX) : header.end("name")]
    return _HEX.match(line, start) is not None and _DIGEST_OF.search(before) is not None


_HEADER = re.compile(rb"(?<![\w-])(?P<name>[\w-]{3,80}+)[\"'`\\\s\])]{0,12}[:,=]\Z")
_HEADER_MAX = 100
_OTHER_HEADER = re.compile(rb"x(?:-[a-z0-9]+){2,6}")  # in a list of the names of headers
_DIGEST_OF = re.compile(rb"(?i)(?:checksum|digest|hash|fingerprint|sha-?\d{0,3}|md5)(?:sum)? (?:of|for) [\w-]{0,80}\Z")
_HARMLESS = re.compile(rb"(?i)(?:next|page|continuation|starting|public|idempotency|cache|lock)[-_](?:key|token)\Z")
_HEADER_VALUE = re.compile(rb"[^\s\"'`\\;,<>(){}$]{8,4096}+(?![({\[]|\$[{(\w])")


def extract_cookies(line: bytes, to: int) -> Extraction:
    """The values of cookies that have the name of a session cookie or are random."""
    spans: list[tuple[int, int]] = []
    at = to
    for _ in range(COOKIES_MAX):
        found = _COOKIE.match(line, at, min(len(line), at + 4200))
        if found is None or found.end() == at:
            break
        at = found.end()
        value = found[3]
        demand = Demand.KEY if _SESSION.search(found[1]) else Demand.WEAK
        if len(value) >= COOKIE_MIN and is_value(value[:256].translate(None, b"%|:"), demand):
            spans.append(found.span(3))
    return spans, max(at, to)
