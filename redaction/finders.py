"""Secrets whose extent a single pattern cannot say: web tokens, private keys, credentials in addresses and headers."""

import base64
import binascii
import re

from redaction.placeholders import looks_made, looks_secret
from redaction.old_rules import Hits, Rule, by_pattern

WEB_TOKEN_RUN = re.compile(r"eyJ[A-Za-z0-9_=.+/-]*+")
WEB_TOKEN_PART = re.compile(r"(?<![A-Za-z0-9_=-])([A-Za-z0-9_=-]++)\.(?=[A-Za-z0-9_=-])")
WEB_TOKEN_CUT_MIN = 36  # a token cut before its first dot is still masked from this length on

KEY_BEGIN = re.compile(
    r"(?:-{2,5} ?)?BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?(?: ?-{2,5})?|PuTTY-User-Key-File-\d"
)
KEY_END = re.compile(r"END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?(?: ?-{2,5})?|Private-MAC: [0-9a-f]{8,}+")
KEY_LENGTH_MAX = 64 * 1024
KEY_MATERIAL = re.compile(r"[A-Za-z0-9+/=]{16}")
# A key that was cut: lines of key material, each perhaps behind the marks of a diff, a quotation or a line number.
NEWLINE = r"(?:[ \t\x00]*(?:\\+r)?(?:\r?\n|\\+n|\r)(?:[ \t+\-|>*#:.,→]{0,16}\d{0,6}[ \t+\-|>*#:.,→]{0,16}))"
KEY_REST = re.compile(
    r"[ \t]*[A-Za-z0-9+/=]*+(?:"
    + NEWLINE
    + r"++(?:[A-Z][A-Za-z-]{2,20}: [^\n\\\"']{0,200}+|[A-Za-z0-9+/=]++(?![^\s\\\"'`<,;)\]}])))*+"
)

USERINFO = re.compile(r"""://[^\s:/?#\[\]@"'`\\<>]{0,256}+:([^\s@"'`\\/<>\x00]{1,256}+)@(?=[\w.\[-])""")
BEARER = re.compile(r"""(?i)\b(?:bearer|token)(?:\s|%20){1,4}["'\\]{0,4}([A-Za-z0-9_.~+/=-]{8,}+)""")
BEARER_LITERAL = "bearer"
BASIC = re.compile(r"""(?i)\bbasic[ \t]{1,4}([A-Za-z0-9+/_-]{8,}+={0,2})""")


def find_web_tokens(text: str) -> Hits:
    """JSON web tokens with all their parts; linear whatever the text is."""
    for run in WEB_TOKEN_RUN.finditer(text):
        body = run.group()
        start = -1
        for part in WEB_TOKEN_PART.finditer(body):
            at = body.find("eyJ", part.start(1), part.end(1))
            if at >= 0 and at + 3 < part.end(1):
                start = at
                break
        if start >= 0 or ("." not in body and len(body) >= WEB_TOKEN_CUT_MIN and run.end() == len(text)):
            yield run.start() + max(start, 0), run.start() + len(body.rstrip("."))


def find_private_keys(text: str) -> Hits:
    """Private keys from BEGIN to END, or as far as key material goes when the end was cut off."""
    position = 0
    while (begin := KEY_BEGIN.search(text, position)) is not None:
        following = KEY_BEGIN.search(text, begin.end(), begin.end() + KEY_LENGTH_MAX)
        limit = following.start() if following else min(len(text), begin.end() + KEY_LENGTH_MAX)
        end = KEY_END.search(text, begin.end(), limit)
        if end is not None and KEY_MATERIAL.search(text, begin.end(), end.start()):
            position = end.end()
        else:
            rest = KEY_REST.match(text, begin.end(), limit)
            has_material = rest is not None and KEY_MATERIAL.search(text, begin.end(), rest.end())
            position = rest.end() if rest is not None and has_material else begin.end()
        yield begin.start(), position


def find_userinfo(text: str) -> Hits:
    """Passwords in `scheme://user:password@host`."""
    for match in USERINFO.finditer(text):
        if not looks_made(match.group(1)):
            yield match.span(1)


def find_bearers(text: str) -> Hits:
    """What follows `Bearer`, when it is a value and not a word or a variable."""
    for match in BEARER.finditer(text):
        word = match.group()[:6].lower()
        if looks_secret(match.group(1), strict=word != BEARER_LITERAL):
            yield match.span(1)


def find_basics(text: str) -> Hits:
    """Basic credentials: base64 that holds `user:password`."""
    for match in BASIC.finditer(text):
        value = match.group(1)
        try:
            decoded = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_")
        except (binascii.Error, ValueError):
            continue
        if b":" in decoded and decoded.replace(b":", b"").strip():
            yield match.span(1)


def _openai_old(text: str) -> Hits:
    for run in re.finditer(r"[A-Za-z0-9_-]{20,}+", text):
        at = run.group().find("sk-")
        if at >= 0 and "T3BlbkFJ" in run.group()[at:]:
            yield run.start() + at, run.end()


def finder_rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (
        Rule("jwt", "JSON Web Token", "eyJD.eyJD.D", ("eyj",), find_web_tokens),
        Rule(
            "private-key",
            "PEM, OpenSSH, PGP",
            "-----BEGIN PRIVATE KEY-----",
            ("private key", "putty-"),
            find_private_keys,
        ),
        Rule("url-userinfo", "URL", "https://user:D@host.example", ("@",), find_userinfo),
        Rule("bearer", "HTTP header", "Authorization: Bearer D", ("bearer", "authorization"), find_bearers),
        Rule("basic-auth", "HTTP header", "Authorization: Basic D", ("basic",), find_basics),
        Rule("openai-key", "OpenAI", "sk-DT3BlbkFJD", ("t3blbkfj",), _openai_old),
        Rule(
            "softlayer-url",
            "SoftLayer",
            "https://api.softlayer.com/soap/v3/D",
            ("api.softlayer.com",),
            by_pattern(re.compile(r"(?i)api\.softlayer\.com/soap/v3(?:\.1)?/([a-z0-9]{20,}+)")),
        ),
    )
