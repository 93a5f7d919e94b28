"""What extracts the secrets of a rule: general functions, which its row in the table names, or one of its family."""

import re
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TypeAlias

from redaction.heuristics.names import Demand, demand_of
from redaction.heuristics.secrecy import Placement
from redaction.heuristics.values import is_value, value_span
from redaction.rules.context.assignments import QUOTE_CHARACTERS, assigned_after_gate, assigned_secret
from redaction.rules.context.table import Row
from redaction.rules.rule import Extract, Extraction

# Some tokens of services are nothing but a UUID.
UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# The value names where the secret is.
_ELSEWHERE = re.compile(rb"[\w.-]{1,40}[=:][^=]|/|\./|~/|https?:|[\w./-]{1,60}\.(?:txt|json|ya?ml|key|pem|env|enc)\b")
_ESCAPE = re.compile(rb"\\[nrt]\Z")
# Decides about the value that begins at a place, by the match of the row's expression.
Decide: TypeAlias = Callable[[bytes, int, re.Match[bytes], int], Extraction]


def extractor(row: Row, family: ModuleType) -> Extract:
    """Return what extracts the secrets of this row, whose family has this module."""
    demand = Demand[row.demand.upper()] if row.demand else Demand.NONE
    match row.extract:
        case "value":
            return extract_value(row.length, demand)
        case "assigned":
            return partial(assigned_after_gate, row.length)
        case "match":
            return _with_match(row, _decide_match(demand, row.padding.encode()))
        case "parameter":
            return _with_match(row, _decide_parameter(demand))
        case "after":
            return _with_match(row, _decide_after(re.compile(row.unless.encode()) if row.unless else None))
        case name:
            function = getattr(family, f"extract_{name}")
            has_match = row.pattern or row.before or row.backwards
            extract: Extract = _with_match(row, function) if has_match else function
            return extract


def _with_match(row: Row, decide: Decide) -> Extract:
    """Return what matches the row's expression, and extracts what is decided about the match."""
    pattern = re.compile((row.pattern or row.before or row.backwards).encode())
    length, reach = row.length, row.reach

    def at(line: bytes, to: int) -> Extraction:
        start = to - length
        found = pattern.match(line, start, start + reach)
        return decide(line, start, found, to) if found is not None else ((), to)

    def before(line: bytes, to: int) -> Extraction:
        start = to - length
        found = pattern.search(line, max(0, start - reach), start)
        return decide(line, start, found, to) if found is not None else ((), to)

    def backwards(line: bytes, to: int) -> Extraction:
        start = to - length
        found = pattern.match(line[max(0, start - reach) : start][::-1])
        return decide(line, start, found, to) if found is not None else ((), to)

    return at if row.pattern else before if row.before else backwards


def extract_value(length: int, demand: Demand) -> Extract:
    """Return what extracts the word or quoted text that begins `length` bytes before the hit."""

    def extract(line: bytes, to: int) -> Extraction:
        start = to - length
        if _ESCAPE.search(line, max(0, start - 1), start + 1):
            return (), to
        if demand != Demand.CERTAIN and _ELSEWHERE.match(line, start):
            return (), to
        start, end = value_span(line, start)
        placement = Placement.QUOTED if line[start - 1] in QUOTE_CHARACTERS else Placement.BARE
        is_secret = is_value(line[start:end], demand, placement if demand == Demand.CERTAIN else Placement.QUOTED) or (
            demand == Demand.TOKEN and UUID.fullmatch(line, start, end)
        )
        return (((start, end),), max(to, end)) if is_secret else ((), max(to, end))

    return extract


def _decide_match(demand: Demand, padding: bytes) -> Decide:
    """The match or its one group, if without padding it meets the demand."""

    def decide(_line: bytes, _start: int, found: re.Match[bytes], to: int) -> Extraction:
        if demand != Demand.NONE and not is_value(found.group().rstrip(padding), demand):
            return (), to
        return (found.span(found.re.groups and 1),), found.end()

    return decide


def _decide_parameter(demand: Demand) -> Decide:
    """The match without the end of a sentence after it, if it meets the demand."""

    def decide(_line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
        text = found.group().rstrip(b" .")
        placement = Placement.BARE if demand == Demand.CERTAIN else Placement.QUOTED
        return ((start, start + len(text)),) if is_value(text, demand, placement) else (), max(found.end(), to)

    return decide


def _decide_after(unless: re.Pattern[bytes] | None) -> Decide:
    """The value after the groups `name` and `open`, its quote; names that match `unless` do not count."""

    def decide(line: bytes, start: int, found: re.Match[bytes], to: int) -> Extraction:
        name = found["name"]
        if unless is not None and unless.match(name):
            return (), to
        is_escaped = line[found.start("name") - 1 : found.start("name")] == b"\\"
        demand = demand_of(name[1:] if is_escaped else name)
        return assigned_secret(line, start, found["open"] or b"", demand, to)

    return decide
