"""Secrets of particular products, told by the text that their tools print or take around them."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import is_value, value_span
from redaction.rules.checks import BASE58, base58_checked
from redaction.rules.context.extractors import extract_value
from redaction.rules.rule import Extraction

_FIRST_LENGTH = 4
_AWS_SECRET = re.compile(rb"(?:(?<![A-Za-z0-9/+])|(?<=\\[nrt]))[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=_-])")
_AWS_LENGTH = 40
_CIPHERTEXT = (b"AQICAH", b"AQECAH")
_PASSPHRASE_BYTES = 6
_PASSPHRASE_LENGTH_MIN = 8
_PLACEHOLDER = re.compile(rb"[$<{%*!&\[(]|your|my[-_]?pass|change|example|secret\b|password\b|xxx", re.IGNORECASE)
_MIXED = re.compile(rb"(?=[^A-Za-z]*[A-Za-z])(?=[^0-9!#$%&*@^?]*[0-9!#$%&*@^?]).")


def extract_decrypted_parameter(line: bytes, to: int) -> Extraction:
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


def extract_codes(line: bytes, to: int) -> Extraction:
    """The codes in the lines or words below, if there are two of them at least."""
    spans: list[tuple[int, int]] = []
    at = to
    while len(spans) < _CODES_MAX and (found := _CODE.match(line, at, min(len(line), at + 120))) is not None:
        spans.append(found.span("code"))
        at = found.end()
    is_list = len(spans) > 1 and all(_HAS_DIGIT.search(line, *span) for span in spans[:2])
    return (spans, at) if is_list else ((), to)


def extract_import_key(line: bytes, to: int) -> Extraction:
    """A Bitcoin key whose checksum is right."""
    found = _IMPORT_KEY.match(line, to - _IMPORT_KEY_BYTES)
    if found is None:
        return (), to
    number = 0
    for digit in found.group():
        number = number * len(BASE58) + BASE58.index(digit)
    body = number.to_bytes(38, "big").lstrip(b"\0")[:-4]
    return ((found.span(),), found.end()) if base58_checked(body) == found.group() else ((), to)


def extract_code(line: bytes, to: int) -> Extraction:
    """A code of a device, which is random, or what its user types, which has a form of its own."""
    lowest = max(0, to - _DEVICE_MAX)
    start = lowest + max(map(line[lowest:to].rfind, (b"=", b":", b'"', b"'", b" "))) + 1
    found = _DEVICE_CODE.match(line, start)
    if found is None:
        return (), to
    is_one = _USER_CODE.fullmatch(found.group()) or is_value(found.group(), Demand.TOKEN)
    return ((found.span(),), found.end()) if is_one else ((), to)


def extract_first_passwords(line: bytes, to: int) -> Extraction:
    """The passwords in a list of users and passwords."""
    spans: list[tuple[int, int]] = []
    at = to
    while len(spans) < _CODES_MAX and (found := _USER_PASSWORD.match(line, at, min(len(line), at + 400))) is not None:
        if found["password"] not in (b"RANDOM", b"R") and is_value(found["password"], Demand.CERTAIN, Placement.BARE):
            spans.append(found.span("password"))
        at = found.end()
    return spans, max(to, at)


_CODES_MAX = 32
_BETWEEN = rb"(?:[\s:,;.*\[\]\"'`()|>-]|\\{1,15}[nrt]|\d{1,2}[.)] )"
_CODE = re.compile(_BETWEEN + rb"{1,40}(?P<code>[0-9A-Za-z]{4,8}(?:-[0-9A-Za-z]{4,8}){0,4}+)(?![\w-])")
_HAS_DIGIT = re.compile(rb"[0-9]")
_IMPORT_KEY = re.compile(rb"[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![0-9A-Za-z])")
_IMPORT_KEY_BYTES = 51
_DEVICE_MAX = 24
_DEVICE_CODE = re.compile(rb"[A-Za-z0-9_.-]{7,2048}")
_USER_CODE = re.compile(rb"[A-Z0-9]{3,4}-[A-Z0-9]{3,4}")
_USER_PASSWORD = re.compile(
    rb"(?:[\s|>\"'-]|\\{1,15}[nrt]){1,60}[a-z_][\w.-]{0,31}:(?P<password>[^\s\"'`\\:]{3,128})(?=[\s\"'\\]|\Z)"
)
_extract_password = extract_value(_FIRST_LENGTH, Demand.CERTAIN)
