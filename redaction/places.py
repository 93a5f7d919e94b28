"""Where spans of a JSON line lie: in which of its strings, and whether that string may be changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redaction.json_text import Step, String, decoded, paths, strings
from redaction.protected import is_opaque, is_protected, may_be_protected, type_of
from redaction.rule import Rule
from redaction.spans import Span


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
    found = list(strings(line, [(span.start, span.end) for span in spans]))
    # Paths cost a walk through the line: one for all strings together, and only if a name asks for it.
    wanted = {string.start for string, _ in found if _is_named_as_protected(line, string)}
    places = paths(line, wanted) if wanted else {}
    event_type = type_of(line) if places else ""
    for string, first in found:
        protected, opaque = _place(line, event_type, string, places.get(string.start))
        for number in range(first, len(spans)):
            span = spans[number]
            if span.start >= string.end:
                break
            start, end = max(span.start, string.start), min(span.end, string.end)
            if start < end:
                yield Part(start, end, span.rule, string, protected, opaque)


def _is_named_as_protected(line: bytes, string: String) -> bool:
    name = line[string.start : string.end] if string.is_key else string.key
    # What has no key is in an array, where ids may be.
    return may_be_protected(None if name is None else decoded(name), line[string.start : string.end])


def _place(line: bytes, event_type: str, string: String, steps: Sequence[Step] | None) -> tuple[bool, bool]:
    """Whether a string is protected, and whether it is opaque."""
    if steps is None:
        return False, False
    path = [step.name for step in steps]
    protected = is_protected(event_type, path, line[string.start : string.end])
    return protected, is_opaque(event_type, path) and not string.is_key
