"""What is given to a flag, a header or an address: where it ends, and whether it is a secret."""

import re

from redaction.judge import is_secret
from redaction.names import Demand
from redaction.raw import closing_quote, opening_quote, unescaped

LENGTH_MAX = 4096

_BARE = re.compile(rb"[^\s\"'`\\;|&<>()\x00]{1,4096}+")


def value_span(line: bytes, start: int) -> tuple[int, int]:
    """The value that starts there: up to the quote that closes it, or to the end of the word."""
    limit = min(len(line), start + LENGTH_MAX)
    quote = opening_quote(line, start)
    if quote:
        end = closing_quote(line, start, quote, limit)
        if end > start and line.find(b"\n", start, end) < 0:
            return start, end
    match = _BARE.match(line, start, limit)
    return start, match.end() if match else start


def is_value(raw: bytes, demand: Demand, *, quoted: bool = True) -> bool:
    """Whether the raw value is a secret, given what is demanded of it."""
    return is_secret(unescaped(raw), demand, quoted=quoted)
