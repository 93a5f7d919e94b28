"""Secrets in the files that tools keep them in: of netrc, npm, PostgreSQL, Docker, WireGuard, PHP, and hashes."""

import base64
import binascii
import re

from redaction.heuristics.names import Demand
from redaction.heuristics.values import is_value, value_span
from redaction.rules.rule import Rule, Spans

_VALUE_BYTES = 8
_SPACE = r"(?:\s|\\{1,15}[nrt])"
_QUOTED = r"\\{0,15}[\"']"
_NETRC_OWNER = re.compile(rb"(?:machine|default)(?:\s|\\{1,15}[nrt])")
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/_-]|\\{1,15}/)++={0,2}")
_WORD = re.compile(rb"(?:[^\s\"'`\\;<$]|<(?!\\{0,15}/)|\$(?!\\|\s)){3,512}+")
_PORTS = r"(?:[1-6]?543[0-9]|6432|6543|26257|\*)"
_HASHES = (
    r"\$(?:\$?)2[abxy]\$(?:\$?)\d\d\$(?:\$?)[./A-Za-z0-9]{53}",
    r"\$(?:apr1|1)\$[^\s$:\"'\\]{1,16}\$[./A-Za-z0-9]{22}",
    r"\$[56]\$(?:rounds=\d{1,9}\$)?[^\s$:\"'\\]{1,16}\$[./A-Za-z0-9]{43}",
    r"\$(?:y|gy|7)\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{1,90}\$[./A-Za-z0-9]{43}",
    r"\$argon2(?:id|i|d)\$v=\d{1,3}\$[a-z0-9,=]{1,40}\$[A-Za-z0-9+/]{8,90}\$[A-Za-z0-9+/]{22}",
    r"(?:pbkdf2_sha256|pbkdf2:sha256|\$pbkdf2-sha(?:256|512)|scrypt):?\$?[0-9:]{1,20}\$[A-Za-z0-9./+=]{1,90}\$[A-Za-z0-9./+=]{32}",
    r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{27}",
)
_HASH_START = re.compile(
    rb"\$\$?(?:2[abxy]|apr1|[1567]|y|gy|argon2(?:id|i|d)|pbkdf2-sha\d+)\$|pbkdf2[_:]sha256|scrypt[:$]|\{S?SHA"
)
_HASH_REST = re.compile(rb"[./A-Za-z0-9+=]*+")


def decoded(encoded: bytes) -> str:
    """What the base64 holds, if that is printable text; else nothing."""
    text = encoded.replace(b"\\", b"").rstrip(b"=")
    try:
        result = base64.b64decode(
            text + b"=" * (-len(text) % 4), altchars=b"-_" if b"-" in text or b"_" in text else None
        )
        shown = result.decode()
    except (binascii.Error, ValueError):
        return ""
    return shown if shown.replace("\n", "").replace("\r", "").replace("\t", "").isprintable() else ""


def find_netrc_password(line: bytes, to: int) -> tuple[Spans, int]:
    """The password of a `machine` in .netrc."""
    start = to - 3
    found = _WORD.match(line, start)
    if found is None or not _NETRC_OWNER.search(line, max(0, start - 400), start):
        return (), to
    return ((found.span(),), found.end()) if is_value(found.group(), Demand.PASSWORD) else ((), to)


def find_npm_auth(line: bytes, to: int) -> tuple[Spans, int]:
    """`_authToken`, and `_auth` and `_password` when they are base64 of text."""
    start = to - _VALUE_BYTES
    found = _BASE64.match(line, start, start + 4096)
    if found is None:
        return (), to
    name = line[max(0, start - 24) : start]
    secret = is_value(found.group(), Demand.TOKEN) if b"oken" in name else decoded(found.group())
    return ((found.span(),) if secret else ()), max(to, found.end())


def find_docker_auth(line: bytes, to: int) -> tuple[Spans, int]:
    """`auth` of a registry: base64 of user and password; or a registry's identity token."""
    start = to - _VALUE_BYTES
    found = _BASE64.match(line, start)
    if found is None:
        return (), to
    if b"oken" in line[max(0, start - 24) : start]:
        start, end = value_span(line, start)
        return (((start, end),), max(to, end)) if is_value(line[start:end], Demand.KEY) else ((), to)
    user, colon, password = decoded(found.group()).partition(":")
    if not user or not colon or not password or password == user:
        return (), to
    return (found.span(),), found.end()


def find_pgpass(line: bytes, to: int) -> tuple[Spans, int]:
    """The last field of a line of .pgpass."""
    found = _WORD.match(line, to - 3)
    if found is None:
        return (), to
    secret = b"arn:" not in line[max(0, to - 160) : to] and is_value(found.group(), Demand.PASSWORD)
    return ((found.span(),) if secret else ()), found.end()


def find_matched(line: bytes, to: int) -> tuple[Spans, int]:
    """A WireGuard key: 32 bytes in base64, which the gate has seen whole."""
    return ((to - 44, to),), to


def find_definition(line: bytes, to: int) -> tuple[Spans, int]:
    """The value of a constant that PHP defines, as in wp-config."""
    start, end = value_span(line, to - 4)
    return (((start, end),) if _is_definition(line[start:end]) else ()), max(end, to)


