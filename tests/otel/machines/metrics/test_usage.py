"""What calls of a model used that no event named, from the totals of a process."""

import pytest

from otel.machines.metrics.usage import _Calls, _Used, _with_unnamed


@pytest.mark.parametrize(
    ("total", "written", "unnamed", "expected"),
    [
        ((5, 100), (2, 30), (9, 900), ((5, 100), (6, 830))),
        ((5, 100), (2, 30), (1, 20), ((3, 50), (0, 0))),
        ((5, 100), (5, 100), (1, 20), ((5, 100), (1, 20))),
        ((5, 100), (7, 130), (1, 20), ((7, 130), (1, 20))),
    ],
)
def test_calls_that_named_no_model_are_those_of_the_model_that_has_more_than_were_counted(
    total: _Calls, written: _Calls, unnamed: _Calls, expected: tuple[_Calls, _Calls]
) -> None:
    used = _Used(calls=total[0], written=total[1])

    assert _with_unnamed(used, written, unnamed) == expected
