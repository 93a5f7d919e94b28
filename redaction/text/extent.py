"""Where a value in a raw line ends, whatever quotes it has and however deeply it is escaped."""

import re
from dataclasses import dataclass

from redaction.text.escapes import closing_quote

QUOTED_LENGTH_MAX = 4096
PLAIN_LENGTH_MAX = 4096
PLAIN_LENGTH_SHORT = 160
AFTER_LENGTH_MAX = 64
BACKSLASH = 0x5C
# An escape ends a value without quotes. An escaped slash and a backslash before any other character are part of it.
# So is a letter beyond ASCII that is written as a number.
PLAIN = re.compile(
    rb"(?:[^\s\"'`\\<>\x00-\x1f]|\\{1,15}/|\\{2,15}(?![\\nrtbfu/\"'`\s])"
    rb"|\\{1,15}u(?:00[c-fC-F]|0[1-9a-fA-F][0-9a-fA-F]|[13-9a-cA-C][0-9a-fA-F]{2}|[dD][0-7][0-9a-fA-F])[0-9a-fA-F])++"
)
# What ends a value without quotes in the middle of something longer.
FOLLOWED = re.compile(
    rb"[,;&](?:[\w.$-]{1,40}[=:]|[ \t]|amp;|\Z)|,\[?\{?\Z|\}[,;)\]}]|\$\{|\)[;,.{)\]]|[|](?:\Z|[ \t|])|#\{|[;,]\Z"
)
TAIL = b",;)]}>.:"
BLANK = re.compile(rb"[\s,:]")
DEPTH_MAX = 16
OUTER_TRIES_MAX = 32


@dataclass(frozen=True, slots=True)
class Extent:
    """The raw offsets of a value and whether it has quotes."""

    start: int
    end: int
    quoted: bool


def _line_end(line: bytes, start: int, end: int, depth: int) -> int:
    """Where the line of the text ends within the quotes, given the number of backslashes before the quotes."""
    at = line.find(b"\n", start, end)
    end = at if at >= 0 else end
    if not depth:
        return end
    newline = b"\\" * ((depth + 1) // 2) + b"n"
    at = line.find(newline, start, end)
    while at > start and line[at - 1] == BACKSLASH:
        at = line.find(newline, at + 1, end)
    return at if at >= 0 else end


def _outer_quote(line: bytes, start: int, end: int, depth: int) -> int:
    """Where the first double quote with fewer backslashes than `depth` begins, with its backslashes; -1 if nowhere."""
    at = line.find(b'"', start, end)
    for _ in range(OUTER_TRIES_MAX):
        if at < 0:
            return -1
        run = at
        while run > start and line[run - 1] == BACKSLASH and at - run < DEPTH_MAX:
            run -= 1
        if at - run < depth:
            return run
        at = line.find(b'"', at + 1, end)
    return -1


def _quoted(line: bytes, start: int, quote: bytes) -> int:
    """The end of a value after this quote; if it was cut off, the end of what is left."""
    limit = min(len(line), start + QUOTED_LENGTH_MAX)
    end = closing_quote(line, start, quote, limit)
    reach = limit if end < 0 else end
    is_double = quote.endswith(b'"')
    if quote != b'"' and line.startswith((b"{", b"[", b'"')):
        # The strings around the value end at their own quotes, which have fewer backslashes.
        outer = _outer_quote(line, start, reach, len(quote) - 1 if is_double else DEPTH_MAX)
        if outer >= 0 and (is_double or end < 0 or BLANK.search(line, outer, min(reach, outer + AFTER_LENGTH_MAX))):
            reach = outer
    return _line_end(line, start, reach, len(quote) - 1 if is_double else 1)


def _run_end(line: bytes, start: int, length: int) -> int:
    match = PLAIN.match(line, start, min(len(line), start + length))
    if match is None:
        return start
    followed = FOLLOWED.search(match.group(), 1)
    return start + followed.start() if followed is not None else match.end()


def _plain(line: bytes, start: int) -> int:
    # Most values are short; a long run is read in full only if nothing ends it earlier.
    end = _run_end(line, start, PLAIN_LENGTH_SHORT)
    if end > start + PLAIN_LENGTH_SHORT - AFTER_LENGTH_MAX:
        end = _run_end(line, start, PLAIN_LENGTH_MAX)
    while end > start and line[end - 1] in TAIL:
        end -= 1
    return end


def extent(line: bytes, start: int, quote: bytes) -> Extent:
    """The value that begins at `start`, after this quote (empty: none)."""
    if not quote:
        return Extent(start, _plain(line, start), False)
    end = _quoted(line, start, quote)
    tail = end
    while tail > start and line[tail - 1] == BACKSLASH:
        tail -= 1
    # A value that was cut off may end within an escape.
    return Extent(start, end - (end - tail) % 2 if line[end : end + 1] not in b"\"'`" else end, True)
