"""The small pattern language of formats, which Hyperscan, `re` and people understand alike.

Characters, classes, groups, alternatives and counted repeats; no lookaround, and no open count except as the last item.
"""

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Protocol

_LITERALS: Final = frozenset(string.ascii_letters + string.digits + " _-/:=.,;@!#%&~<>$+*?()[]{}|^")
_NEED_ESCAPE: Final = frozenset(".$+*?()[]{}|^")
_COUNT: Final = re.compile(r"\{(\d{1,4})(?:(,)(\d{0,4}))?\}")
UNBOUNDED: Final = 1 << 20
# This much of a token is enough if the text ends in the middle of it, after this many characters that identify it.
CUT_RANDOM: Final = 12
CUT_TELLING: Final = 4  # a character that is no letter or digit counts twice
CUT_SHORT_MAX: Final = 4
# The characters of a run that says by its length that it is a value. Operators and quotes, which join a value to its
# name, have others.
RUN_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "_+/.%~!@#$^&*-")
RUN_MIN: Final = 12
# So many digits are to be expected in a run, at least; letters of both cases are no word without a digit either.
_DIGITS: Final = frozenset(string.digits)
_DIGITS_MIN: Final = 4.0
_DIGITS_OF_BOTH_CASES_MIN: Final = 2.0
# This much of the run at its end is enough for a gate; longer counts cost Hyperscan many times more.
GATE_RUN_MAX: Final = 14


class ShapeError(ValueError):
    """The pattern is not of this language; the message says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A checked pattern: the lengths of its matches, and where it may be cut."""

    pattern: str
    shortest: int
    longest: int
    gate: str
    """The pattern cut so that it ends once."""
    last_class: str | None
    """The class at its end, of which a longer secret has more characters."""
    prefix: str
    """The characters that every match begins with."""
    cut: str | None
    """The pattern up to where it is certain, to find a token that was cut off; None if it never is."""
    reach: int
    """The length of the longest match of `cut` or, without it, of `gate`."""
    has_run: bool
    """Whether every match has many of `RUN_CHARACTERS` in a row, almost certainly with a digit or in both cases."""


class _Chooser(Protocol):
    """A source of choices, such as `random.Random`."""

    def choice(self, of: str, /) -> str: ...

    def randint(self, least: int, most: int, /) -> int: ...


@dataclass(frozen=True, slots=True)
class _Item:
    """A repeated class of characters, or repeated alternatives of sequences."""

    characters: str
    alternatives: "tuple[tuple[_Item, ...], ...]"
    least: int
    most: int
    source: str
    """The class or character as it is written; of a group its opening."""


def parsed(pattern: str) -> Shape:
    """Check a pattern; raises `ShapeError`."""
    items = _Parser(pattern).whole()
    shortest, longest = _lengths((items,))
    if not shortest:
        raise ShapeError("it matches the empty text")
    short, off = _cut_short(items), _cut_off(items)
    reach = _lengths((off or short,))[1]
    cut = _gate(off) if off else None
    return Shape(
        pattern, shortest, longest, _gate(short), _last_class(items), _prefix(items), cut, reach, _has_run(items)
    )


def _gate(items: tuple[_Item, ...]) -> str:
    """The expression of the items. Hexadecimal digits become all letters: Hyperscan is faster with the larger class."""
    return "".join(map(_written, items)).replace("[0-9a-f]", "[0-9a-z]")


def _written(item: _Item) -> str:
    inside = "|".join("".join(map(_written, items)) for items in item.alternatives)
    written = f"{item.source}{inside})" if item.alternatives else item.source
    if item.least == item.most:
        return written if item.least == 1 else f"{written}{{{item.least}}}"
    return f"{written}{{{item.least},{item.most if item.most < UNBOUNDED else ''}}}"


