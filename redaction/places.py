"""Where spans of a JSON line lie: in which of its strings, and whether that string may be changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from redaction.json_text import String, decoded, paths, strings
from redaction.protected import is_opaque, is_protected, may_be_protected
from redaction.rule import Rule
from redaction.search import Span


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a span that lies in one string."""

    start: int
    end: int
    rule: Rule
    string: String
    is_protected: bool
    is_opaque: bool


def parts_of(line: bytes, spans: Sequence[Span]) -> Iterator[Part]:
    """The parts of the spans that are text of strings; numbers and structure are nobody's secret."""
    for string, first in strings(line, [(span.start, span.end) for span in spans]):
        protected, opaque = _place(line, string)
        for span in islice(spans, first, None):
            if span.start >= string.end:
                break
            start, end = max(span.start, string.start), min(span.end, string.end)
            if start < end:
                yield Part(start, end, span.rule, string, protected, opaque)


def _place(line: bytes, string: String) -> tuple[bool, bool]:
    """Whether a string is protected, and whether it is opaque; its path is worked out only if its name says so."""
    name = line[string.start : string.end] if string.is_key else string.key
    if name is None or not may_be_protected(decoded(name)):
        return False, False
    path = [step.name for step in paths(line, (string.start,))[string.start]]
    return is_protected(path), is_opaque(path) and not string.is_key
