"""Where spans of a JSON line lie: in which of its strings, and whether that string may be changed."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from redaction.protected import is_opaque, is_protected, may_be_named, may_be_protected, type_of
from redaction.rules.rule import Rule
from redaction.text.json_strings import PathStep, String, decoded, paths, string_around, strings, text_of
from redaction.text.spans import SecretSpan

# A part: where it begins and ends, of which rule, and in which string.
_Piece: TypeAlias = tuple[int, int, Rule, String]


class Part(NamedTuple):  # made in half the time of a frozen dataclass
    """The part of a span that lies in one string."""

    start: int
    end: int
    rule: Rule
    string: String
    is_protected: bool
    is_opaque: bool


def parts_of(line: bytes, spans: Sequence[SecretSpan]) -> Iterator[Part]:
    """The parts of the spans that are text of strings; numbers and structure are nobody's secret."""
    found = _simply(line, spans) or _thoroughly(line, spans)
    # Paths cost a walk through the line: one for all strings together, and only if a name asks for it.
    wanted = {string.start for _, _, _, string in found if _is_named_as_protected(line, string)}
    places = paths(line, wanted) if wanted else {}
    event_type = type_of(line) if places else ""
    for start, end, rule, string in found:
        yield Part(start, end, rule, string, *_place(line, event_type, string, places.get(string.start)))


def _simply(line: bytes, spans: Sequence[SecretSpan]) -> list[_Piece] | None:
    """The parts where each span lies in a string that is a member's value, as nearly all do; else None."""
    found: list[_Piece] = []
    string, at = None, 0
    for span in spans:
        # The way back to where a string begins is taken once, however many spans are in it.
        if string is None or line.find(b'"', at, span.end) >= 0:
            string = string_around(line, span.start, span.end)
        if string is None:
            return None
        found.append((span.start, span.end, span.rule, string))
        at = span.end
    return found


def _thoroughly(line: bytes, spans: Sequence[SecretSpan]) -> list[_Piece]:
    """The parts of any spans."""
    found: list[_Piece] = []
    for string, string_end, first in strings(line, [(span.start, span.end) for span in spans]):
        for number in range(first, len(spans)):
            span = spans[number]
            if span.start >= string_end:
                break
            start, end = max(span.start, string.start), min(span.end, string_end)
            if start < end:
                found.append((start, end, span.rule, string))
    return found


def _is_named_as_protected(line: bytes, string: String) -> bool:
    name = text_of(line, string) if string.is_key else string.key
    # What has no key is in an array, where ids may be.
    told = None if name is None else decoded(name)
    return (told is None or may_be_named(told)) and may_be_protected(told, text_of(line, string))


def _place(line: bytes, event_type: str, string: String, steps: Sequence[PathStep] | None) -> tuple[bool, bool]:
    """Whether a string is protected, and whether it is opaque."""
    if steps is None:
        return False, False
    path = [step.name for step in steps]
    protected = is_protected(event_type, path, text_of(line, string))
    return protected, is_opaque(event_type, path) and not string.is_key
