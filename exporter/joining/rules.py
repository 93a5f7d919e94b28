"""The rules of an engine as people are shown them: each with the pack that it comes from."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from redaction.formats import Table, built_in_tables, read_table

BUILT_IN: Final = "built-in"


def described(rules: Iterable[Any], version: str, rule_files: Iterable[str]) -> dict[str, Any]:
    """Return every rule with its pack, and how many rules are of which pack in which version."""
    own = {row.id: (Path(name).name, table.version) for name, table in _tables(rule_files) for row in table.format}
    ours = {row.id: (BUILT_IN, table.version) for table in _built_in() for row in table.format}
    rows = [_row(rule, *{**ours, **own}.get(rule.id, (BUILT_IN, version))) for rule in map(_as_rule, rules)]
    packs = Counter((row["pack"], row["version"]) for row in rows)
    return {
        "engine": version,
        "packs": [{"pack": pack, "version": of, "rules": times} for (pack, of), times in packs.items()],
        "rules": rows,
    }


def _as_rule(rule: Any) -> Any:
    # Seam: the floor engine lists (id, provider, example).
    if not isinstance(rule, tuple):
        return rule
    return SimpleNamespace(id=rule[0], provider=rule[1], name="", confidence="high", example=rule[2])


def _tables(rule_files: Iterable[str]) -> Iterator[tuple[str, Table]]:
    return ((name, read_table(Path(name))) for name in rule_files)


def _built_in() -> list[Table]:
    with suppress(OSError):
        return list(built_in_tables())
    return []


def _row(rule: Any, pack: str, version: str) -> dict[str, Any]:
    return {
        "id": rule.id,
        "provider": rule.provider,
        "name": rule.name,
        "confidence": rule.confidence,
        "example": rule.example,
        "pack": pack,
        "version": version,
    }
