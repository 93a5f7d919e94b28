"""A value that only its name makes a secret is found however the name is written and joined to it."""

import re

import pytest

from redaction.rules.examples import expanded
from redaction.rules.formats import built_in_pack, checked, rules_of
from tests.redaction.rules.context.extracting import spans
from tests.shared import CACHE

ROWS = {row.id: row for row, _ in built_in_pack(CACHE).rows}
# One with a telling word, and one whose words are common, which assignments find.
NAMES = {"datadog-api-key": "DATADOG_API_KEY", "braintree-private-key": "BT_PRIVATE_KEY"}
JOINED = [
    "{name}={value}", "{name} = '{value}'", "{name}: {value}", '"{name}": "{value}"', "{name} ?= {value}",
    "{name} := {value}", "{name} => '{value}'", "{name} == {value}", "a%20{name}={value}", "a\\n{name}={value}",
    "9{name}={value}", "{name}2={value}",
]  # fmt: skip
NOUNS = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PWD", "AUTH", "PAT", "ID", "COM", "ACCESS"]
JOINED_TO_A_TELLING_NAME = [
    "{name}, {value}", "<{name}>{value}</{name}>", "{name} is {value}", "{name}: str = '{value}'", "{name}\t'{value}'",
    "{name}: |\n    {value}", "set({name}, '{value}')", "{name}('{value}')", "name: {name}\n  value: {value}",
    "{name}_FOR_TESTS={value}",
    *(f"{{name}}_{noun} {{value}}" for noun in NOUNS),
]  # fmt: skip


def found(format_id: str, text: str) -> list[str]:
    row, line = ROWS[format_id], text.encode()
    rules = list(rules_of([(row, checked(row, "built-in"))]))
    return [line[start:end].decode() for start, end in spans(rules, line)]


@pytest.mark.parametrize("format_id", NAMES)
@pytest.mark.parametrize("joined", JOINED)
def test_a_value_is_found_behind_its_name(format_id: str, joined: str) -> None:
    value = expanded(ROWS[format_id].example, "named").partition("=")[2]

    assert found(format_id, joined.format(name=NAMES[format_id], value=value)) == [value]


@pytest.mark.parametrize("joined", JOINED_TO_A_TELLING_NAME)
def test_a_value_is_found_behind_a_name_that_tells_whose_it_is(joined: str) -> None:
    value = expanded(ROWS["datadog-api-key"].example, "named").partition("=")[2]

    assert found("datadog-api-key", joined.format(name="DATADOG_API_KEY", value=value)) == [value]


@pytest.mark.parametrize("left_out", ["", "...", "…", " [truncated]"])
@pytest.mark.parametrize(("name", "is_one"), [("DATADOG_API_KEY", True), ("DATADOG_SITE_KEY", False)])
def test_a_value_that_was_cut_off_is_found_behind_its_own_name_only(left_out: str, name: str, is_one: bool) -> None:
    value = expanded(ROWS["datadog-api-key"].example, "named").partition("=")[2][:20]

    assert found("datadog-api-key", f"{name}={value}{left_out}") == ([value] if is_one else [])


@pytest.mark.parametrize("format_id", NAMES)
@pytest.mark.parametrize("name", ["OTHER_API_KEY", "XBT_PRIVATE_KEYS_OF_SOMEBODY_ELSE_IN_ANOTHER_PLACE"])
def test_a_value_behind_another_name_is_not_found(format_id: str, name: str) -> None:
    value = expanded(ROWS[format_id].example, "named").partition("=")[2]

    assert found(format_id, f"{name}={value}") == []


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("internationalisation7_of_merchant_keys_x", False),
        ("internationalisations7_of_merchant_key_x", True),
        ("the_private_key_of_every_merchant_of_all", False),
        ("<base62:40>", True),
    ],
)
def test_a_name_in_the_form_of_a_value_is_none(value: str, is_one: bool) -> None:
    text = expanded(value, "named")

    assert found("qiniu-key", f"QINIU_SECRET={text}") == ([text] if is_one else [])


def test_words_without_a_digit_in_one_case_are_no_value_behind_a_name() -> None:
    row = ROWS["datadog-api-key"]
    values = {value for rule in rules_of([(row, checked(row, "built-in"))]) for value in getattr(rule, "values", ())}

    assert values
    for word in ("some_name_that_is_long", "ANOTHER-NAME-OF-THAT-KIND", "/a/path/of/words.txt"):
        assert not any(re.search(value, f"x = '{word}' and more") for value in values)
    for at in range(12):
        assert any(re.search(value, f"x = '{'k' * at}7{'k' * (12 - at)}'") for value in values)
