"""All rules in one place: ours, detect-secrets' and users'."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from redaction import (
    addresses,
    assignments,
    commands,
    credential_files,
    encoded_keys,
    flags,
    headers,
    layouts,
    local_secrets,
    pairs,
    private_keys,
    secret_manifests,
    web_tokens,
)
from redaction.detectors import detector_rules, plugin_rules
from redaction.errors import RuleError
from redaction.formats import Format, built_in_tables, read_table, rules_of
from redaction.rule import Family, Rule, Spans

_MODULES: Final = (
    addresses,
    assignments,
    commands,
    credential_files,
    encoded_keys,
    flags,
    headers,
    layouts,
    local_secrets,
    pairs,
    private_keys,
    secret_manifests,
    web_tokens,
)
_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+(?=")', re.DOTALL)


def _opaque_value(line: bytes, to: int) -> tuple[Spans, int]:
    value = _STRING_REST.match(line, to)
    return (((to, value.end()),), value.end()) if value is not None and value.end() > to else ((), to)


OPAQUE_RULE: Final = Rule(
    "opaque",
    "Copilot CLI",
    "fields that only work whole, dropped by setting",
    (
        r'"(?:encryptedContent|encrypted_content|reasoningOpaque|signature|[A-Za-z]{1,40}Signature)"'
        r'[ \t]{0,4}:[ \t]{0,4}"',
    ),
    _opaque_value,
)


def all_rules(
    rule_files: Sequence[Path], plugins: Sequence[Path], *, drop_opaque: bool
) -> tuple[tuple[Rule | Family, ...], str]:
    """Every rule and the versions of their packs; raises `RuleError` for one that cannot be used."""
    built_in = [("built-in", table) for table in built_in_tables()]
    users = [(path.name, read_table(path)) for path in rule_files]
    rows = [(row, name) for name, table in (*built_in, *users) for row in table.format]
    _check_ids(rows)
    if users:
        from redaction.trial import check_rule

        for name, table in users:
            for row in table.format:
                check_rule(row, name)
    rules = [*_own_rules(), *rules_of(rows), *detector_rules(), *plugin_rules(plugins)]
    if drop_opaque:
        rules.append(OPAQUE_RULE)
    versions = sorted({f"{name} {table.version}" for name, table in (*built_in, *users)})
    return tuple(rules), ", ".join(versions)


def _own_rules() -> Iterator[Rule]:
    for module in _MODULES:
        yield from module.rules()


def _check_ids(rows: Iterable[tuple[Format, str]]) -> None:
    known = {rule.id for rule in (*_own_rules(), *detector_rules())}
    for row, file in rows:
        if row.id in known:
            raise RuleError(file, row.id, "there is already a rule with this id")
        known.add(row.id)
