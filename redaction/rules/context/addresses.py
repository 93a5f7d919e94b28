"""Credentials in URLs and connection strings: before the host, among the parameters, and as a signature."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.values import is_value
from redaction.rules.rule import Extract, Extraction, Rule

USERINFO_MAX = 512
TOKEN_MIN = 16
VALUE_MAX = 4096
SIGNATURE_BYTES = 16

# A password may hold an `@` or a `/` that should have been escaped; the host follows the last `@`.
_MORE = re.compile(rb"[^\s\"'`\\<>/@]{1,64}@")
_HOST = re.compile(rb"[A-Za-z0-9\[_.%$*{-]")
_GEM_HOST = re.compile(rb"(?:gems|enterprise)\.contribsys\.com")  # user and password are both random
# Schemes in which a user without a password may be a token; in others it is the id of a message, job or machine.
_TOKEN_SCHEME = re.compile(
    rb"(?i:https?|git(?:\+\w{3,5})?|rediss?|mongodb(?:\+srv)?|postgres(?:ql)?|mysql|mariadb|amqps?|libsql|nats|wss?)"
    rb":\\{0,8}/\\{0,8}/\Z"
)
_SCHEME_MAX = 40
_NO_SECRET_AFTER = frozenset((b"", b"x-oauth-basic", b"x-access-token", b"@"))
_PORT = re.compile(rb"\d{1,5}(?:[?#].*)?", re.DOTALL)
_ORACLE = re.compile(rb"/([^\s\"'`\\/@]{4,64})@\Z")
_PARAMETER = re.compile(rb"[A-Za-z0-9%._~+/=-]{8,}+(?![({\[$<])")
_CONNECTION_VALUE = re.compile(rb"[^\s\"'`\\;&<>]{3,128}+")
_SIGNATURE_VALUE = re.compile(rb"(?:[A-Za-z0-9+=_~-]|%2[BFbf]|%3[Dd]|/(?!\d{8}/))++")
_SIGNATURE = re.compile(rb"(?:[A-Za-z0-9+/=_-]|%[0-9A-Fa-f]{2}){32,160}+")
_BESIDE = re.compile(rb"(?:[?&;]|u0026)(?:se|sv|sp|sr|skn|api-version)=")
_TOKEN_NAMES = (
    r"(?:api|access|auth|secret|client|subscription|account|app|license)[-_]?(?:key|secret|password)|"
    r"(?:access|auth|refresh|id|api|private|bearer|session|security|oauth|bot|user|device|join|login|reset)[-_]?token|"
    r"token|secret|pass|passphrase|client_assertion|jwt|hapikey|signature|hmac|psk|code"
)


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
    user, colon, password = line[start:end].partition(b":")
    if colon and _GEM_HOST.match(line, end + 1):
        return ((start, end),), seen
    if colon and password not in _NO_SECRET_AFTER:
        if password == user or _PORT.fullmatch(password):
            return (), seen
        return (((end - len(password), end),), seen) if is_value(password, Demand.PASSWORD) else ((), seen)
    if colon or _TOKEN_SCHEME.search(line, max(0, start - _SCHEME_MAX), start):
        is_token = len(user) >= TOKEN_MIN and is_value(user, Demand.TOKEN)
        return (((start, start + len(user)),), seen) if is_token else ((), seen)
    return (), seen


def extract_oracle_password(line: bytes, to: int) -> Extraction:
    """The password in `user/password@host`."""
    found = _ORACLE.search(line[max(0, to - 70) : to])
    if found is None or not is_value(found[1], Demand.PASSWORD):
        return (), to
    return ((to - 1 - len(found[1]), to - 1),), to


def _extract_parameter(length: int, value: re.Pattern[bytes], demand: Demand) -> Extract:
    """Return what extracts a value that begins `length` bytes before the hit."""

    def extract(line: bytes, to: int) -> Extraction:
        start = to - length
        found = value.match(line, start, min(len(line), start + VALUE_MAX))
        if found is None:
            return (), to
        text = found.group().rstrip(b" .")
        return ((start, start + len(text)),) if is_value(text, demand) else (), max(found.end(), to)

    return extract


def extract_shared_access(line: bytes, to: int) -> Extraction:
    """The signature of an Azure shared access URL, told by the parameters near it."""
    start = to - SIGNATURE_BYTES
    value = _SIGNATURE.match(line, start, start + 200)
    if value is None or not _BESIDE.search(line, max(0, start - 600), start + 600):
        return (), to
    return (value.span(),), value.end()


RULES = (
    Rule(
        "url-userinfo",
        "URL",
        "password or token before the host",
        (r":\\{0,8}/\\{0,8}/[^\s\"'`\\<>/@]{3,512}@",),
        extract_userinfo,
        example="https://someone:<base62:16>@host.example/path",
        counter="https://user:password@host.example/path",
    ),
    Rule(
        "url-parameter",
        "URL",
        "token among the parameters",
        (rf"[?&](?i:{_TOKEN_NAMES})=[A-Za-z0-9%._~+/-]{{8}}",),
        _extract_parameter(8, _PARAMETER, Demand.TOKEN),
        "medium",
        example="https://host.example/?access_token=<base62:32>",
        counter="https://host.example/?access_token=your_token_here",
    ),
    Rule(
        "connection-password",
        "connection string",
        "password",
        (r"[?&;] ?(?i:password|passwd|pwd|user ?pass) ?= ?(?:\\{0,15}[\"'])?[^\s\"'`\\;&<>$%{(]{3}",),
        _extract_parameter(3, _CONNECTION_VALUE, Demand.PASSWORD),
        example="Server=db;User Id=app;Password=<base62:16>;Timeout=30",
        counter="Server=db;User Id=app;Password=password;Timeout=30",
    ),
    Rule(
        "oracle-password",
        "Oracle",
        "password before the host",
        (r"(?i:thin|sqlplus(?: -[a-z]{1,6}){0,3})[ :][A-Za-z0-9_]{1,30}/[^\s\"'`\\/@]{4,64}@",),
        extract_oracle_password,
        example="jdbc:oracle:thin:app/<base62:16>@db:1521/x",
        counter="jdbc:oracle:thin:scott/tiger@db:1521/x",
    ),
    Rule(
        "signed-url",
        "AWS, Google Cloud",
        "signature of an address",
        (
            r"(?i:X-Amz-Signature|X-Goog-Signature|X-Amz-Security-Token|X-Amz-Credential)(?:=|%3D)[A-Za-z0-9%/+]{16}",
            r"[?&](?:Signature|OSSAccessKeyId|AWSAccessKeyId)=[A-Za-z0-9%/+~_-]{16}",
        ),
        _extract_parameter(16, _SIGNATURE_VALUE, Demand.TOKEN),
        example="https://b.example/k?X-Amz-Signature=<hex:64>",
        counter="https://b.example/k?X-Amz-Signature=${SIGNATURE}",
    ),
    Rule(
        "azure-sas",
        "Azure",
        "shared access signature",
        (rf"(?i:[?&;]|amp;|u0026)sig=(?:[A-Za-z0-9+/=_%-]){{{SIGNATURE_BYTES}}}",),
        extract_shared_access,
        example="https://a.example/c?sv=2022-11-02&se=2030-01-01&sr=c&sig=<base64:43>%3D",
        counter="https://a.example/c?sig=<base64:43>%3D",
    ),
)
