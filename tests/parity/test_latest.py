"""`semconv = "latest"` against `cli`: what nobody gave a reason for is the same."""

import pytest

from tests.parity.explained import LATEST, rows, unexplained
from tests.parity.latest import departures, sessions
from tests.parity.oracle import Session

SESSIONS = sessions()
EACH = [pytest.param(one, id=f"{number}-{one.name}") for number, one in enumerate(SESSIONS)]


@pytest.mark.parametrize("one", EACH)
def test_every_departure_from_the_cli_has_a_reason(one: Session) -> None:
    assert unexplained(departures(one), one, LATEST) == []


def test_every_reason_explains_something() -> None:
    found = [(one, departures(one)) for one in SESSIONS]

    unused = [row for row in rows(LATEST) if not any(row.explains(each, by) for by, some in found for each in some)]

    assert unused == []


def test_a_departure_without_a_reason_is_found() -> None:
    found = {each for one in SESSIONS for each in unexplained(departures(one, "legacy"), one, LATEST)}

    assert {each.signal for each in found} == {"span", "event", "metric", "log"}
    assert {each.what for each in found} == {"absent", "extra", "value"}
