"""What of the values of events is added up."""

from math import inf, nan

import pytest

from otel.machines.metrics.measurements import amount


@pytest.mark.parametrize(
    ("value", "added"),
    [(0, 0), (7, 7), (0.0, 0), (0.5, 0.5), (7.0, 7), (2**60, 2**60), (2**60 + 1, None), (1e300, None), (-1, None),
     (-0.5, None), (inf, None), (-inf, None), (nan, None), (True, None), ("7", None), (None, None)],
)  # fmt: skip
def test_only_numbers_that_something_can_come_to_are_added_up(value: object, added: float | None) -> None:
    assert amount(value) == added
