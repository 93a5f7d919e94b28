"""Secrets given to long options of command lines, also where the arguments are a list."""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.values import is_value, value_span
from redaction.rules.rule import Look, Rule, Spans

_VALUE_BYTES = 4
# Between an option and its value; in a list of arguments that is a quote, a comma and a quote.
_GIVEN = r"""(?:[ \t=]|\\{0,15}["'`],?){1,6}"""
_FIRST = rf"[^\s\"'`\\=,;|&<>(){{}}$-][^\s\"'`\\;|&<>()]{{{_VALUE_BYTES - 1}}}"
_OPENED = r"(?:\\{0,15}[\"'])?"
_BEFORE = r"(?:[\s\"'`]|\\[nt])"
_PASSWORDS = (
    r"(?i:password|passwd|passphrase|passwort|passcode|[-]pass|[-]pwd|storepass|keypass|requirepass|pwd|[-]psk)"
)
_KEYS = (
    r"(?i:secret|token|(?:api|access|secret|account|auth|client|private|master|encryption|fernet|storage|shared|signing|function|license|app"
    r"|project|write|service|admin|webhook|deploy|session|subscription|registry|search|rest)-?key|credentials?|auth|sas)"
)
_HOMES = re.compile(rb"[\w.-]{1,40}[=:][^=]|/|\./|~/|https?:|[\w./-]{1,60}\.(?:txt|json|ya?ml|key|pem|env|enc)\b")
# Some services' tokens are nothing else.
UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ESCAPE = re.compile(rb"\\[nrt]\Z")


def look_at_value(length: int, demand: Demand) -> Look:
    """A look at the word or quoted text that starts `length` bytes before the gate's end."""

    def look(line: bytes, to: int) -> tuple[Spans, int]:
        start = to - length
        if _ESCAPE.search(line, max(0, start - 1), start + 1) or _HOMES.match(line, start):
            return (), to
        start, end = value_span(line, start)
        is_secret = is_value(line[start:end], demand) or (demand == Demand.TOKEN and UUID.fullmatch(line, start, end))
        return (((start, end),), max(to, end)) if is_secret else ((), max(to, end))

    return look


def find_option_token(line: bytes, to: int) -> tuple[Spans, int]:
    """The value of an option that is named after a token or key, unless it is one of paging, locking or lexing."""
    start = to - _VALUE_BYTES
    option = _OPTION.search(line, max(0, start - _OPTION_MAX), start)
    if option is not None and (_OF_PAGES.match(option[1]) or demand_of(option[1]) == Demand.NONE):
        return (), to
    return _find_token(line, to)


_OPTION = re.compile(rb"--([A-Za-z0-9-]{2,60}[Tt]okens?)(?:[ \t=]|\\{0,15}[\"'`],?){1,6}\Z")
_OF_PAGES = re.compile(rb"(?i)(?:starting|change|lock|if-match|resume|continuation|next)-?")
_OPTION_MAX = 100
_find_token = look_at_value(_VALUE_BYTES, Demand.TOKEN)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return (
        Rule(
            "option-password",
            "command line",
            "password given to an option",
            (rf"{_BEFORE}--?[A-Za-z0-9-]{{0,24}}{_PASSWORDS}{_GIVEN}{_FIRST}",),
            look_at_value(_VALUE_BYTES, Demand.PASSWORD),
            example="tool --db-password <base62:12> --verbose",
            counter="tool --db-password password --verbose",
        ),
        Rule(
            "option-token",
            "command line",
            "token or key given to an option",
            (
                rf"{_BEFORE}--[A-Za-z0-9-]{{0,24}}{_KEYS}{_GIVEN}{_FIRST}",
                # As PowerShell has them.
                rf"{_BEFORE}-(?:[A-Z][a-z]{{2,11}})?(?:ApiKey|Token|Secret|AccessKey|AuthKey) {_OPENED}{_FIRST}",
            ),
            find_option_token,
            "medium",
            example="tool --token <base62:24> --verbose",
            counter="tool --token your-token-here --verbose",
        ),
    )
