"""What is given to a flag, a header or an address: where it ends, and whether it is a secret."""

import re

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Stand, is_secret
from redaction.text.escapes import opening_quote, unescaped
from redaction.text.extent import extent

JUDGED_LENGTH_MAX = 64  # what is longer is judged by its beginning

# Letters whose case changes more often than in any name put together from words.
_LETTERS = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z_.-]{8,}")
_OUTER_END = re.compile(rb"\\+(?:\"|\Z)")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PART_LENGTH_MAX = 2.7


def value_span(line: bytes, start: int) -> tuple[int, int]:
    """The value that starts there: up to the quote that closes it, or to the end of the word."""
    quote = opening_quote(line, start)
    value = extent(line, start, quote)
    if quote and not line.startswith(quote, value.end):
        # It was cut off: what ends it is a quote of what it stands in, perhaps behind the half of an escape.
        cut = _OUTER_END.search(line, start, value.end)
        return start, cut.start() if cut else value.end
    return start, value.end


def in_marker(line: bytes, at: int) -> bool:
    """Whether that place is within a marker that stands for a secret already found."""
    opened = line.rfind(b"[REDACTED:", max(0, at - 80), at)
    return opened >= 0 and line.find(b"]", opened, at) < 0


def is_value(raw: bytes, demand: Demand, stand: Stand = Stand.QUOTED) -> bool:
    """Whether the raw value is a secret, given what is demanded of it and how it stands in the text."""
    text = unescaped(raw[: 2 * JUDGED_LENGTH_MAX])[:JUDGED_LENGTH_MAX]
    return is_secret(text, demand, stand) or (demand >= Demand.KEY and _is_scrambled(text))


def _is_scrambled(text: str) -> bool:
    if _LETTERS.fullmatch(text) is None:
        return False
    parts = _PART.findall(text)
    return sum(map(len, parts)) < _PART_LENGTH_MAX * len(parts)
