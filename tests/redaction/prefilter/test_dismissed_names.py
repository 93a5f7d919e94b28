"""Names that end a line or are subscripts trigger no second reading, and nothing is lost by that."""

import json
import random

import pytest

from redaction.engine import Engine
from redaction.prefilter.gate import make_gate
from redaction.prefilter.prefilter import VALUE_WORDS, Prefilter, has_no_value
from redaction.rules.context import pairs
from redaction.rules.context.table import table_of
from redaction.rules.examples import expanded
from redaction.rules.rule import AROUND, Family
from redaction.rules.rule_set import all_rules
from tests.shared import CACHE

RULES = all_rules((), (), drop_opaque=False).rules
WAITING = [rule for rule in RULES if rule.when and rule.reach == AROUND]
PROSE = ("Never print the password", "keep it beside the api_key.", 'os.environ["DB_PASSWORD"]', "a client secret")


@pytest.mark.parametrize(
    ("line", "end", "ended"),
    [
        (rb"the password.\nAnd then", b"password.\\", True),
        (rb"the token\nAnd then", rb"token\n", True),
        (rb"- name: DB_PASSWORD\n  value: abc", b"PASSWORD\\", False),
        (rb"- name: DB_PASSWORD\n  default: abc", b"PASSWORD\\", False),
        (rb"host,db_password\nalpha,abc", b"password\\", False),
        (rb"host,db_password\r\nalpha,abc", b"password\\", False),
        (rb"the password\r\nAnd then", b"password\\", True),
        (rb"the password\tabc", b"password\\", False),
        (rb"the password\\nabc", b"password\\", False),
        (rb"the token\\nabc", rb"token\\n", False),
        (rb"os.environ[\"DB_PASSWORD\"]; next", b"PASSWORD\\", True),
        (rb"os.environ['DB_PASSWORD'] next", rb"PASSWORD'", True),
        (rb"[\"DB_PASSWORD\", next", b"PASSWORD\\", False),
        (rb"{\"name\": \"DB_PASSWORD\"}", b"PASSWORD\\", False),
        (rb"x = (\"DB_PASSWORD\"]", b"PASSWORD\\", False),
    ],
)
def test_a_name_has_no_value_where_nothing_can_be_given_to_it(line: bytes, end: bytes, ended: bool) -> None:
    assert has_no_value(line, line.index(end) + len(end)) is ended


def test_every_word_that_a_value_stands_behind_is_searched_for() -> None:
    names = table_of(pairs.__file__).fragments["value_names"].split("|")

    assert all(any(word in name.encode() for word in VALUE_WORDS) for name in names)


def test_a_line_of_names_is_read_once() -> None:
    prefilter = Prefilter((), WAITING, engine="hyperscan")
    gates = list(dict.fromkeys(when for rule in WAITING for when in rule.when))
    line = json.dumps(" and more\n".join(PROSE) + "\n").encode()

    assert any(not has_no_value(line, to) for _, to in make_gate([gate.encode() for gate in gates]).hits(line)) is False
    assert list(prefilter.hits(line)) == []


def test_what_stands_among_such_names_is_found_as_if_it_stood_alone() -> None:
    chooser = random.Random(7)
    prefilter = Prefilter((), WAITING, engine="hyperscan")
    for rule in WAITING:
        for one in rule.rules if isinstance(rule, Family) else (rule,):
            for seed in range(4):
                example = json.dumps(expanded(one.example, f"{one.id} {seed}"))[1:-1].encode()
                before = json.dumps(chooser.choice(PROSE) + "\n")[1:-1].encode()
                after = json.dumps("\n" + chooser.choice(PROSE))[1:-1].encode()
                alone = {(number, to + len(before)) for number, to in prefilter.hits(example)}
                assert alone <= set(prefilter.hits(before + example + after)), one.id


def test_a_variable_that_fish_sets_is_found_without_anything_beside_it() -> None:
    assert (
        Engine(cache_dir=CACHE)
        .redact_text("set -gx BACKUP_PASSWORD Xk29dLq8ZtRm")
        .startswith("set -gx BACKUP_PASSWORD [REDACTED:")
    )
