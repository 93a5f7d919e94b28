"""Credentials in URLs and connection strings: before the host, among the parameters, and as a signature."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import is_value
from redaction.rules.context.table import table_of
from redaction.rules.rule import Extraction

USERINFO_MAX = 512
TOKEN_MIN = 16

# A password may hold an `@` or a `/` that should have been escaped; the host follows the last `@`.
_MORE = re.compile(rb"[^\s\"'`\\<>/@]{1,64}@")
_HOST = re.compile(rb"[A-Za-z0-9\[_.%$*{-]")
_GEM_HOST = re.compile(rb"(?:gems|enterprise)\.contribsys\.com")  # user and password are both random
(_TOKEN_SCHEME,) = table_of(__file__).patterns("token_scheme")
_SCHEME_MAX = 40
_NO_SECRET_AFTER = frozenset((b"", b"x-oauth-basic", b"x-access-token", b"@"))
_CVS_METHOD = re.compile(rb":(?:pserver|gserver|kserver|ext|fork|local):")
_PORT = re.compile(rb"\d{1,5}(?:[?#].*)?", re.DOTALL)
_BESIDE = re.compile(rb"(?:[?&;]|u0026)(?:se|sv|sp|sr|skn|api-version)=")


def _userinfo(line: bytes, to: int) -> tuple[int, int]:
    """The span of the user and password before the `@` that ends at `to`."""
    start = line.rfind(b"/", max(0, to - USERINFO_MAX - 8), to - 1) + 1
    if start == 0:
        return to, to
    end = to
    while (more := _MORE.match(line, end)) is not None and end - to < USERINFO_MAX:
        end = more.end()
    return start, end - 1


def extract_userinfo(line: bytes, to: int) -> Extraction:
    """The password in `scheme://user:password@host`, or the token in `https://token@host`."""
    start, end = _userinfo(line, to)
    seen = max(to, end + 1)
    if start >= end or not _HOST.match(line, end + 1):
        return (), seen
    method = _CVS_METHOD.match(line, start, end)
    user, colon, password = line[method.end() if method else start : end].partition(b":")
    if colon and _GEM_HOST.match(line, end + 1):
        return ((start, end),), seen
    if colon and password not in _NO_SECRET_AFTER:
        if user.endswith(b"[") or _PORT.fullmatch(password) or not is_value(password, Demand.CERTAIN, Placement.BARE):
            return (), seen
        return ((end - len(password), end),), seen
    if colon or _TOKEN_SCHEME.search(line, max(0, start - _SCHEME_MAX), start):
        is_token = len(user) >= TOKEN_MIN and is_value(user, Demand.TOKEN)
        return (((start, start + len(user)),), seen) if is_token else ((), seen)
    return (), seen


def extract_oracle_password(_line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The password in `user/password@host`."""
    return (((found.span(1)),) if is_value(found[1], Demand.CERTAIN, Placement.BARE) else ()), to


def extract_certain_before(_line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The password in `user:password@tcp(host)`."""
    password = found["password"]
    return ((found.span("password"),) if is_value(password, Demand.CERTAIN, Placement.BARE) else ()), to


def extract_shared_access(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
    """The signature of an Azure shared access URL, if other parameters of it are near."""
    if not _BESIDE.search(line, max(0, start - 600), start + 600):
        return (), to
    return (found.span(),), found.end()
