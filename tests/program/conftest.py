"""A machine for each test, short enough in its path for a control socket."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.otel.receiver import Receiver
from tests.program.driver import Machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine without a receiver; everything started on it has ended after the test."""
    root = Path(tempfile.mkdtemp(prefix="xm-")).resolve()
    machine = Machine(root)
    try:
        yield machine
    finally:
        machine.close()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def delivering(machine: Machine) -> Machine:
    """A machine that delivers to a real receiver and to one that counts what it is sent."""
    return machine.with_team().with_floor()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An OTLP receiver."""
    with Receiver() as opened:
        yield opened
