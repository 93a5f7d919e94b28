"""How long a sink is left alone after a failure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.verdict import Later
from exporter.sinks.retry import retry_delay_seconds


@given(failures=st.integers(1, 10_000))
def test_a_wait_is_between_half_a_second_and_a_minute(failures: int) -> None:
    assert 0.5 <= retry_delay_seconds(failures, Later("answered 503")) <= 60.0


@given(failures=st.integers(1, 10_000), seconds=st.floats(0, 300))
def test_a_sink_may_lengthen_a_wait_and_never_shortens_it(failures: int, seconds: float) -> None:
    wait = retry_delay_seconds(failures, Later("answered 429", seconds))

    assert max(0.5, seconds) <= wait <= max(60.0, seconds)


def test_waits_are_spread_so_that_many_exporters_do_not_knock_together() -> None:
    waits = [retry_delay_seconds(30, Later("answered 503")) for _ in range(200)]

    assert max(waits) - min(waits) > 20.0


@pytest.mark.parametrize("_", range(20))
def test_five_failures_are_over_within_six_seconds(_: int) -> None:
    assert sum(retry_delay_seconds(failures, Later("answered 503")) for failures in range(1, 6)) <= 6.0


def test_a_long_outage_is_asked_about_seldom() -> None:
    waits = [retry_delay_seconds(failures, Later("refused")) for failures in range(1, 500)]

    assert sum(waits) / len(waits) >= 20.0
