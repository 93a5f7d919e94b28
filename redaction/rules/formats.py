"""Token formats as facts: tables of rows, ours and users' alike, and the rules they become."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import msgspec

from redaction.errors import RuleError
from redaction.heuristics.cut import cut_end, looks_drawn
from redaction.rules.checks import CHECKS, PROOFS
from redaction.rules.named import Member, families
from redaction.rules.rule import Confidence, Family, Look, Rule, Spans, TokenCheck
from redaction.rules.shape import CUT_RANDOM, UNBOUNDED, Shape, ShapeError, parsed
from redaction.rules.steps import end_of, length_of, steps_of
from redaction.rules.token_reader import TokenReader
from redaction.text.escapes import starts_word

_REACH_MAX: Final = 4096
# So long a prefix says what it is, even if something is glued to it; unless base64 could hold it by chance.
_TELLING_PREFIX: Final = 4
TABLES: Final = "tables"


class Format(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One row of a table; what each field means to a reader is in `docs/redaction-rules.md`."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9.-]{0,47}$")]
    provider: str
    name: str
    pattern: str
    example: str
    counter: str
    source: str
    near: tuple[str, ...] = ()
    left: str = "word"
    exact: bool | None = None
    check: str | None = None
    must: bool = False
    confidence: Confidence = "high"

    @property
    def is_exact(self) -> bool:
        """Whether a longer run is something else."""
        return bool(self.near) if self.exact is None else self.exact


class FormatTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A pack of formats with its version."""

    version: str
    format: tuple[Format, ...]


def read_table(path: Path) -> FormatTable:
    """Read a table of formats; raises `RuleError` naming the file and, where it is known, the row."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        return msgspec.convert(raw, FormatTable)
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise RuleError(path.name, "", str(error)) from error


def checked(row: Format, file: str) -> Shape:
    """The shape of a row; raises `RuleError` naming its file where the row can be no rule."""
    try:
        shape = parsed(row.pattern)
    except ShapeError as error:
        raise RuleError(file, row.id, str(error)) from error
    if row.check is not None and row.check not in CHECKS:
        raise RuleError(file, row.id, f"no check is called {row.check}; there are {', '.join(CHECKS)}")
    if row.left not in ("word", "any"):
        raise RuleError(file, row.id, "left is neither word nor any")
    return shape


def rules_of(rows: Iterable[tuple[Format, Shape]]) -> Iterator[Rule | Family]:
    """Make rows with their shapes into rules."""
    members: list[tuple[Member, Sequence[str]]] = []
    for row, shape in rows:
        extent = _extent(row, shape)
        gates = (shape.cut or shape.gate,)
        rule = Rule(
            row.id,
            row.provider,
            row.name,
            gates,
            _no_look,
            row.confidence,
            row.example,
            row.counter,
            check=TokenCheck(CHECKS[row.check], row.check in PROOFS) if row.check is not None else None,
        )
        if row.near:
            members.append((Member(rule, row.near, extent, shape), row.near))
        else:
            yield replace(rule, look=_look(extent, shape))
    yield from families(members)


def _no_look(_line: bytes, to: int) -> tuple[Spans, int]:
    """What a member of a family answers by itself."""
    return (), to


def _extent(row: Format, shape: Shape) -> TokenReader:
    check = CHECKS[row.check] if row.check is not None and row.must else None
    return TokenReader(
        row.pattern,
        shape.last_class,
        exact=row.is_exact,
        any_left=row.left == "any" or (len(shape.prefix) >= _TELLING_PREFIX and not shape.prefix.isalnum()),
        check=check,
    )


def _look(extent: TokenReader, shape: Shape) -> Look:
    """Return what tells the extent of a token whose shortest form, or enough of it, ends at `to`."""
    if shape.cut is not None:
        return _look_cut(extent, shape.cut, min(shape.reach, _REACH_MAX))
    reach = min(shape.longest if shape.longest < UNBOUNDED else shape.reach, _REACH_MAX)
    # What goes on longer is for the extent to say.
    ahead = min(shape.longest, _REACH_MAX) if shape.longest < UNBOUNDED else shape.shortest

    def look(line: bytes, to: int) -> tuple[Spans, int]:
        found = _ending_at(extent.pattern(), line, to, to - reach, to + ahead)
        return extent.of(line, (found.start(), *found.span(1), found.end())) if found is not None else ((), to)

    return look


def _look_cut(extent: TokenReader, pattern: str, reach: int) -> Look:
    """Return what tells the extent of a token whose beginning ends at `to`; the rest may be cut off."""
    begun = cache(lambda: _beginning(pattern, reach))

    def look(line: bytes, to: int) -> tuple[Spans, int]:
        begin, start = begun()(line, to)
        if begin < 0:
            return (), to
        found = extent.match(line, begin)
        if found is not None:
            return extent.of(line, found)
        end = cut_end(line, to)
        if end < 0 or not starts_word(line, begin) or not looks_drawn(line[to - CUT_RANDOM : end]):
            return (), to
        return ((start, end),), end

    return look


def _beginning(pattern: str, reach: int) -> Callable[[bytes, int], tuple[int, int]]:
    """Return what tells where the match that ends at `to` begins, and the secret in it; -1 if there is none."""
    steps = steps_of(pattern)
    length = length_of(steps) if steps is not None else None
    if steps is None or length is None:
        compiled = re.compile(pattern.encode())

        def found(line: bytes, to: int) -> tuple[int, int]:
            begun = _ending_at(compiled, line, to, to - reach, to)
            return (begun.start(), begun.start(begun.re.groups)) if begun is not None else (-1, -1)

        return found

    def stepped(line: bytes, to: int) -> tuple[int, int]:
        begin = to - length
        return (begin, begin) if begin >= 0 and end_of(steps, line, begin) == to else (-1, -1)

    return stepped


def _ending_at(pattern: re.Pattern[bytes], line: bytes, to: int, start: int, end: int) -> re.Match[bytes] | None:
    """The first match between `start` and `end` that goes as far as `to`."""
    start = max(0, start)
    while (found := pattern.search(line, start, end)) is not None and found.start() < to:
        if found.end() >= to:
            return found
        start = found.start() + 1
    return None
