"""All rules in one place: ours, those of detect-secrets and those of users."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Final

from redaction.commands.table import PrintingCommands, PrintingRow, built_in_table, check_row
from redaction.errors import InvalidJsonError, RuleError
from redaction.given import read_given
from redaction.protected import is_opaque, type_of
from redaction.rules.context import (
    addresses,
    assignments,
    command_line,
    credential_files,
    headers,
    keys,
    pairs,
    products,
    prose,
    tables,
)
from redaction.rules.context.extractors import extractor
from redaction.rules.context.table import table_of
from redaction.rules.detectors import detector_rules, plugin_rules
from redaction.rules.formats import Format, FormatTable, built_in_pack, checked, read_table, rules_of
from redaction.rules.rule import Extraction, Family, Rule, RuleRow, with_open_counts
from redaction.rules.shape import Shape
from redaction.text.json_strings import paths

FAMILIES: Final = (
    addresses,
    assignments,
    command_line,
    credential_files,
    headers,
    keys,
    pairs,
    products,
    prose,
    tables,
)
_OPAQUE_FIELD: Final = r'"(?:encryptedContent|reasoningOpaque)"[ \t\r\n]{0,4}:[ \t\r\n]{0,4}"'
# Strings of JSON have no bare line feed; one marks what is masked already.
_OPAQUE_VALUE: Final = re.compile(_OPAQUE_FIELD.encode() + rb'((?!\n)[^"\\]*+(?:\\.[^"\\]*+)*+)(?=")', re.DOTALL)


def _opaque_values(line: bytes, _to: int) -> Extraction:
    """All opaque values of the line at once. Elsewhere these names are those of a user, and other rules apply."""
    spans = {value.start(1): value.span(1) for value in _OPAQUE_VALUE.finditer(line)}
    try:
        places = paths(line, spans)
    except InvalidJsonError:
        return (), len(line)
    event_type = type_of(line)
    opaque = (start for start, path in places.items() if is_opaque(event_type, [step.name for step in path]))
    return [spans[start] for start in opaque if spans[start][1] > start], len(line)


OPAQUE_RULE: Final = Rule(
    "opaque",
    "Copilot CLI",
    "fields that only work whole, dropped by setting",
    (_OPAQUE_FIELD,),
    _opaque_values,
)


def rules_of_family(family: ModuleType) -> Iterator[Rule]:
    """The rules of the table beside this module."""
    for row in table_of(family.__file__ or "").rule:
        rule = replace(row.rule(row.gates, extractor(row, family), row.when or ()), is_numbers=row.numbers)
        yield with_open_counts(rule) if row.open_counts else rule


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Every rule that searches, the commands that print secrets, and the versions of the tables."""

    rules: tuple[Rule | Family, ...]
    commands: PrintingCommands
    version: str


def all_rules(
    rule_files: Sequence[Path], plugins: Sequence[Path], *, drop_opaque: bool, cache_dir: Path | None = None
) -> RuleSet:
    """Every rule; raises `RuleError` for one that cannot be used."""
    built_in = built_in_pack(cache_dir)
    users = [(path.name, read_table(path, read_given)) for path in rule_files]
    own = [rule for family in FAMILIES for rule in rules_of_family(family)]
    commands = built_in_table().command
    known = {row.id for row, _ in built_in.rows}.union((rule.id for rule in own), (row.id for row in commands))
    rows = [*built_in.rows, *_users_rows(users, known)]
    printing = PrintingCommands([*commands, *_users_commands(users, known)])
    rules = [*own, *rules_of(rows), *detector_rules(built_in.detectors), *plugin_rules(plugins)]
    if drop_opaque:
        rules.append(OPAQUE_RULE)
    versions = sorted({f"{name} {table.version}" for name, table in users})
    version = ", ".join([*(f"built-in {version}" for version in built_in.versions), *versions])
    return RuleSet(tuple(rules), printing, version)


def _users_rows(tables: Sequence[tuple[str, FormatTable]], known: set[str]) -> Iterator[tuple[Format, Shape]]:
    """The rows of users, each of them tried; raises `RuleError` for a bad one."""
    for file, table in tables:
        from redaction.rules.trial import check_rule

        for row in table.format:
            _is_new(row, known, file)
            shape = checked(row, file)
            check_rule(row, shape, file)
            yield row, shape


def _users_commands(tables: Sequence[tuple[str, FormatTable]], known: set[str]) -> Iterator[PrintingRow]:
    """The same for their commands."""
    for file, table in tables:
        for row in table.command:
            _is_new(row, known, file)
            check_row(row, file)
            yield row


def _is_new(row: RuleRow, known: set[str], file: str) -> None:
    if row.id in known:
        raise RuleError(file, row.id, "there is already a rule with this id")
    known.add(row.id)
