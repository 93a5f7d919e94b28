"""Secrets in places of their own: of wireless networks, of key files that are printed, of what a prompt is answered."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Stand
from redaction.heuristics.values import is_value, value_span
from redaction.rules.rule import Rule, Spans
from redaction.text.escapes import STRING_QUOTE as _QUOTE

_VALUE_BYTES = 6
_LENGTH_MIN = 8
_STANDS_IN = re.compile(rb"[$<{%*!&\[(]|your|my[-_]?pass|change|example|secret\b|password\b|xxx", re.IGNORECASE)
_MIXED = re.compile(rb"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9!#$%&*@^?]*[0-9!#$%&*@^?]).")
_HEX = re.compile(rb"[0-9a-f]{32}(?![0-9A-Za-z])")
_AWS = re.compile(rb"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])")
_FERNET = re.compile(rb"[A-Za-z0-9_-]{43}=")
_FIRST = rf"[^\s\"'`\\$<{{]{{{_VALUE_BYTES}}}"


def find_network_password(line: bytes, to: int) -> tuple[Spans, int]:
    """The passphrase of a network; people choose them, so words with a digit are one, too."""
    start, end = value_span(line, to - _VALUE_BYTES)
    value = line[start:end]
    is_one = len(value) >= _LENGTH_MIN and not _STANDS_IN.match(value) and _MIXED.match(value) is not None
    is_one = is_one or is_value(value, Demand.PASSWORD)
    return (((start, end),), max(to, end)) if is_one else ((), max(to, end))


def _find(pattern: re.Pattern[bytes], line: bytes, start: int, to: int) -> tuple[Spans, int]:
    found = pattern.match(line, start)
    if found is None or not is_value(found.group().rstrip(b"="), Demand.KEY, Stand.QUOTED):
        return (), to
    return (found.span(),), found.end()


def find_printed_key(line: bytes, to: int) -> tuple[Spans, int]:
    """Rails' master key, when its file is printed."""
    return _find(_HEX, line, to - 32, to)


def find_answer(line: bytes, to: int) -> tuple[Spans, int]:
    """What is typed in when `aws configure` asks."""
    return _find(_AWS, line, to - 40, to)


def find_fernet_key(line: bytes, to: int) -> tuple[Spans, int]:
    """A key that Python's Fernet is given."""
    return _find(_FERNET, line, to - 44, to)


_RULES = (
    Rule(
        "network-password",
        "Wi-Fi",
        "passphrase or key of a network",
        (
            rf"(?:[\s#.;\[:|>+-]|\\{{1,15}}[nrt])(?:psk|wpa_passphrase|wpa_psk|sae_password|wep-key[0-3])"
            rf"(?: ?= ?|: {{1,24}})(?:{_QUOTE})?{_FIRST}",
            rf"nmcli [^\n|;]{{0,60}}wifi connect [^\n|;]{{1,80}} password (?:{_QUOTE})?{_FIRST}",
            rf"wpa_passphrase [^\s|;]{{1,64}} (?:{_QUOTE})?{_FIRST}",
            rf"WiFi\.begin\([^,\n]{{1,64}}, ?(?:{_QUOTE}){_FIRST}",
        ),
        find_network_password,
        example="network={\n  psk=<base62:16>",
        counter="network={\n  psk=$WIFI_PASSWORD",
    ),
    Rule(
        "rails-key-file",
        "Ruby on Rails",
        "master key, printed",
        (r"(?:master|production|staging|development)\.key(?:[\s:]|\\{1,15}[nrt]){1,6}[0-9a-f]{32}",),
        find_printed_key,
        example="$ cat config/master.key\n<hex:32>",
        counter="$ cat config/master.key\n<hex:20>",
    ),
    Rule(
        "aws-answer",
        "AWS",
        "secret access key, typed in",
        (r"Secret Access Key \[[^\]\n]{0,40}\]: {0,2}[A-Za-z0-9/+]{40}",),
        find_answer,
        example="AWS Secret Access Key [None]: <base64:40>",
        counter="AWS Secret Access Key [None]: <base64:20>",
    ),
    Rule(
        "fernet-key",
        "Python cryptography",
        "Fernet key",
        (rf"Fernet\(b?{_QUOTE}[A-Za-z0-9_-]{{43}}=",),
        find_fernet_key,
        example="Fernet(b'<base64url:43>=')",
        counter="Fernet(b'<base64url:20>=')",
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
