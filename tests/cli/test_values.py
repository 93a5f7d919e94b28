"""`--since` takes what people write."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.cli.values import parse_when

ZONE = timezone(timedelta(hours=1))
NOW = datetime(2026, 11, 18, 13, 37, 5, tzinfo=ZONE)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("7d", NOW - timedelta(days=7)),
        ("36h", NOW - timedelta(hours=36)),
        ("90m", NOW - timedelta(minutes=90)),
        ("2w ago", NOW - timedelta(weeks=2)),
        ("now", NOW),
        ("today", datetime(2026, 11, 18, tzinfo=ZONE)),
        ("Yesterday", datetime(2026, 11, 17, tzinfo=ZONE)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=ZONE)),
        ("2026-11-01T08:30", datetime(2026, 11, 1, 8, 30, tzinfo=ZONE)),
        ("2026-11-01T08:30:00Z", datetime(2026, 11, 1, 8, 30, tzinfo=UTC)),
    ],
)
def test_a_moment_is_understood(text: str, meant: datetime) -> None:
    assert parse_when(text, NOW) == meant


@pytest.mark.parametrize("text", ["", "7", "d7", "last week", "-3d", "999999w", "2026-13-01", "7d 3h"])
def test_what_is_no_moment_says_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected an ISO time .* a span .* today or yesterday"):
        parse_when(text, NOW)


@given(st.text(max_size=20))
def test_any_text_is_a_moment_with_a_zone_or_a_value_error(text: str) -> None:
    try:
        assert parse_when(text, NOW).tzinfo is not None
    except ValueError as error:
        assert "expected" in str(error)
