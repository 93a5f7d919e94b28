"""A value at its place in a line: where it ends, whether it was cut off, and whether it is a secret."""

import re
from typing import Final

from redaction.heuristics.names import Demand
from redaction.heuristics.secrecy import Placement, is_secret
from redaction.text.escapes import opening_quote, unescaped
from redaction.text.extent import extent

EXAMINED_LENGTH_MAX = 64  # of a longer value only the beginning is examined

# Letters whose case changes more often than in any name that is made of words.
_LETTERS = re.compile(r"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z_.-]{8,}")
_OUTER_END = re.compile(rb"\\+(?:\"|\Z)")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_PART_LENGTH_MAX = 2.7
_RUN: Final = re.compile(rb"[0-9A-Za-z_+/=.~%-]{0,1024}+")
# Says that something was left out here.
_LEFT_OUT: Final = re.compile(
    rb"(?:\s|\\{1,15}[nrt]){0,4}+(?:\.\.|\xe2\x80\xa6|\\{1,15}u2026"
    rb"|[\[(<{*#=-]{1,5} ?[\w ,.:%+-]{0,40}?(?i:trunc|cut|omit|more|snip|elid|clip|exceed|too l|limit|chars)"
    rb"|[\[(<{]{1,3} ?(?:\.\.\.|\xe2\x80\xa6)"
    rb"|(?i:[\w ]{0,20}(?:truncated|omitted|too long|exceeded)))"
)
_JSON: Final = (b"{", b"[", b'"')


def value_span(line: bytes, start: int) -> tuple[int, int]:
    """The span of the value that starts there, up to the closing quote or to the end of the word."""
    quote = opening_quote(line, start)
    value = extent(line, start, quote)
    if quote and not line.startswith(quote, value.end):
        # It was cut off: a quote of the text around it ends it, perhaps after half an escape.
        cut = _OUTER_END.search(line, start, value.end)
        return start, cut.start() if cut else value.end
    return start, value.end


def in_marker(line: bytes, at: int) -> bool:
    """Whether this place is within a marker of a secret that is masked already."""
    opened = line.rfind(b"[REDACTED:", max(0, at - 80), at)
    return opened >= 0 and line.find(b"]", opened, at) < 0


def is_value(raw: bytes, demand: Demand, placement: Placement = Placement.QUOTED) -> bool:
    """Whether the raw value is a secret, by what its name demands and by its placement in the text."""
    text = unescaped(raw[: 2 * EXAMINED_LENGTH_MAX])[:EXAMINED_LENGTH_MAX]
    return is_secret(text, demand, placement) or (demand >= Demand.KEY and _is_scrambled(text))


def _is_scrambled(text: str) -> bool:
    if _LETTERS.fullmatch(text) is None:
        return False
    parts = _PART.findall(text)
    return sum(map(len, parts)) < _PART_LENGTH_MAX * len(parts)


def cut_end(line: bytes, at: int) -> int:
    """Where the token that continues at `at` ends, if the text ends there or says that it was cut off; else -1."""
    run = _RUN.match(line, at)
    end = run.end() if run is not None else at
    last = end
    while last > at and line[last - 1 : last] == b".":
        last -= 1
    if end == len(line) or end - last > 1 or _LEFT_OUT.match(line, end):
        return last
    return last if line[end : end + 1] == b'"' and line.startswith(_JSON) else -1


def looks_random(part: bytes) -> bool:
    """Whether the rest of a token that was cut off is random."""
    return is_secret(unescaped(part), Demand.TOKEN)
