"""What the rules with context find in each of the forms that they name, which one example cannot show."""

import re
from pathlib import Path
from typing import Final

from redaction.rules.examples import expanded
from redaction.rules.rule_set import FAMILIES, rules_of_family
from tests.redaction.rules.context.extracting import masked
from tests.rows import each

RULES = {rule.id: rule for family in FAMILIES for rule in rules_of_family(family)}
_CHOICE: Final = re.compile("«([^»]*)»")


def _forms() -> list[tuple[str, str, str]]:
    """The rule, the line, and what the secret looks like, nothing where there is none."""
    found, rule, secret = [], "", ""
    for line in Path(__file__).with_name("forms.txt").read_text().splitlines():
        if not line:
            rule = ""
        elif not line.startswith("#"):
            if rule:
                found += [(rule, one, secret) for one in _each(line)]
            else:
                rule, _, secret = line.partition(" ")
    return found


def _each(line: str) -> list[str]:
    """The line with the first of its choices, then with one other at a time; `\\n` and `\\t` are meant as such."""
    parts = [part.split("¦") for part in _CHOICE.split(line.replace("\\n", "\n").replace("\\t", "\t"))]
    parts[::2] = [["¦".join(part)] for part in parts[::2]]
    first = [part[0] for part in parts]
    others = [[*first[:at], one, *first[at + 1 :]] for at, part in enumerate(parts) for one in part[1:]]
    return ["".join(one) for one in (first, *others)]


FORMS: Final = _forms()


@each([form for form in FORMS if not form[1].startswith("- ")])
def test_each_form_of_a_secret_is_found_and_nothing_else(form: tuple[str, str, str]) -> None:
    rule, line, template = form
    for one in _each(template):
        secret = expanded(one, line)

        assert masked((RULES[rule],), line.replace("@@", secret), 0) == line.replace("@@", "*")


@each([form for form in FORMS if form[1].startswith("- ")])
def test_what_only_looks_like_a_form_is_left_alone(form: tuple[str, str, str]) -> None:
    text = expanded(form[1].removeprefix("- "))

    assert masked((RULES[form[0]],), text, 0) == text
