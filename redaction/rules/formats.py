"""Token formats as tables of rows, ours and those of users alike, and the rules made from them."""

import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from redaction.commands.table import PrintingRow
from redaction.errors import RuleError
from redaction.heuristics.values import cut_end, looks_random
from redaction.prefilter.cache import load, store
from redaction.rules.checks import CHECKS
from redaction.rules.detectors import Patterns, their_patterns, their_version
from redaction.rules.named import Member, families
from redaction.rules.rule import Extract, Extraction, Family, Rule, RuleRow
from redaction.rules.shape import CUT_RANDOM, UNBOUNDED, Shape, ShapeError, parsed
from redaction.rules.token_reader import TokenReader, end_of, length_of, steps_of
from redaction.text.escapes import starts_word

_REACH_MAX: Final = 4096
# A prefix of this length identifies a token even without a separator before it, unless base64 could hold it by chance.
_TELLING_PREFIX: Final = 4
TABLES: Final = "tables"


class Format(RuleRow, frozen=True, kw_only=True):
    """One row of a table; `docs/redaction-rules.md` explains the fields."""

    pattern: str
    source: str
    near: tuple[str, ...] = ()
    left: str = "word"
    exact: bool | None = None
    must: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether a longer run of characters is something else."""
        return bool(self.near) if self.exact is None else self.exact


class FormatTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of formats, and of commands that print secrets, with its version."""

    version: str
    format: tuple[Format, ...] = ()
    command: tuple[PrintingRow, ...] = ()


def read_table(path: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> FormatTable:
    """Read a table of formats; raises `RuleError` with the file and, if it is known, the row."""
    try:
        raw = tomllib.loads(read(path).decode())
        return msgspec.convert(raw, FormatTable)
    except (OSError, ValueError, msgspec.ValidationError) as error:
        raise RuleError(path.name, "", str(error)) from error


def checked(row: Format, file: str) -> Shape:
    """The shape of a row; raises `RuleError` with its file if the row cannot become a rule."""
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
    """The rules of these rows with their shapes."""
    members: list[tuple[Member, Sequence[str]]] = []
    for row, shape in rows:
        reader = _reader(row, shape)
        gates = (shape.cut or shape.gate,)
        if row.near:
            members.append((Member(row.rule(gates, _extract_nothing), row.near, reader, shape), row.near))
        else:
            yield row.rule(gates, _extractor(reader, shape))
    yield from families(members)


def _extract_nothing(_line: bytes, to: int) -> Extraction:
    """For the members of a family, which extracts for them."""
    return (), to


def _reader(row: Format, shape: Shape) -> TokenReader:
    check = CHECKS[row.check] if row.check is not None and row.must else None
    return TokenReader(
        row.pattern,
        shape.last_class,
        exact=row.is_exact,
        any_left=row.left == "any" or (len(shape.prefix) >= _TELLING_PREFIX and not shape.prefix.isalnum()),
        check=check,
    )


def _extractor(reader: TokenReader, shape: Shape) -> Extract:
    """Return what extracts a token whose shortest form, or enough of it, ends at the hit."""
    if shape.cut is not None:
        return _extractor_of_cut(reader, shape.cut, min(shape.reach, _REACH_MAX))
    reach = min(shape.longest if shape.longest < UNBOUNDED else shape.reach, _REACH_MAX)
    # The reader finds the end of a longer token.
    ahead = min(shape.longest, _REACH_MAX) if shape.longest < UNBOUNDED else shape.shortest

    def extract(line: bytes, to: int) -> Extraction:
        found = _ending_at(reader.pattern(), line, to, to - reach, to + ahead)
        return reader.of(line, (found.start(), *found.span(1), found.end())) if found is not None else ((), to)

    return extract


def _extractor_of_cut(reader: TokenReader, pattern: str, reach: int) -> Extract:
    """Return what extracts a token whose beginning ends at the hit; the rest may be cut off."""
    find_beginning = cache(lambda: _beginning(pattern, reach))

    def extract(line: bytes, to: int) -> Extraction:
        begin, start = find_beginning()(line, to)
        if begin < 0:
            return (), to
        found = reader.match(line, begin)
        if found is not None:
            return reader.of(line, found)
        end = cut_end(line, to)
        if end < 0 or not starts_word(line, begin) or not looks_random(line[to - CUT_RANDOM : end]):
            return (), to
        return ((start, end),), end

    return extract


def _beginning(pattern: str, reach: int) -> Callable[[bytes, int], tuple[int, int]]:
    """Return what finds where the match that ends at a place begins, and the secret in it; -1 if there is none."""
    steps = steps_of(pattern)
    length = length_of(steps) if steps is not None else None
    if steps is None or length is None:
        compiled = re.compile(pattern.encode())

        def found(line: bytes, to: int) -> tuple[int, int]:
            match = _ending_at(compiled, line, to, to - reach, to)
            return (match.start(), match.start(match.re.groups)) if match is not None else (-1, -1)

        return found

    def stepped(line: bytes, to: int) -> tuple[int, int]:
        begin = to - length
        return (begin, begin) if begin >= 0 and end_of(steps, line, begin) == to else (-1, -1)

    return stepped


def _ending_at(pattern: re.Pattern[bytes], line: bytes, to: int, start: int, end: int) -> re.Match[bytes] | None:
    """The first match between `start` and `end` that reaches `to`."""
    start = max(0, start)
    while (found := pattern.search(line, start, end)) is not None and found.start() < to:
        if found.end() >= to:
            return found
        start = found.start() + 1
    return None


class Pack(msgspec.Struct, frozen=True):
    """The rows of all tables with their shapes, the versions of the tables, and the patterns of detect-secrets."""

    versions: tuple[str, ...]
    rows: tuple[tuple[Format, Shape], ...]
    detectors: Patterns


_DECODER: Final = msgspec.msgpack.Decoder(Pack)


def built_in_pack(cache_dir: Path | None = None) -> Pack:
    """The tables of this package and of detect-secrets; from `cache_dir` they load ten times faster."""
    tables = sorted(Path(__file__).with_name(TABLES).glob("*.toml"))
    if cache_dir is None:
        return _read(tables)
    path = cache_dir / f"tables-{_digest(tables)}.msgpack"
    body = load(path)
    if body is not None:
        try:
            return _DECODER.decode(body)
        except msgspec.DecodeError:
            pass
    pack = _read(tables)
    store(path, msgspec.msgpack.encode(pack))
    return pack


def _read(paths: list[Path]) -> Pack:
    tables = [read_table(path) for path in paths]
    rows = tuple((row, parsed(row.pattern)) for table in tables for row in table.format)
    known: set[str] = set()
    for row, _ in rows:
        if row.id in known:
            raise RuleError("built-in", row.id, "there is already a rule with this id")
        known.add(row.id)
    return Pack(tuple(sorted({table.version for table in tables})), rows, their_patterns())


def _digest(paths: list[Path]) -> str:
    """A digest of all that the cached form depends on: the tables, and the code that reads them."""
    own = Path(__file__).parent
    digest = hashlib.sha256(their_version())
    for path in (*paths, own / "shape.py", own / "formats.py", own / "detectors.toml"):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]
