"""The name of a format counts only where something that looks like a value follows, and no secret is lost by that."""

import random
from collections.abc import Iterator

import pytest

from redaction.prefilter.prefilter import Prefilter
from redaction.rules.examples import expanded
from redaction.rules.rule import VALUES_REACH, Family
from redaction.rules.rule_set import all_rules
from redaction.rules.shape import parsed
from tests.shared import CACHE

RULES = all_rules((), (), drop_opaque=False, cache_dir=CACHE).rules
NAMED = [rule for rule in RULES if isinstance(rule, Family) and rule.values]
PREFILTER = Prefilter((), NAMED, cache_dir=CACHE)
PROSE = "The packet of older weights left the ledger, and the weather service answered the payments controller. "


def counted(line: bytes) -> list[tuple[Family, int]]:
    return [(owner, to) for number, to in PREFILTER.hits(line) for owner in PREFILTER.owners[number] if owner in NAMED]


def examples() -> Iterator[tuple[Family, bytes]]:
    for family in NAMED:
        for rule in family.rules:
            for seed in range(3):
                yield family, expanded(rule.example, f"{rule.id} {seed}").encode()


def test_most_names_of_formats_count_only_with_a_value() -> None:
    assert len(NAMED) > 800


def test_words_without_a_value_do_not_count() -> None:
    assert counted(PROSE.encode() * 20) == []
    assert counted(b"from packet.weights import ledger_of_weather as PaymentsControllerLedger\n") == []


@pytest.mark.parametrize("value", ["0123456789ab", "abcdefghijklm_7", "qXbRmZpLsTvWkYnC"])
def test_a_value_counts_up_to_its_distance(value: str) -> None:
    near, far = (f"weights {' ' * blanks}{value} ".encode() for blanks in (VALUES_REACH - 20, VALUES_REACH))

    assert [to for _, to in counted(near)] == [7]
    assert counted(far) == []


def test_every_example_that_a_name_finds_is_still_found() -> None:
    chooser = random.Random(7)
    for family, example in examples():
        line = PROSE.encode() * chooser.randint(0, 3) + example
        ends = [to for to in range(len(line) + 1) if family.extract(line, to)[0]]
        found = {to for owner, to in counted(line) if owner is family}
        assert not ends or not found.isdisjoint(ends) or not _names_end_at(family, line, ends), (family.gates, line)


def _names_end_at(family: Family, line: bytes, ends: list[int]) -> bool:
    """Whether the gate itself, without the demand for a value, ends at one of these places."""
    alone = Prefilter((), [Family(family.rules, family.gates, family.extract)])
    return any(to in ends for _, to in alone.hits(line))


@pytest.mark.parametrize(
    ("pattern", "has_run"),
    [
        ("[0-9a-f]{32}", True),
        ("[0-9A-Za-z+/]{43}=", True),
        ("(?:[0-9a-f]{40}|[0-9A-Za-z]{24})", True),
        ("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", True),
        ("[0-9A-Za-z]{6}:[0-9A-Za-z]{6}:[0-9A-Za-z]{6}", False),
        ("[a-z]{4}-[a-z]{4}-[a-z]{4}-[a-z]{4}", False),
        ("[0-9a-f]{8}", False),
        ("[2-7A-Z]{16}", False),
        ("(?:[0-9a-f]{40}|[0-9a-f]{8})", False),
    ],
)
def test_a_pattern_has_a_run_only_if_every_value_stands_out(pattern: str, *, has_run: bool) -> None:
    assert parsed(pattern).has_run is has_run
