"""Numbers, times and texts read as people write them."""

import json
import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cli.output.output import to_json
from exporter.cli.output.text import ago, columns, count, duration, listing, plain, shorten, size, words

NOW = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "just now"),
        (42, "42 s ago"),
        (180, "3 min ago"),
        (7200, "2 h ago"),
        (7800, "2 h 10 min ago"),
        (5 * 86400, "5 days ago"),
    ],
)
def test_a_recent_time_is_told_as_its_distance(seconds: int, said: str) -> None:
    assert ago((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == said


@pytest.mark.parametrize(
    ("when", "said"),
    [("2026-10-02T12:00:00Z", "2 Oct"), ("2025-03-09T12:00:00Z", "9 Mar 2025"), (None, "-"), ("x", "-")],
)
def test_an_old_time_is_told_as_its_date(when: str | None, said: str) -> None:
    assert ago(when, NOW) == said


def test_a_time_ahead_of_our_clock_is_told_as_such() -> None:
    assert ago("2026-11-18T12:05:00Z", NOW) == "in 5 min"


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0, "0 B"),
        (842, "842 B"),
        (1_000, "1.0 kB"),
        (1_240_000, "1.2 MB"),
        (999_960, "1.0 MB"),
        (314_000_000, "314 MB"),
    ],
)
def test_a_size_is_told_in_decimal_units(amount: int, said: str) -> None:
    assert size(amount) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (0.42, "0.4 s"), (38.2, "38 s"), (720, "12 min"), (86_400 * 5, "5 days")]
)
def test_a_duration_has_the_unit_that_suits_it(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_words_agree_with_their_number() -> None:
    assert [count(0, "event"), count(1, "event"), count(12_480, "event")] == ["0 events", "1 event", "12,480 events"]
    assert [listing([]), listing("a"), listing("abc")] == ["", "a", "a, b and c"]
    assert words("needs_attention") == "needs attention"


def test_text_of_a_session_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b[2Jb\x9bc\u202ed\r\nrm -rf") == "a�[2Jb�c�d rm -rf"


def test_json_cannot_steer_the_terminal_either() -> None:
    document = {"a\x7f": ["\x1b[2J", "\x9b2J", "\u202e\u2066\u200f\u061c", "\ud800", "é灯"]}

    shown = to_json(document)

    assert json.loads(shown) == document
    assert not any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in shown)
    assert "é灯" in to_json({"title": "é灯"})


@given(st.text())
def test_plain_text_is_one_line_that_utf8_can_hold(text: str) -> None:
    shown = plain(text)

    assert len(shown.splitlines()) <= 1
    assert shown.encode().decode() == shown
    assert not any(char < " " or "\x7f" <= char <= "\x9f" for char in shown)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"])), st.integers(0, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert columns(shorten(text, width)) <= width


def test_wide_characters_count_twice() -> None:
    assert columns("灯台") == 4
    assert shorten("灯台の潮", 5) == "灯台…"
