"""Secrets of particular products, told by the text that their tools print or take around them."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.values import is_value, value_span
from redaction.rules.context.extractors import extract_match, extract_value
from redaction.rules.rule import Extraction, Rule
from redaction.text.escapes import BLANK, NEWLINE
from redaction.text.escapes import STRING_QUOTE as _QUOTE

_FIRST_LENGTH = 4
_FIRST = rf"[^\s\"'`\\$<{{(]{{{_FIRST_LENGTH}}}"
_ARGUMENT = r"[^,()\n]{1,200},(?:\s|\\{1,15}[nrt]){0,24}"
_NEXT = r"[\s,\\nrt]{1,40}"
_UNSEALING = re.compile(rb"[A-Za-z0-9+/]{43,88}={0,2}(?![A-Za-z0-9+/])")
_FIRST_PASSWORD = re.compile(rb"[0-9a-f]{32}(?![0-9A-Za-z])")
_AZURE_KEY = re.compile(rb"[A-Za-z0-9+/]{42,86}={1,2}")
_AWS_SECRET = re.compile(rb"(?:(?<![A-Za-z0-9/+])|(?<=\\[nrt]))[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_AWS_APART_MAX = 44
_AWS_LENGTH = 40
_CIPHERTEXT = (b"AQICAH", b"AQECAH")
_PASSPHRASE_BYTES = 6
_PASSPHRASE_LENGTH_MIN = 8
_PLACEHOLDER = re.compile(rb"[$<{%*!&\[(]|your|my[-_]?pass|change|example|secret\b|password\b|xxx", re.IGNORECASE)
_MIXED = re.compile(rb"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9!#$%&*@^?]*[0-9!#$%&*@^?]).")
_RAILS_KEY = re.compile(rb"[0-9a-f]{32}(?![0-9A-Za-z])")
_AWS_ANSWER = re.compile(rb"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])")
_FERNET_KEY = re.compile(rb"[A-Za-z0-9_-]{43}=")
_PASSPHRASE = rf"[^\s\"'`\\$<{{]{{{_PASSPHRASE_BYTES}}}"


def extract_parameter(line: bytes, to: int) -> Extraction:
    """The decrypted value of a secret parameter."""
    return ((), to) if line.startswith(_CIPHERTEXT, to - _FIRST_LENGTH) else _extract_password(line, to)


def extract_aws_pair(line: bytes, to: int) -> Extraction:
    """The secret access key shortly after its id."""
    for found in _AWS_SECRET.finditer(line, max(0, to - _AWS_LENGTH - 1), min(len(line), to + _AWS_LENGTH)):
        if found.end() >= to and is_value(found.group(), Demand.KEY):
            return (found.span(),), found.end()
    return (), to


def extract_aws_secret(line: bytes, to: int) -> Extraction:
    """The secret access key under any name with aws in it. A digest has the same length, but only small letters."""
    spans, seen = extract_aws_pair(line, to)
    return [(start, end) for start, end in spans if not line[start:end].islower()], seen


def extract_network_password(line: bytes, to: int) -> Extraction:
    """The passphrase of a network. People choose them, so words with a digit count too."""
    start, end = value_span(line, to - _PASSPHRASE_BYTES)
    value = line[start:end]
    is_one = len(value) >= _PASSPHRASE_LENGTH_MIN and not _PLACEHOLDER.match(value) and _MIXED.match(value) is not None
    is_one = is_one or is_value(value, Demand.PASSWORD)
    return (((start, end),), max(to, end)) if is_one else ((), max(to, end))


_extract_password = extract_value(_FIRST_LENGTH, Demand.PASSWORD)

RULES = (
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
        _extract_password,
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
            # As an argument, after options.
            rf"operator unseal (?:-[a-z]{{1,16}}(?:[= ][a-z]{{1,8}})? ){{0,3}}(?:{_QUOTE})?[A-Za-z0-9+/]{{43}}",
        ),
        extract_match(43, _UNSEALING, Demand.KEY),
        example="Unseal Key 1: <base64:43>=",
        counter="Unseal Key 1: <base64:20>=",
    ),
    Rule(
        "jenkins-first-password",
        "Jenkins",
        "password of the first administrator, as the setup prints it",
        (rf"password to proceed to installation:(?:{BLANK}|{NEWLINE}){{1,8}}[0-9a-f]{{32}}",),
        extract_match(32, _FIRST_PASSWORD, Demand.KEY),
        example="Please use the following password to proceed to installation:\\n\\n<hex:32>\\n",
        counter="Please use the following password to proceed to installation:\\n\\n<hex:20>\\n",
    ),
    Rule(
        "server-password",
        "Redis",
        "password in a server's settings",
        (rf"(?:requirepass|masterauth)[ \t]{{1,8}}(?:{_QUOTE})?{_FIRST}",),
        _extract_password,
        example="requirepass <base62:14>",
        counter="requirepass password",
    ),
    Rule(
        "ssm-parameter",
        "AWS",
        "value of a secret parameter",
        (rf"SecureString{_QUOTE}{_NEXT}{_QUOTE}Value{_QUOTE}: {{0,4}}{_QUOTE}{_FIRST}",),
        extract_parameter,
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
        extract_match(42, _AZURE_KEY, Demand.KEY),
        example='{"keyName":"key1","permissions":"FULL","value":"<base64:86>=="}',
        counter='{"keyName":"key1","permissions":"FULL","value":"<base64:20>=="}',
    ),
    Rule(
        "aws-key-pair",
        "AWS",
        "secret access key beside its id",
        (rf"A[KS]IA[0-9A-Z]{{16}}[^0-9A-Za-z\n][^\n]{{0,{_AWS_APART_MAX}}}[A-Za-z0-9/+]{{{_AWS_LENGTH}}}",),
        extract_aws_pair,
        example="AKIA<base32:16>\t<base64:40>",
        counter="AKIA<base32:16>\t<base64:30>",
    ),
    Rule(
        "aws-named-key",
        "AWS",
        "secret access key under a name with aws in it",
        (rf"(?i:aws)[\w .\-]{{0,24}}[\"'`\\]{{0,9}} {{0,4}}[:=] {{0,4}}[\"'`\\]{{0,9}}[A-Za-z0-9/+]{{{_AWS_LENGTH}}}",),
        extract_aws_secret,
        example="aws_sec: <base64:40>",
        counter="aws_sdk: <hex:40>",
    ),
    Rule(
        "network-password",
        "Wi-Fi",
        "passphrase or key of a network",
        (
            rf"(?:[\s#.;\[:|>+-]|\\{{1,15}}[nrt])(?:psk|wpa_passphrase|wpa_psk|sae_password|wep-key[0-3])"
            rf"(?: ?= ?|: {{1,24}})(?:{_QUOTE})?{_PASSPHRASE}",
            rf"nmcli [^\n|;]{{0,60}}wifi connect [^\n|;]{{1,80}} password (?:{_QUOTE})?{_PASSPHRASE}",
            rf"wpa_passphrase [^\s|;]{{1,64}} (?:{_QUOTE})?{_PASSPHRASE}",
            rf"WiFi\.begin\([^,\n]{{1,64}}, ?(?:{_QUOTE}){_PASSPHRASE}",
        ),
        extract_network_password,
        example="network={\n  psk=<base62:16>",
        counter="network={\n  psk=$WIFI_PASSWORD",
    ),
    Rule(
        "rails-key-file",
        "Ruby on Rails",
        "master key, printed",
        (r"(?:master|production|staging|development)\.key(?:[\s:]|\\{1,15}[nrt]){1,6}[0-9a-f]{32}",),
        extract_match(32, _RAILS_KEY, Demand.KEY),
        example="$ cat config/master.key\n<hex:32>",
        counter="$ cat config/master.key\n<hex:20>",
    ),
    Rule(
        "aws-answer",
        "AWS",
        "secret access key, typed in",
        (r"Secret Access Key \[[^\]\n]{0,40}\]: {0,2}[A-Za-z0-9/+]{40}",),
        extract_match(40, _AWS_ANSWER, Demand.KEY),
        example="AWS Secret Access Key [None]: <base64:40>",
        counter="AWS Secret Access Key [None]: <base64:20>",
    ),
    Rule(
        "fernet-key",
        "Python cryptography",
        "Fernet key",
        (rf"Fernet\(b?{_QUOTE}[A-Za-z0-9_-]{{43}}=",),
        extract_match(44, _FERNET_KEY, Demand.KEY),
        example="Fernet(b'<base64url:43>=')",
        counter="Fernet(b'<base64url:20>=')",
    ),
)
