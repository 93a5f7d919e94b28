"""The second reading loses nothing: what a gate matches, the first reading sees, and nothing matches farther than it
reaches."""

import random
import re
from collections.abc import Iterator

from redaction.prefilter.gate import make_gate
from redaction.prefilter.prefilter import Prefilter
from redaction.rules.examples import expanded
from redaction.rules.rule import AROUND, OPENED_REACH, Family, Rule, with_open_counts
from redaction.rules.rule_set import all_rules

RULES = all_rules((), (), drop_opaque=False).rules
WAITING = [rule for rule in RULES if rule.when]


def _width(gate: str) -> int:
    """The longest text that the gate matches."""
    parser = re._parser  # type: ignore[attr-defined]
    return int(parser.parse(gate).getwidth()[1])


def _examples() -> Iterator[str]:
    for rule in WAITING:
        for one in rule.rules if isinstance(rule, Family) else (rule,):
            for seed in range(3):
                for template in filter(None, (one.example, one.counter)):
                    yield expanded(template, f"{one.id} {seed}")


def test_no_gate_reaches_farther_than_it_is_read_again() -> None:
    assert {rule.reach for rule in WAITING} == {AROUND, OPENED_REACH}
    for rule in WAITING:
        for gate in rule.gates:
            assert _width(gate) <= sum(rule.reach), gate


def test_both_readings_find_what_one_reading_of_all_gates_finds() -> None:
    chooser = random.Random(5)
    prefilter = Prefilter((), WAITING)
    gates = list(dict.fromkeys(gate for rule in WAITING if rule.reach == OPENED_REACH for gate in rule.gates))
    exact = make_gate([gate.encode() for gate in gates])
    examples = [example for example in _examples() if len(example) < 400]
    for _ in range(200):
        line = "\n".join(chooser.choices(examples, k=12)).encode()
        found = {(rule, to) for number, to in prefilter.hits(line) for rule in prefilter.owners[number]}
        for number, to in exact.hits(line):
            assert all((rule, to) in found for rule in WAITING if gates[number] in rule.gates)


def test_the_slow_engine_is_not_given_open_counts() -> None:
    rule = with_open_counts(Rule("a", "b", "c", (r"key[a-z]{0,3}=[0-9]{4}",), lambda _, to: ((), to)))

    prefilter = Prefilter((), (rule,), engine="re")

    assert list(prefilter.hits(b"keyabc=1234 keyabcd=1234")) == [(0, 11)]


def test_open_counts_match_more_only_in_the_first_reading() -> None:
    rule = with_open_counts(Rule("a", "b", "c", (r"key[a-z]{0,3}=[0-9]{4}",), lambda _, to: ((), to)))

    prefilter = Prefilter((), (rule,), engine="hyperscan")

    assert rule.when == (r"key[a-z]*=[0-9]{4}",)
    assert [(prefilter.owners[number], to) for number, to in prefilter.hits(b"keyabc=1234 keyabcd=1234")] == [
        ((rule,), 11)
    ]
