"""A sink that fails is probed by one request at a time; one that refuses the token by none until it changes."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.delivery.gate import Gate
from tests.core.scenario import check, scenarios

TOKENS: Final = {"none": None}


class Script:
    """The language of the gate scenarios."""

    def __init__(self) -> None:
        self.gate = Gate()

    def __call__(self, words: list[str]) -> list[str]:
        gate = self.gate
        match words:
            case ["ready", now]:
                return [told(gate, gate.ready(float(now)))]
            case ["fail", now, delay, *alarm]:
                gate.failed(float(now), float(delay), alarm=bool(alarm))
            case ["succeed"]:
                gate.succeeded()
            case ["unused"]:
                gate.unused()
            case ["refuse", token]:
                gate.unauthorized(TOKENS.get(token, token))
            case ["token", token]:
                gate.token_is(TOKENS.get(token, token))
            case ["state"]:
                return [f"failures={gate.failures} alarm={gate.alarm}".lower()]
            case _:
                raise ValueError(words)
        return []


def told(gate: Gate, until: float | None) -> str:
    if gate.closed:
        assert until == float("inf")
        return "closed"
    return "go" if until is None else f"hold until {until:g}"


@pytest.mark.parametrize("path", scenarios("gate"), ids=lambda path: path.stem)
def test_scenario(path: Path, rewrite: bool) -> None:
    check(path, Script(), rewrite)


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 60)), min_size=1, max_size=20), st.floats(0, 2000))
def test_while_it_fails_one_of_many_goes_and_none_too_early(failures: list[tuple[float, float]], later: float) -> None:
    gate, now = Gate(), 0.0
    for pause, delay in failures:
        now += pause
        gate.failed(now, delay)

    let_through = [asker for asker in range(1000) if gate.ready(now + later) is None]

    assert len(let_through) == (1 if now + later >= now + failures[-1][1] else 0)


def test_a_gate_that_is_closed_for_a_time_opens_by_itself_and_by_another_token() -> None:
    gate = Gate()
    gate.unauthorized("one", until=3600.0)

    assert (gate.ready(0.0), gate.ready(3599.0), gate.closed) == (3600.0, 3600.0, True)
    assert (gate.ready(3600.0), gate.closed) == (None, False)
    gate.unauthorized("one", until=7200.0)
    gate.token_is("another")
    assert gate.ready(3601.0) is None
    gate.unauthorized("another")  # a token that is refused stays refused
    assert (gate.ready(1e9), gate.closed) == (float("inf"), True)
