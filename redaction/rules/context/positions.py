"""Secrets told by where they stand: as an argument of a call, beside an id, in a sentence between marks of code."""

import re

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Stand
from redaction.heuristics.values import is_value
from redaction.rules.context.assignments import SECRET_LENGTH, judged
from redaction.rules.context.flags import look_at_value
from redaction.rules.context.pairs import NAMES, VALUE, WHEN
from redaction.rules.rule import Look, Rule, Spans
from redaction.text.escapes import BLANK, NEWLINE
from redaction.text.escapes import STRING_QUOTE as _QUOTE

_FIRST_LENGTH = 4
_HEAD_LENGTH_MAX = 160
_FIRST = rf"[^\s\"'`\\$<{{(]{{{_FIRST_LENGTH}}}"
_ARGUMENT = r"[^,()\n]{1,200},(?:\s|\\{1,15}[nrt]){0,24}"
_NEXT = r"[\s,\\nrt]{1,40}"
_SAYING = r"(?:is|was|to|as|equals|with|=|:|->)"
_SAID = re.compile(
    rb"(?P<name>[\w.-]{2,80})[`'\"\\*]{1,9} " + _SAYING.encode() + rb" (?:the value )?(?P<open>[`'\"\\*]{1,9})\Z"
)
_UNSEALING = re.compile(rb"[A-Za-z0-9+/]{43,88}={0,2}(?![A-Za-z0-9+/])")
_FIRST_PASSWORD = re.compile(rb"[0-9a-f]{32}(?![0-9A-Za-z])")
_AZURE_KEY = re.compile(rb"[A-Za-z0-9+/]{42,86}={1,2}")
_AWS_SECRET = re.compile(rb"(?:(?<![A-Za-z0-9/+])|(?<=\\[nrt]))[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_AWS_APART_MAX = 44
_AWS_LENGTH = 40
_CIPHERTEXT = (b"AQICAH", b"AQECAH")


def find_said(line: bytes, to: int) -> tuple[Spans, int]:
    """A sentence with the name and the value each between marks of code."""
    start = to - SECRET_LENGTH
    found = _SAID.search(line, max(0, start - _HEAD_LENGTH_MAX), start)
    if found is None:
        return (), to
    name = found["name"]
    demand = demand_of(name[1:] if line[found.start() - 1 : found.start()] == b"\\" else name)
    return judged(line, start, found["open"][-1:], demand, to) if demand > Demand.WEAK else ((), to)


def find_parameter(line: bytes, to: int) -> tuple[Spans, int]:
    """The decrypted value of a secret parameter."""
    return ((), to) if line.startswith(_CIPHERTEXT, to - _FIRST_LENGTH) else _PASSWORD(line, to)


def find_aws_pair(line: bytes, to: int) -> tuple[Spans, int]:
    """The secret access key that stands near after its id."""
    for found in _AWS_SECRET.finditer(line, max(0, to - _AWS_LENGTH - 1), min(len(line), to + _AWS_LENGTH)):
        if found.end() >= to and is_value(found.group(), Demand.KEY, Stand.QUOTED):
            return (found.span(),), found.end()
    return (), to


def find_aws_secret(line: bytes, to: int) -> tuple[Spans, int]:
    """The secret access key under any name with aws in it. A digest is as long, but all in small letters."""
    spans, seen = find_aws_pair(line, to)
    return [(start, end) for start, end in spans if not line[start:end].islower()], seen


def _matched(length: int, pattern: re.Pattern[bytes]) -> Look:
    def look(line: bytes, to: int) -> tuple[Spans, int]:
        found = pattern.match(line, to - length)
        if found is None or not is_value(found.group().rstrip(b"="), Demand.KEY):
            return (), to
        return (found.span(),), found.end()

    return look


_PASSWORD = look_at_value(_FIRST_LENGTH, Demand.PASSWORD)
_RULES = (
    Rule(
        "said-secret.code",
        "any",
        "value in marks of code that a sentence gives to a secret's name",
        (rf"(?i:{NAMES}[\w.\-]{{0,24}}[`'\"\\*]{{1,9}} {_SAYING} (?:the value )?)[`'\"\\*]{{1,9}}{VALUE}",),
        find_said,
        "medium",
        "I set `DB_PASSWORD` to `<base62:14>`.",
        "I set `DB_PASSWORD` to `$(pass show db)`.",
        WHEN,
    ),
    Rule(
        "call-password",
        "any",
        "password at its place among the arguments of a call",
        (
            rf"NetworkCredential\({_ARGUMENT}{_QUOTE}{_FIRST}",
            rf"DirectoryEntry\({_ARGUMENT}{_ARGUMENT}{_QUOTE}{_FIRST}",
            rf"(?:getConnection|mysqli|mysqli_connect|real_connect|PDO|DBI->connect|DBI\.connect)\({_ARGUMENT}{_ARGUMENT}"
            rf"{_QUOTE}{_FIRST}",
        ),
        _PASSWORD,
        "medium",
        'DriverManager.getConnection(url, "app", "<base62:14>")',
        'DriverManager.getConnection(url, "app", "password")',
    ),
    Rule(
        "vault-unseal-key",
        "HashiCorp Vault",
        "unseal or recovery key",
        (
            r"(?i:(?:unseal|recovery)[ _-]?key)[ ]?\d{0,2}[\"'`*\\]{0,4}: {0,4}[\"'`*\\]{0,4}[A-Za-z0-9+/]{43}",
            # As an argument, behind options.
            rf"operator unseal (?:-[a-z]{{1,16}}(?:[= ][a-z]{{1,8}})? ){{0,3}}(?:{_QUOTE})?[A-Za-z0-9+/]{{43}}",
        ),
        _matched(43, _UNSEALING),
        example="Unseal Key 1: <base64:43>=",
        counter="Unseal Key 1: <base64:20>=",
    ),
    Rule(
        "jenkins-first-password",
        "Jenkins",
        "password of the first administrator, as the setup prints it",
        (rf"password to proceed to installation:(?:{BLANK}|{NEWLINE}){{1,8}}[0-9a-f]{{32}}",),
        _matched(32, _FIRST_PASSWORD),
        example="Please use the following password to proceed to installation:\\n\\n<hex:32>\\n",
        counter="Please use the following password to proceed to installation:\\n\\n<hex:20>\\n",
    ),
    Rule(
        "server-password",
        "Redis",
        "password in a server's settings",
        (rf"(?:requirepass|masterauth)[ \t]{{1,8}}(?:{_QUOTE})?{_FIRST}",),
        _PASSWORD,
        example="requirepass <base62:14>",
        counter="requirepass password",
    ),
    Rule(
        "ssm-parameter",
        "AWS",
        "value of a secret parameter",
        (rf"SecureString{_QUOTE}{_NEXT}{_QUOTE}Value{_QUOTE}: {{0,4}}{_QUOTE}{_FIRST}",),
        find_parameter,
        example='{"Name":"/a/password","Type":"SecureString","Value":"<base62:14>"}',
        counter='{"Name":"/a/password","Type":"SecureString","Value":"AQICAH<base62:60>"}',
    ),
    Rule(
        "azure-account-key",
        "Azure",
        "key of an account, as it is listed",
        (
            rf"keyName{_QUOTE}: {{0,4}}{_QUOTE}key\d{_QUOTE}[^{{}}]{{1,100}}value{_QUOTE}: {{0,4}}{_QUOTE}"
            r"[A-Za-z0-9+/]{42}",
        ),
        _matched(42, _AZURE_KEY),
        example='{"keyName":"key1","permissions":"FULL","value":"<base64:86>=="}',
        counter='{"keyName":"key1","permissions":"FULL","value":"<base64:20>=="}',
    ),
    Rule(
        "aws-key-pair",
        "AWS",
        "secret access key beside its id",
        (rf"A[KS]IA[0-9A-Z]{{16}}[^0-9A-Za-z\n][^\n]{{0,{_AWS_APART_MAX}}}[A-Za-z0-9/+]{{{_AWS_LENGTH}}}",),
        find_aws_pair,
        example="AKIA<base32:16>\t<base64:40>",
        counter="AKIA<base32:16>\t<base64:30>",
    ),
    Rule(
        "aws-named-key",
        "AWS",
        "secret access key under a name with aws in it",
        (rf"(?i:aws)[\w .\-]{{0,24}}[\"'`\\]{{0,9}} {{0,4}}[:=] {{0,4}}[\"'`\\]{{0,9}}[A-Za-z0-9/+]{{{_AWS_LENGTH}}}",),
        find_aws_secret,
        example="aws_sec: <base64:40>",
        counter="aws_sdk: <hex:40>",
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
