"""Token formats as facts: tables of rows, ours and users' alike, and the rules they become."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from redaction.checks import CHECKS
from redaction.errors import RuleError
from redaction.raw import ASSIGN, starts_word
from redaction.rule import Confidence, Look, Rule, Spans
from redaction.shape import UNBOUNDED, Shape, ShapeError, parsed

_VARIED_LENGTH: Final = 16
_VARIED_MIN: Final = 4
_REACH_MAX: Final = 4096
_NAMED: Final = r"[0-9A-Za-z_. -]{0,20}"
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


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A pack of formats with its version."""

    version: str
    format: tuple[Format, ...]


def read_table(path: Path) -> Table:
    """Read a table of formats; raises `RuleError` naming the file and, where it is known, the row."""
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        return msgspec.convert(raw, Table)
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise RuleError(path.name, "", str(error)) from error


def built_in_tables() -> Iterator[Table]:
    """The tables that come with the package."""
    for entry in sorted(files("redaction").joinpath(TABLES).iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            yield read_table(Path(str(entry)))


def rule_of(row: Format, file: str) -> Rule:
    """Make a row into a rule; raises `RuleError` where it cannot be one."""
    try:
        shape = parsed(row.pattern)
    except ShapeError as error:
        raise RuleError(file, row.id, str(error)) from error
    if row.check is not None and row.check not in CHECKS:
        raise RuleError(file, row.id, f"no check is called {row.check}; there are {', '.join(CHECKS)}")
    if row.left not in ("word", "any"):
        raise RuleError(file, row.id, "left is neither word nor any")
    gate = _named_gate(row.near, shape.gate) if row.near else shape.gate
    return Rule(row.id, row.provider, row.name, (gate,), _look(row, shape), row.confidence, row.example, row.counter)


def _named_gate(names: tuple[str, ...], gate: str) -> str:
    joined = "|".join("[_. -]?".join(map(re.escape, name.split())) for name in names)
    return rf"(?i:{joined}){_NAMED}{ASSIGN}{gate}"


def _look(row: Format, shape: Shape) -> Look:
    """Return what tells the extent of a token whose shortest form ends at `to`."""
    rest_class = shape.last_class
    compiled: list[Any] = []
    reach = min(shape.longest, _REACH_MAX) if shape.longest < UNBOUNDED else _gate_reach(shape)
    any_left, exact = row.left == "any", row.is_exact
    must = CHECKS[row.check] if row.check is not None and row.must else None

    def look(line: bytes, to: int) -> tuple[Spans, int]:
        if not compiled:  # most rules never meet a hit, and compiling all of them would take longer than starting up
            rest = re.compile(f"{rest_class}*+".encode()) if rest_class else None
            compiled.extend((re.compile(row.pattern.encode()), rest))
        pattern, rest = compiled
        found = _ending_at(pattern, line, to, to - shape.shortest if shape.shortest == reach else to - reach)
        if found is None:
            return (), to
        start, end = found.span(pattern.groups)
        last = rest.match(line, end).end() if rest is not None and end == found.end() else end
        if exact and last > end:
            return (), last
        if not any_left and not starts_word(line, found.start()):
            return (), last
        token = line[start:last]
        if len(set(token[-_VARIED_LENGTH:])) < _VARIED_MIN or (must is not None and not must(token)):
            return (), last
        return ((start, last),), last

    return look


def _gate_reach(shape: Shape) -> int:
    """How far before its end the match of a gate may begin."""
    return min(parsed(shape.gate).longest, _REACH_MAX)


def _ending_at(pattern: re.Pattern[bytes], line: bytes, to: int, start: int) -> re.Match[bytes] | None:
    """The first match that begins at `start` or later and goes as far as `to`."""
    start = max(0, start)
    while (found := pattern.search(line, start, to + _REACH_MAX)) is not None and found.start() < to:
        if found.end() >= to:
            return found
        start = found.start() + 1
    return None
