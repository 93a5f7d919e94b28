"""Spans of secrets in raw bytes: merged, placed in the strings of a JSON line, replaced."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from redaction.known import KNOWN_RULE
from redaction.protected import is_opaque, is_protected, may_be_named, may_be_protected, type_of
from redaction.rules.rule import Rule
from redaction.text.json_strings import PathStep, String, decoded, paths, string_around, strings, text_of

# With this much base64 on both sides a hit is chance: the text is an image or an archive.
_BINARY_LENGTH: Final = 256
_CONFIDENCE: Final = {"high": 0, "medium": 1, "low": 2}
_BINARY: Final = re.compile(rb"[A-Za-z0-9+/]{256}")
# A part: where it begins and ends, of which rule, and in which string.
_Piece: TypeAlias = tuple[int, int, Rule, String]


class SecretSpan(NamedTuple):  # made in half the time of a frozen dataclass
    """The place of a secret in the raw bytes, and its rule."""

    start: int
    end: int
    rule: Rule


def is_binary(data: bytes, start: int, end: int) -> bool:
    """Whether a span lies within so much base64 that it is not text."""
    return (
        end - start < _BINARY_LENGTH
        and len(data) > 2 * _BINARY_LENGTH
        and (
            _BINARY.fullmatch(data, max(0, start - _BINARY_LENGTH), start) is not None
            and _BINARY.match(data, end) is not None
        )
    )


def blank(length: int) -> bytes:
    """Filler for a masked secret: it ends a word, a line, and whatever continues over lines."""
    return b"\n" + b"\0" * (length - 2) + b"\n" if length > 2 else b"\n" * length


def _order(span: SecretSpan) -> tuple[int, bool, int, int, str]:
    """The first span names those that it overlaps; the order in which the rules ran has no influence."""
    rule = span.rule
    return span.start, rule.is_from_detect_secrets, -span.end, _CONFIDENCE[rule.confidence], rule.id


def merged_spans(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Overlapping spans as one, with the rule of a known value, else of the longest one that is not detect-secrets'."""
    merged: list[SecretSpan] = []
    best = 0
    for span in sorted(spans, key=_order):
        length = span.end - span.start
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            best = length
            continue
        is_better = span.rule is KNOWN_RULE or (
            length > best and not span.rule.is_from_detect_secrets and merged[-1].rule is not KNOWN_RULE
        )
        named = span if is_better else merged[-1]
        best = max(best, length)
        merged[-1] = SecretSpan(merged[-1].start, max(span.end, merged[-1].end), named.rule)
    return merged


def masked(data: bytes, replacements: Iterable[tuple[int, int, bytes]]) -> bytes:
    """The data with each replacement made; they are in order and do not overlap."""
    pieces: list[bytes] = []
    position = 0
    for start, end, new in replacements:
        pieces += (data[position:start], new)
        position = end
    pieces.append(data[position:])
    return b"".join(pieces)


class Part(NamedTuple):  # made in half the time of a frozen dataclass
    """The part of a span that lies in one string."""

    start: int
    end: int
    rule: Rule
    string: String
    is_protected: bool
    is_opaque: bool


def parts_of(line: bytes, spans: Sequence[SecretSpan]) -> Iterator[Part]:
    """The parts of the spans that lie in strings; numbers and structure are never secret."""
    found = _parts_of_values(line, spans) or _parts_of_strings(line, spans)
    # Paths need a scan of the whole line: one for all strings together, and only if a name may be protected.
    wanted = {string.start for _, _, _, string in found if _is_named_as_protected(line, string)}
    places = paths(line, wanted) if wanted else {}
    event_type = type_of(line) if places else ""
    for start, end, rule, string in found:
        yield Part(start, end, rule, string, *_place(line, event_type, string, places.get(string.start)))


def _parts_of_values(line: bytes, spans: Sequence[SecretSpan]) -> list[_Piece] | None:
    """The parts if every span lies in a string that is the value of a member, as nearly all do; else None."""
    found: list[_Piece] = []
    string, at = None, 0
    for span in spans:
        # The beginning of a string is searched for once, however many spans are in it.
        if string is None or line.find(b'"', at, span.end) >= 0:
            string = string_around(line, span.start, span.end)
        if string is None:
            return None
        found.append((span.start, span.end, span.rule, string))
        at = span.end
    return found


def _parts_of_strings(line: bytes, spans: Sequence[SecretSpan]) -> list[_Piece]:
    """The parts of any spans, in keys and arrays too."""
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
    # A string without a key is in an array, which may hold ids.
    decoded_name = None if name is None else decoded(name)
    return (decoded_name is None or may_be_named(decoded_name)) and may_be_protected(
        decoded_name, text_of(line, string)
    )


def _place(line: bytes, event_type: str, string: String, steps: Sequence[PathStep] | None) -> tuple[bool, bool]:
    """Whether a string is protected, and whether it is opaque."""
    if steps is None:
        return False, False
    path = [step.name for step in steps]
    protected = is_protected(event_type, path, text_of(line, string))
    return protected, is_opaque(event_type, path) and not string.is_key
