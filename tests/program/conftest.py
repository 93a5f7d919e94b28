"""A machine for each test, short enough in its path for a control socket."""

from collections.abc import Callable, Iterator

import pytest

from tests.otel.receiver import Receiver
from tests.program.driver import Machine, new_machine


@pytest.fixture
def machine(record_property: Callable[[str, object], None]) -> Iterator[Machine]:
    """A machine without a receiver; everything started on it has ended after the test. `make faults` shows figures."""
    with new_machine() as machine:
        yield machine
        if machine.floor is not None and machine.floor.stored:
            record_property("events", sum(map(machine.floor.count, machine.floor.stored)))
            record_property("sent twice in all", machine.floor.repeated())


@pytest.fixture
def delivering(machine: Machine) -> Machine:
    """A machine that delivers to a real receiver and to one that counts what it is sent."""
    return machine.with_team().with_floor()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An OTLP receiver."""
    with Receiver() as opened:
        yield opened
