"""Secrets that begin a block of YAML: the name stands in the line above, with a bar behind it."""

import re

from redaction.heuristics.names import demand_of
from redaction.rules.context.assignments import SECRET_LENGTH, judged
from redaction.rules.context.pairs import NAMES, VALUE, WHEN, after_escape_of, head_of
from redaction.rules.rule import Rule, Spans


def look_block(line: bytes, to: int) -> tuple[Spans, int]:
    """The first line of a YAML block."""
    start = to - SECRET_LENGTH
    found = BLOCK.match(head_of(line, start))
    if found is None:
        return (), to
    name = after_escape_of(found["name"][::-1], line, start - found.end("name") - 1)
    demand = demand_of(name)
    return judged(line, start, b"", demand, to) if demand else ((), to)


BLOCK = re.compile(
    rb"[ \t]{1,24}(?:[\r\n]|[nr]\\{1,15}){1,3}[ \t]{0,4}[\d+\-]{0,2}[|>][ \t]{1,8}:[\"']?(?P<name>[\w.\-]{2,80}+)"
)


_RULES = (
    Rule(
        "block-secret",
        "any",
        "first line of a YAML block that belongs to a secret's name",
        (
            r"(?i)"
            + NAMES
            + r"[\w.\-]{0,24}[\"']?:[ ]{1,8}[|>][\d+\-]{0,2}[ ]{0,4}(?:[\r\n]|\\{1,15}[nr]){1,3}[ ]{1,24}"
            + VALUE,
        ),
        look_block,
        "medium",
        "password: |\n  <base62:14>",
        "password: |\n  ${DB_PASSWORD}",
        WHEN,
    ),
)


def rules() -> tuple[Rule, ...]:
    """The rules of this module."""
    return _RULES
