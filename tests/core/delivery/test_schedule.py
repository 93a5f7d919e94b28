"""Turns are taken in the order of asking, live ones first, and nobody is forgotten or served twice."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.schedule import Schedule
from tests.core.scenario import check, scenarios


class Script:
    """The language of the schedule scenarios."""

    def __init__(self) -> None:
        self.schedule: Schedule[str] = Schedule()

    def __call__(self, words: list[str]) -> list[str]:
        match words:
            case ["live", key]:
                self.schedule.add(key, live=True)
            case ["backfill", key]:
                self.schedule.add(key, live=False)
            case ["next"]:
                return [str(self.schedule.next() or "nobody")]
            case ["len"]:
                return [str(len(self.schedule))]
            case _:
                raise ValueError(words)
        return []


@pytest.mark.parametrize("path", scenarios("schedule"), ids=lambda path: path.stem)
def test_scenario(path: Path, rewrite: bool) -> None:
    check(path, Script(), rewrite)


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=60))
def test_whoever_asked_has_one_turn_and_live_ones_come_first(asked: Sequence[tuple[int, bool]]) -> None:
    schedule: Schedule[int] = Schedule()
    for key, live in asked:
        schedule.add(key, live=live)

    turns = [turn for _ in range(len(schedule)) if (turn := schedule.next()) is not None]

    live_keys = list(dict.fromkeys(key for key, live in asked if live))
    others = list(dict.fromkeys(key for key, _ in asked if key not in live_keys))
    assert turns == live_keys + others
    assert schedule.next() is None


@given(st.integers(1, 30), st.integers(2, 200))
def test_a_session_that_always_asks_again_starves_nobody(sessions: int, rounds: int) -> None:
    """Every session waits for one turn of each other at most."""
    schedule: Schedule[int] = Schedule()
    for key in range(sessions):
        schedule.add(key, live=True)
    waited = dict.fromkeys(range(sessions), 0)
    for _ in range(rounds):
        turn = schedule.next()
        assert turn is not None
        waited = {key: 0 if key == turn else turns + 1 for key, turns in waited.items()}
        schedule.add(turn, live=True)

        assert max(waited.values()) < sessions


@pytest.mark.parametrize("live", [True, False])
def test_what_is_put_back_has_the_next_turn(live: bool) -> None:
    schedule: Schedule[int] = Schedule()
    for key in range(3):
        schedule.add(key, live=live)
    turn = schedule.next()
    assert turn == 0

    schedule.put_back(turn, live=live)

    assert [schedule.next() for _ in range(4)] == [0, 1, 2, None]
