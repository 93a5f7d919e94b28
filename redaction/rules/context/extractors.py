"""What the families share: extracting a value or a match that begins at a fixed distance before a hit."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.values import is_value, value_span
from redaction.rules.rule import Extract, Extraction

# Some tokens of services are nothing but a UUID.
UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# The value names where the secret is.
_ELSEWHERE = re.compile(rb"[\w.-]{1,40}[=:][^=]|/|\./|~/|https?:|[\w./-]{1,60}\.(?:txt|json|ya?ml|key|pem|env|enc)\b")
_ESCAPE = re.compile(rb"\\[nrt]\Z")


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


def extract_match(
    length: int, pattern: re.Pattern[bytes], demand: Demand | None = None, *, padding: bytes = b"="
) -> Extract:
    """Return what extracts a match `length` bytes before the hit, if without padding it meets the demand."""

    def extract(line: bytes, to: int) -> Extraction:
        found = pattern.match(line, to - length)
        if found is None or not (demand is None or is_value(found.group().rstrip(padding), demand)):
            return (), to
        return (found.span(),), found.end()

    return extract
