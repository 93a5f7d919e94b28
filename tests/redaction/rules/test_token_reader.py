"""Formats are read the same without an expression of their own as with it."""

import random
import re

from redaction.rules.formats import built_in_pack
from redaction.rules.shape import sample
from redaction.rules.token_reader import TokenReader, end_of, length_of, steps_of
from tests.shared import CACHE

SEED = 5
GLUED = (b"", b" ", b"aaaa", b"0000==", b'"')
CHANGED = (b"", b"_", b"Z", b"9", b"-")


def changed(text: bytes, chooser: random.Random) -> bytes:
    """The text with something before, after or in it."""
    text = b"x" * chooser.randrange(3) + text + chooser.choice(GLUED)
    at = chooser.randrange(len(text))
    return text[:at] + chooser.choice(CHANGED) + text[at + 1 :] if chooser.random() < 0.5 else text


def test_steps_match_what_their_pattern_matches() -> None:
    chooser = random.Random(SEED)
    stepped = 0
    for row, _ in built_in_pack(CACHE).rows:
        steps = steps_of(row.pattern)
        if steps is None:
            continue
        stepped += 1
        compiled = re.compile(row.pattern.encode())
        for _ in range(5):
            text = changed(sample(row.pattern, chooser).encode(), chooser)
            for at in range(min(4, len(text))):
                match = compiled.match(text, at)
                assert end_of(steps, text, at) == (match.end() if match else -1), (row.id, text, at)
    assert stepped


def test_length_is_known_where_no_count_varies() -> None:
    assert length_of(steps_of(r"ab\.[0-9]{4}c[a-z]") or ()) == 9
    assert length_of(steps_of("ab[0-9]{4,6}") or ()) is None


def test_what_is_more_than_classes_in_a_row_is_for_an_expression() -> None:
    for pattern in ("a(?:b|c)", "a[0-9]{2,3}b", "ab?", "(a[0-9])", "a[0-9]{2,}[a-z]"):
        assert steps_of(pattern) is None


def test_a_format_says_whether_its_values_may_hold_digits() -> None:
    def may_hold(pattern: str) -> bool:
        return TokenReader(pattern, None, exact=True, any_left=True, check=None).may_hold_digits

    assert may_hold("ab_[0-9a-f]{8}") is True
    assert may_hold("ab_[a-z]{8}") is False
