"""What extracts the secrets of a rule: general functions, which its row in the table names, or one of its family."""

import re
from functools import partial
from types import ModuleType
from typing import Final

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.values import is_value, value_span
from redaction.rules.context.assignments import assigned_after_gate, assigned_secret
from redaction.rules.context.table import Row
from redaction.rules.rule import Extract, Extraction

# Some tokens of services are nothing but a UUID.
UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# The value names where the secret is.
_ELSEWHERE = re.compile(rb"[\w.-]{1,40}[=:][^=]|/|\./|~/|https?:|[\w./-]{1,60}\.(?:txt|json|ya?ml|key|pem|env|enc)\b")
_ESCAPE = re.compile(rb"\\[nrt]\Z")
_PARAMETER_LENGTH_MAX: Final = 4096


def extractor(row: Row, family: ModuleType) -> Extract:
    """Return what extracts the secrets of this row, whose family has this module."""
    demand = Demand[row.demand.upper()] if row.demand else Demand.NONE
    pattern = re.compile(row.pattern.encode())
    match row.extract:
        case "value":
            return extract_value(row.length, demand)
        case "match":
            return _extract_match(row.length, pattern, demand, row.padding.encode())
        case "parameter":
            return _extract_parameter(row.length, pattern, demand)
        case "after":
            return _extract_after(
                row.length, pattern, row.reach, re.compile(row.unless.encode()) if row.unless else None
            )
        case "assigned":
            return partial(assigned_after_gate, row.length)
        case name:
            function: Extract = getattr(family, f"extract_{name}")
            return function


def extract_value(length: int, demand: Demand) -> Extract:
    """Return what extracts the word or quoted text that begins `length` bytes before the hit."""

    def extract(line: bytes, to: int) -> Extraction:
        start = to - length
        if _ESCAPE.search(line, max(0, start - 1), start + 1) or _ELSEWHERE.match(line, start):
            return (), to
        start, end = value_span(line, start)
        is_secret = is_value(line[start:end], demand) or (demand == Demand.TOKEN and UUID.fullmatch(line, start, end))
        return (((start, end),), max(to, end)) if is_secret else ((), max(to, end))

    return extract


def _extract_match(length: int, pattern: re.Pattern[bytes], demand: Demand, padding: bytes) -> Extract:
    """Return what extracts a match `length` bytes before the hit, if without padding it meets the demand."""

    def extract(line: bytes, to: int) -> Extraction:
        found = pattern.match(line, to - length)
        if found is None or not (demand == Demand.NONE or is_value(found.group().rstrip(padding), demand)):
            return (), to
        return (found.span(),), found.end()

    return extract


def _extract_parameter(length: int, pattern: re.Pattern[bytes], demand: Demand) -> Extract:
    """Return what extracts a match `length` bytes before the hit, without the end of a sentence after it."""

    def extract(line: bytes, to: int) -> Extraction:
        start = to - length
        found = pattern.match(line, start, min(len(line), start + _PARAMETER_LENGTH_MAX))
        if found is None:
            return (), to
        text = found.group().rstrip(b" .")
        return ((start, start + len(text)),) if is_value(text, demand) else (), max(found.end(), to)

    return extract


def _extract_after(length: int, pattern: re.Pattern[bytes], reach: int, unless: re.Pattern[bytes] | None) -> Extract:
    """Return what extracts a value after a match of the pattern, with the groups `name` and `open`, its quote.

    Names that match `unless` do not count.
    """

    def extract(line: bytes, to: int) -> Extraction:
        start = to - length
        found = pattern.search(line, max(0, start - reach), start)
        if found is None or (unless is not None and unless.match(found["name"])):
            return (), to
        is_escaped = line[found.start("name") - 1 : found.start("name")] == b"\\"
        name = found["name"][1:] if is_escaped else found["name"]
        return assigned_secret(line, start, found["open"] or b"", demand_of(name), to)

    return extract
