"""What calls of a model used that no event named, from the totals of a process."""

import pytest

from otel.machines.metrics.usage import _Calls, _is_old, _Used, _with_unnamed


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


@pytest.mark.parametrize(
    ("version", "is_one"),
    [
        ("1.0.48", True), ("1.0.48-0", True), ("0.9.99", True), ("1.0.49", False), ("1.1.0", False), ("2.0.0", False),
        ("1.0", False), ("1.0.x", False), ("", False), (None, False),
    ],
)  # fmt: skip
def test_up_to_a_version_totals_begin_anew_with_each_process(version: str | None, is_one: bool) -> None:
    assert _is_old(version) is is_one
