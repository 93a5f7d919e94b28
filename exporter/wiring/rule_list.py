"""The rules of an engine as people are shown them: each with the pack that it comes from."""

import platform
from collections import Counter
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack, read_table

if TYPE_CHECKING:
    from redaction.engine import Engine
    from redaction.rules.rule import Rule

BUILT_IN: Final = "built-in"
DETECT_SECRETS: Final = "detect-secrets"
_PYTHONS_OWN: Final = "re"

_Pack: TypeAlias = tuple[str, str]


def described(engine: "Engine", rule_files: Iterable[str]) -> dict[str, Any]:
    """Return what searches, every rule with its pack, and how many rules are of which pack in which version."""
    ours = (BUILT_IN, max(built_in_pack().versions))
    tables = [(Path(name).name, read_table(Path(name))) for name in rule_files]
    pack_of = {row.id: (name, table.version) for name, table in tables for row in table.format}
    theirs = (DETECT_SECRETS, _version_of(DETECT_SECRETS))
    rows = [_row(rule, pack_of.get(rule.id) or _pack_of_code(rule, ours, theirs)) for rule in engine.rules()]
    packs = Counter((row["pack"], row["version"]) for row in rows)
    return {
        "engine": {"name": engine.engine, "version": _version_of(engine.engine)},
        "packs": [{"pack": pack, "version": of, "rules": times} for (pack, of), times in packs.items()],
        "rules": rows,
    }


def _pack_of_code(rule: "Rule", ours: _Pack, theirs: _Pack) -> _Pack:
    if rule.id.startswith("plugin."):
        return rule.provider, ""
    return theirs if rule.is_from_detect_secrets else ours


def _version_of(name: str) -> str:
    if name == _PYTHONS_OWN:
        return platform.python_version()
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _row(rule: "Rule", pack: _Pack) -> dict[str, Any]:
    return {
        "id": rule.id,
        "provider": rule.provider,
        "name": rule.name,
        "confidence": rule.confidence,
        "example": expanded(rule.example),
        "pack": pack[0],
        "version": pack[1],
    }