def _has_run(items: tuple[_Item, ...]) -> bool:
    length, digits, has_cases = 0, 0.0, False
    for item in items:
        if item.least and item.alternatives and all(map(_has_run, item.alternatives)):
            return True
        # Base64 is filled up with `=` only at its end.
        if item.alternatives or not RUN_CHARACTERS.issuperset(item.characters.replace("=", "")):
            length, digits, has_cases = 0, 0.0, False
            continue
        length += item.least
        if _DIGITS.issubset(item.characters):
            digits += item.least * len(_DIGITS) / len(item.characters)
        has_cases = has_cases or not (item.characters.islower() or item.characters.isupper())
        if length >= RUN_MIN and digits >= (_DIGITS_OF_BOTH_CASES_MIN if has_cases else _DIGITS_MIN):
            return True
    return False


def _cut_short(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    """The items without optional ones at the end."""
    while items and not items[-1].least:
        items = items[:-1]
    if not items:
        return ()
    last = items[-1]
    if last.alternatives and last.most == 1:
        return (*items[:-1], replace(last, alternatives=tuple(map(_cut_short, last.alternatives))))
    return (*items[:-1], replace(last, least=min(last.least, GATE_RUN_MAX), most=min(last.least, GATE_RUN_MAX)))


def _last_class(items: tuple[_Item, ...]) -> str | None:
    last = next((item for item in reversed(items) if item.least), None)
    if last is None:
        return None
    if last.alternatives:
        return next(filter(None, map(_last_class, reversed(last.alternatives))), None)
    return last.source if last.source.startswith("[") else None


def _prefix(items: tuple[_Item, ...]) -> str:
    fixed = takewhile(lambda item: len(item.characters) == item.least == item.most == 1, items)
    return "".join(item.characters for item in fixed)


class _Cutter:
    """Takes items until enough characters identify the token and enough random ones follow."""

    def __init__(self) -> None:
        self._telling = self._random = 0
        self.distinct: set[str] = set()

    def of(self, items: tuple[_Item, ...]) -> tuple[_Item, ...] | None:
        """The items up to where that is enough; None if it never is."""
        kept: list[_Item] = []
        for item in items:
            if item.source == "(":
                inside = self.of(item.alternatives[0]) if len(item.alternatives) == 1 else None
                return inside and (*kept, replace(item, alternatives=(inside,)))
            if not self._counts(item):
                return None
            if self._random >= CUT_RANDOM:
                most = item.least - (self._random - CUT_RANDOM)
                return (*kept, replace(item, least=most, most=most))
            kept.append(item)
        return None

    def _counts(self, item: _Item) -> bool:
        """Count the characters of the item; return whether the items can still be enough."""
        if item.alternatives:
            self._telling += _lengths(item.alternatives)[0] * item.least
            self.distinct.update(item.source, "|")
        elif len(item.characters) <= 2:
            self.distinct.update(item.characters)
            self._telling += item.least * (2 if not item.characters.isalnum() else 1)
        elif self._telling >= CUT_TELLING:
            self._random += item.least
        else:
            return item.most <= CUT_SHORT_MAX
        return True


def _cut_off(items: tuple[_Item, ...]) -> tuple[_Item, ...] | None:
    cutter = _Cutter()
    cut = cutter.of(items)
    # The start of many URLs, and of zeros in base64, identifies nothing.
    return cut if cut and len(cutter.distinct) > 1 and _prefix(items) != "http" else None


def sample(pattern: str, chooser: _Chooser) -> str:
    """A random text of the pattern's shape."""
    return "".join(_sampled(_Parser(pattern).whole(), chooser))


def _sampled(items: tuple[_Item, ...], chooser: _Chooser) -> Iterator[str]:
    for item in items:
        most = item.most if item.most < UNBOUNDED else item.least + 8
        for _ in range(chooser.randint(item.least, most)):
            if item.characters:
                yield chooser.choice(item.characters)
            else:
                yield from _sampled(item.alternatives[chooser.randint(0, len(item.alternatives) - 1)], chooser)


def _lengths(alternatives: tuple[tuple[_Item, ...], ...]) -> tuple[int, int]:
    lengths = [_length(items) for items in alternatives]
    return min(low for low, _ in lengths), max(high for _, high in lengths)


def _length(items: tuple[_Item, ...]) -> tuple[int, int]:
    shortest = longest = 0
    for item in items:
        low, high = (1, 1) if item.characters else _lengths(item.alternatives)
        shortest += low * item.least
        longest += high * item.most
    return shortest, min(longest, UNBOUNDED)


class _Parser:
    """Reads a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._captures = 0

    def whole(self) -> tuple[_Item, ...]:
        """The items of the whole pattern."""
        alternatives = self._alternatives(ignore_case=False)
        if self._at < len(self._pattern):
            raise self._error("a bracket that was not opened")
        if len(alternatives) > 1:
            raise self._error("alternatives belong in (?:...)")
        return alternatives[0]

    def _alternatives(self, *, ignore_case: bool) -> tuple[tuple[_Item, ...], ...]:
        alternatives: list[tuple[_Item, ...]] = []
        items: list[_Item] = []
        while self._at < len(self._pattern) and self._pattern[self._at] != ")":
            if self._pattern[self._at] == "|":
                self._at += 1
                alternatives.append(tuple(items))
                items = []
            else:
                items.append(self._item(ignore_case=ignore_case))
        return (*alternatives, tuple(items))

    def _item(self, *, ignore_case: bool) -> _Item:
        character = self._pattern[self._at]
        alternatives: tuple[tuple[_Item, ...], ...] = ()
        characters = ""
        begin = self._at
        if character == "(":
            alternatives = self._group(ignore_case=ignore_case)
            opened = self._pattern[begin : begin + 2] == "(?"
            source = self._pattern[begin : self._pattern.index(":", begin) + 1] if opened else "("
        else:
            characters = self._class() if character == "[" else self._literal()
            if ignore_case:
                characters = "".join(sorted({*characters.lower(), *characters.upper()}))
            source = self._pattern[begin : self._at]
        least, most = self._counted()
        if least != most and most > 4 and any(item.least != item.most for items in alternatives for item in items):
            raise self._error("a varying count inside a varying count")
        return _Item(characters, alternatives, least, most, source)

    def _group(self, *, ignore_case: bool) -> tuple[tuple[_Item, ...], ...]:
        rest = self._pattern[self._at :]
        opening = next((mark for mark in ("(?:", "(?i:", "(") if rest.startswith(mark)), "(")
        if rest.startswith("(?") and opening == "(":
            raise self._error("a group of another kind than (...), (?:...) and (?i:...)")
        self._captures += opening == "("
        if self._captures > 1:
            raise self._error("a second capturing group")
        self._at += len(opening)
        alternatives = self._alternatives(ignore_case=ignore_case or opening == "(?i:")
        if self._pattern[self._at : self._at + 1] != ")":
            raise self._error("a bracket that is not closed")
        self._at += 1
        return alternatives

    def _class(self) -> str:
        end = self._pattern.find("]", self._at + 1)
        body = self._pattern[self._at + 1 : end].replace("\\-", "\0")
        if end < 0 or not body or body[0] == "^" or "\\" in body or "[" in body:
            raise self._error("a class that is empty, open, negated or has escapes in it")
        self._at = end + 1
        characters: set[str] = set()
        for first, end_of_range in re.findall(r"(.)(?:-(.))?", body):
            last = end_of_range or first
            if ord(last) < ord(first):
                raise self._error(f"the range {first}-{last}")
            characters.update(chr(code) for code in range(ord(first), ord(last) + 1))
        return "".join(sorted(characters)).replace("\0", "-")

    def _literal(self) -> str:
        character = self._pattern[self._at]
        escaped = character == "\\"
        if escaped:
            self._at += 1
            character = self._pattern[self._at : self._at + 1]
        if (
            character not in _LITERALS
            or (escaped and character.isalnum())
            or (not escaped and character in _NEED_ESCAPE)
        ):
            raise self._error(f"{character!r} here")
        self._at += 1
        return character

    def _counted(self) -> tuple[int, int]:
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
            return 0, 1
        found = _COUNT.match(self._pattern, self._at)
        if found is None:
            return 1, 1
        self._at = found.end()
        least = int(found[1])
        most = UNBOUNDED if found[2] and not found[3] else int(found[3] or least)
        if most < least or (most == UNBOUNDED and self._pattern[self._at :].strip(")")):
            raise self._error("a count that ends before it begins, or an open one before the end")
        return least, most

    def _error(self, what: str) -> ShapeError:
        return ShapeError(f"{what} (at character {self._at + 1} of {self._pattern!r})")