def _is_definition(value: bytes) -> bool:
    is_salt = 48 <= len(value) <= 128 and len(set(value)) >= 24 and not value.isalnum() and value.count(b" ") < 8
    is_salt = is_salt and b"\\" not in value and b"[REDACTED:" not in value
    return is_salt or is_value(value, Demand.PASSWORD)


def find_hash(line: bytes, to: int) -> tuple[Spans, int]:
    """A password's hash with its salt."""
    starts = list(_HASH_START.finditer(line, max(0, to - 260), to))
    first = starts[-1] if starts else None
    rest = _HASH_REST.match(line, to)
    end = rest.end() if rest else to
    if first is None or len(set(line[first.end() : end])) < 12:
        return (), to
    return ((first.start(), end),), end


def find_cookie_of_jar(line: bytes, to: int) -> tuple[Spans, int]:
    """The value of a cookie in Netscape's file."""
    found = _WORD.match(line, to - _VALUE_BYTES)
    if found is None or not is_value(found.group(), Demand.WEAK):
        return (), to
    return (found.span(),), found.end()


_TAB = r"(?:\t|\\{1,15}t)"
_RULES = (
    Rule(
        "netrc",
        ".netrc",
        "password",
        (
            rf"(?i:login){_SPACE}{{1,8}}[^\s\\\"']{{1,128}}{_SPACE}{{1,8}}"
            rf"(?:account{_SPACE}{{1,8}}[^\s\\\"']{{1,64}}{_SPACE}{{1,8}})?password{_SPACE}{{1,8}}[^\s\\\"']{{3}}",
            # Each line with something before it.
            r"(?i:login)[ \t]{1,8}[^\s\\\"']{1,64}(?:\n|\\{1,15}n)[^\n\\\"'<>]{1,60}(?:\\{1,15}t)?[ ]{0,8}"
            r"password[ \t]{1,8}[^\s\\\"']{3}",
        ),
        find_netrc_password,
        example="machine host.example login someone password <base62:12>",
        counter="machine host.example login someone password password",
    ),
    Rule(
        "npm-auth",
        "npm",
        "credentials of a registry",
        (
            rf"_authToken {{0,2}}[=:] {{0,2}}(?:{_QUOTED})?[A-Za-z0-9+/=_-]{{8}}",
            rf"(?:[:\sn]|npm_config_)_(?:auth|password) {{0,2}}= {{0,2}}(?:{_QUOTED})?[A-Za-z0-9+/=_-]{{8}}",
        ),
        find_npm_auth,
        example="//registry.example/:_authToken=<base62:32>",
        counter="//registry.example/:_authToken=your_token_here",
    ),
    Rule(
        "docker-auth",
        "Docker",
        "credentials of a registry",
        (rf"(?:auth|identitytoken|registrytoken){_QUOTED}\s{{0,4}}:\s{{0,4}}{_QUOTED}[A-Za-z0-9+/=_-]{{8}}",),
        find_docker_auth,
        example='{"auths":{"host.example":{"auth":"c29tZW9uZTpodW50ZXIy"}}}',
        counter='{"auths":{"host.example":{"auth":"required"}}}',
    ),
    Rule(
        "pgpass",
        "PostgreSQL",
        "line of .pgpass",
        (rf":{_PORTS}:[^\s:\"'\\/]{{1,64}}:[^\s:\"'\\/]{{1,64}}:[^\s:\"'\\/$<{{]{{3}}",),
        find_pgpass,
        example="host.example:5432:shop:someone:<base62:12>",
        counter="host.example:5432:shop:someone:password",
    ),
    Rule(
        "wireguard-key",
        "WireGuard",
        "private or preshared key",
        (r"(?:(?i:private|preshared)_?-?(?i:key) ?[=:] ?\\{0,8}[\"']?)[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=",),
        find_matched,
        example="PrivateKey = <base64:42>A=",
        counter="PrivateKey = <base64:20>",
    ),
    Rule(
        "php-definition",
        "WordPress",
        "password or salt",
        (
            rf"(?i:define)\( {{0,2}}{_QUOTED}[A-Z0-9_]{{0,40}}(?:PASSWORD|PASSWD|KEY|SALT|SECRET|TOKEN){_QUOTED}"
            r" {0,2},"
            rf"\s{{0,12}}{_QUOTED}[^\"'\\]{{4}}",
        ),
        find_definition,
        example="define('DB_PASSWORD', '<base62:14>');",
        counter="define('AUTH_KEY', 'put your unique phrase here');",
    ),
    Rule(
        "password-hash",
        "crypt",
        "hash of a password",
        _HASHES,
        find_hash,
        "medium",
        example="someone:$2b$12$<base62:53>",
        counter="someone:$2b$12$<base62:20>",
    ),
    Rule(
        "cookie-jar",
        "Netscape",
        "cookie in a jar",
        (rf"{_TAB}(?:TRUE|FALSE){_TAB}\d{{1,12}}{_TAB}[^\s\\\"']{{1,80}}{_TAB}[^\s\"'\\]{{8}}",),
        find_cookie_of_jar,
        "medium",
        example=".host.example\tTRUE\t/\tTRUE\t0\tsession\t<base62:32>",
        counter=".host.example\tTRUE\t/\tTRUE\t0\tlang\tenglish",
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
