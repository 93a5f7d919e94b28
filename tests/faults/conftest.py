"""A machine for each test, as in tests/program; whoever asks for `fact` can put measured facts into the table."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.program.driver import Machine, new_machine

Fact = Callable[[str, Any], None]


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine without a receiver; everything started on it has ended after the test."""
    with new_machine() as machine:
        yield machine


@pytest.fixture
def fact(record_property: Fact) -> Fact:
    """Record what was seen; a number with a point is rounded."""
    return lambda name, value: record_property(name, round(value, 2) if isinstance(value, float) else value)
