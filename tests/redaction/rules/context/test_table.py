"""What every rule with context has to say of itself, and what a table may hold."""

import re
from pathlib import Path

import msgspec
import pytest

from redaction.rules import context
from redaction.rules.context.table import table_of
from redaction.rules.rule import Rule
from redaction.rules.rule_set import FAMILIES, rules_of_family
from tests.rows import each

RULES = tuple(rule for family in FAMILIES for rule in rules_of_family(family))
GENERAL = {"extract_value", "extract_assigned", "extract_match", "extract_parameter", "extract_after"}
ROW = """
[[rule]]
id = "acme-answer"
provider = "Acme"
name = "deploy key"
gates = ['''
    Acme {{kind}}
     key: [a-z0-9]{32}''']
extract = "value"
example = "Acme deploy key: <base36:32>"
counter = "Acme deploy key: <base36:12>"
"""


@each(RULES)
def test_a_rule_with_context_has_an_example_and_a_counter_example(rule: Rule) -> None:
    assert rule.example, rule.id
    assert rule.counter, rule.id
    assert rule.example != rule.counter, rule.id


def test_every_family_of_rules_is_listed() -> None:
    tables = {path.stem for path in Path(context.__path__[0]).glob("*.toml")} - {"common"}

    assert {family.__name__.rpartition(".")[2] for family in FAMILIES} == tables


def test_every_function_of_a_family_extracts_for_a_row() -> None:
    for family in FAMILIES:
        functions = {
            name
            for name, function in vars(family).items()
            if name.startswith("extract_") and function.__module__ == family.__name__
        }
        named = {f"extract_{row.extract}" for row in table_of(family.__file__ or "").rule}

        assert functions <= named, family.__name__
        assert functions.isdisjoint(GENERAL), family.__name__


def test_an_expression_may_be_written_in_lines_and_name_fragments(tmp_path: Path) -> None:
    tmp_path.joinpath("common.toml").write_text("[fragments]\nkind = 'deploy|{{other}}'\nother = 'read'")
    tmp_path.joinpath("acme.toml").write_text(ROW)

    (row,) = table_of(str(tmp_path / "acme.py")).rule

    assert row.gates == ("Acme deploy|read key: [a-z0-9]{32}",)


@pytest.mark.parametrize("field", re.findall(r"^(\w+) =", ROW, re.MULTILINE))
def test_a_row_without_one_of_its_parts_is_refused(tmp_path: Path, field: str) -> None:
    tmp_path.joinpath("common.toml").write_text("[fragments]\nkind = 'deploy'")
    tmp_path.joinpath("acme.toml").write_text(ROW.replace(f"\n{field} =", f"\nun{field} ="))

    with pytest.raises(msgspec.ValidationError, match=field):
        table_of(str(tmp_path / "acme.py"))
