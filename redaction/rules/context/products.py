"""Secrets of particular products, told by the text that their tools print or take around them."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.values import is_value, value_span
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


_extract_password = extract_value(_FIRST_LENGTH, Demand.PASSWORD)
