"""What every rule with context has to say of itself."""

from pathlib import Path

from redaction.rules import context, rule_set
from redaction.rules.rule import Rule
from tests.rows import each

RULES = tuple(rule for family in rule_set._FAMILIES for rule in family.RULES)


@each(RULES)
def test_a_rule_with_context_has_an_example_and_a_counter_example(rule: Rule) -> None:
    assert rule.example, rule.id
    assert rule.counter, rule.id
    assert rule.example != rule.counter, rule.id


def test_every_family_of_rules_is_listed() -> None:
    modules = {path.stem for path in Path(context.__path__[0]).glob("*.py")} - {"__init__", "extractors"}

    assert {family.__name__.rpartition(".")[2] for family in rule_set._FAMILIES} == modules
