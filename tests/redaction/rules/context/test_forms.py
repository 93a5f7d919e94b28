"""What the rules with context find in each of the forms that they name, which one example cannot show."""

from pathlib import Path
from typing import Final

from redaction.engine import Engine, Masked
from redaction.rules.examples import expanded
from redaction.rules.rule_set import FAMILIES, rules_of_family
from tests.redaction.events import content_of, event
from tests.redaction.rules.context.extracting import masked
from tests.rows import each, with_each_choice
from tests.shared import CACHE

RULES = {rule.id: rule for family in FAMILIES for rule in rules_of_family(family)}


def _forms() -> list[tuple[str, str, str]]:
    """The rule, the line, and what the secret looks like, nothing where there is none."""
    found, rule, secret = [], "", ""
    for line in Path(__file__).with_name("forms.txt").read_text().splitlines():
        if not line:
            rule = ""
        elif not line.startswith("#"):
            if rule:
                found += [(rule, one, secret) for one in with_each_choice(line)]
            else:
                rule, _, secret = line.partition(" ")
    return found


FORMS: Final = _forms()


FOUND: Final = [form for form in FORMS if not form[1].startswith("- ")]
LEFT_ALONE: Final = [form for form in FORMS if form[1].startswith("- ")]
ENGINE: Final = Engine(b"a key of the tests", cache_dir=CACHE)


@each(FOUND)
def test_each_form_of_a_secret_is_found_and_nothing_else(form: tuple[str, str, str]) -> None:
    rule, line, template = form
    for one in with_each_choice(template):
        secret = expanded(one, line)

        assert masked((RULES[rule],), line.replace("@@", secret), 0) == line.replace("@@", "*")


@each(FOUND)
def test_each_form_of_a_secret_is_redacted_in_an_event(form: tuple[str, str, str]) -> None:
    _, line, template = form
    for one in with_each_choice(template):
        secret = expanded(one, line)

        result = ENGINE.redact(event(line.replace("@@", secret)), 60_000)

        assert isinstance(result, Masked)
        assert secret not in str(content_of(result.line))


@each(LEFT_ALONE)
def test_what_only_looks_like_a_form_is_left_alone(form: tuple[str, str, str]) -> None:
    text = expanded(form[1].removeprefix("- "))

    assert masked((RULES[form[0]],), text, 0) == text
