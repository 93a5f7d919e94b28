"""Which ids have come before: the latest ones for certain, and never more than twice as many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel.machines.traces.machine import RecentIds


def test_an_id_has_come_before_from_its_second_time_on() -> None:
    recent = RecentIds(4)

    assert [recent.check_and_add(one) for one in "abab"] == [False, False, True, True]


def test_an_id_that_nobody_asked_for_has_not_come() -> None:
    recent = RecentIds(4)
    recent.check_and_add("a")

    assert not recent.check_and_add("b")


@given(st.integers(1, 20), st.lists(st.integers(0, 60), max_size=200))
def test_of_the_latest_ids_all_are_known(least: int, numbers: list[int]) -> None:
    recent = RecentIds(least)
    latest: list[int] = []

    for number in numbers:
        again = recent.check_and_add(str(number))

        assert again or number not in latest[-least:]
        if not again:
            latest.append(number)


@given(st.integers(1, 20), st.lists(st.integers(0, 200), max_size=200))
def test_what_never_came_is_never_taken_for_known(least: int, numbers: list[int]) -> None:
    recent = RecentIds(least)
    before: set[int] = set()

    for number in numbers:
        assert not recent.check_and_add(str(number)) or number in before
        before.add(number)


@pytest.mark.parametrize("least", [1, 2, 10])
def test_what_is_twice_as_old_is_forgotten(least: int) -> None:
    recent = RecentIds(least)
    for number in range(2 * least + 1):
        recent.check_and_add(str(number))

    assert recent.check_and_add(str(2 * least))
    assert not recent.check_and_add("0")


def test_an_old_id_that_comes_again_and_again_is_forgotten_as_the_others_are() -> None:
    """It is the first time that counts: a line that was copied is not copied for ever."""
    recent = RecentIds(2)

    assert [recent.check_and_add(one) for one in ["a", "b", "a", "c", "d", "a"]] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
