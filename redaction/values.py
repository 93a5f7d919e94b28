"""What is given to a flag, a header or an address: where it ends, and whether it is a secret."""

from redaction.extent import extent
from redaction.judge import Stand, is_secret
from redaction.names import Demand
from redaction.raw import opening_quote, unescaped


def value_span(line: bytes, start: int) -> tuple[int, int]:
    """The value that starts there: up to the quote that closes it, or to the end of the word."""
    value = extent(line, start, opening_quote(line, start))
    return value.start, value.end


def is_value(raw: bytes, demand: Demand, stand: Stand = Stand.QUOTED) -> bool:
    """Whether the raw value is a secret, given what is demanded of it and how it stands in the text."""
    return is_secret(unescaped(raw), demand, stand)
