"""Spans that overlap become one, named by the rule that knows most; and what lies in base64 is no text."""

import pytest

from redaction.known import KNOWN_RULE
from redaction.rules.rule import Rule
from redaction.spans import SecretSpan, blank, is_binary, masked, merged_spans


def rule(name: str, *, confidence: str = "high", foreign: bool = False) -> Rule:
    rule_id = f"detect-secrets.{name}" if foreign else name
    return Rule(rule_id, "x", "y", (), lambda _, to: ((), to), confidence=confidence)  # type: ignore[arg-type]


ONE, TWO = rule("one"), rule("two")


def joined(*spans: tuple[int, int, Rule]) -> list[tuple[int, int, str]]:
    return [(one.start, one.end, one.rule.id) for one in merged_spans(SecretSpan(*span) for span in spans)]


def test_spans_apart_stay_apart_and_in_order() -> None:
    assert joined((5, 9, TWO), (0, 5, ONE)) == [(0, 5, "one"), (5, 9, "two")]


def test_overlapping_spans_are_one_with_the_rule_of_the_longest() -> None:
    assert joined((0, 5, ONE), (4, 9, TWO)) == [(0, 9, "one")]
    assert joined((0, 5, ONE), (4, 10, TWO)) == [(0, 10, "two")]
    assert joined((0, 9, ONE), (2, 4, TWO)) == [(0, 9, "one")]
    assert joined((0, 4, ONE), (3, 9, TWO), (8, 13, ONE)) == [(0, 13, "two")]


def test_a_known_value_names_whatever_it_overlaps() -> None:
    assert joined((0, 9, ONE), (2, 4, KNOWN_RULE)) == [(0, 9, KNOWN_RULE.id)]
    assert joined((0, 3, KNOWN_RULE), (2, 9, TWO)) == [(0, 9, KNOWN_RULE.id)]


def test_of_rules_with_the_same_span_the_surest_names_it() -> None:
    assert joined((0, 5, rule("a", confidence="low")), (0, 5, rule("b", confidence="medium"))) == [(0, 5, "b")]
    assert joined((0, 5, rule("b")), (0, 5, rule("a"))) == [(0, 5, "a")]


def test_a_rule_of_ours_names_what_one_of_detect_secrets_found_too() -> None:
    foreign = rule("x", foreign=True)

    assert joined((0, 5, foreign), (0, 4, ONE)) == [(0, 5, "one")]
    assert joined((0, 5, ONE), (2, 20, foreign)) == [(0, 20, "one")]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 9])
def test_filler_is_as_long_as_what_it_stands_for_and_ends_lines(length: int) -> None:
    filler = blank(length)

    assert len(filler) == length
    assert filler[:1] == filler[-1:] == (b"\n" if length else b"")
    assert set(filler[1:-1]) <= {0}


@pytest.mark.parametrize(
    ("before", "secret", "after", "is_chance"),
    [
        (256, 40, 256, True), (255, 40, 256, False), (256, 40, 255, False), (300, 40, 300, True), (256, 255, 256, True),
        (256, 256, 256, False),
    ],
)  # fmt: skip
def test_a_hit_within_much_base64_is_chance(before: int, secret: int, after: int, is_chance: bool) -> None:
    data = b"!" + b"A" * (before + secret + after) + b"!"

    assert is_binary(data, 1 + before, 1 + before + secret) is is_chance


def test_replacements_leave_all_else_as_it_is() -> None:
    assert masked(b"abcdefgh", [(1, 2, b"X"), (4, 6, b"")]) == b"aXcdgh"
