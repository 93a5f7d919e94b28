"""The tables that come with the package, read from TOML or, faster, from what was kept of the last reading."""

import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec

from redaction.errors import RuleError
from redaction.prefilter.cache import keep, kept
from redaction.rules.formats import TABLES, Format, read_table
from redaction.rules.shape import Shape, parsed


class Pack(msgspec.Struct, frozen=True):
    """The rows of all tables with their shapes, and the versions of the tables."""

    versions: tuple[str, ...]
    rows: tuple[tuple[Format, Shape], ...]


_DECODER: Final = msgspec.msgpack.Decoder(Pack)


def built_in_pack(cache_dir: Path | None = None) -> Pack:
    """The tables of the package; `cache_dir` keeps them in a form that is read ten times faster."""
    tables = sorted(Path(str(entry)) for entry in files("redaction").joinpath("rules", TABLES).iterdir())
    tables = [table for table in tables if table.suffix == ".toml"]
    if cache_dir is None:
        return _read(tables)
    path = cache_dir / f"tables-{_digest(tables)}.msgpack"
    body = kept(path)
    if body is not None:
        try:
            return _DECODER.decode(body)
        except msgspec.DecodeError:
            pass
    pack = _read(tables)
    keep(path, msgspec.msgpack.encode(pack))
    return pack


def _read(paths: list[Path]) -> Pack:
    tables = [read_table(path) for path in paths]
    rows = tuple((row, parsed(row.pattern)) for table in tables for row in table.format)
    known: set[str] = set()
    for row, _ in rows:
        if row.id in known:
            raise RuleError("built-in", row.id, "there is already a rule with this id")
        known.add(row.id)
    return Pack(tuple(sorted({table.version for table in tables})), rows)


def _digest(paths: list[Path]) -> str:
    """What the kept form depends on: the tables, and how they are read."""
    own = Path(__file__).parent
    digest = hashlib.sha256()
    for path in (*paths, own / "shape.py", own / "formats.py"):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]
