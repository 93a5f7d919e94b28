"""Tests that are a table of hundreds of rows: one test for all of them, which names every row that fails."""

import os
from collections.abc import Callable, Collection
from itertools import product
from typing import Any, Final

import pytest

_FAILURES: Final = (Exception, pytest.fail.Exception)
ONLY: Final = "TESTS_ROW"
"""The variable that names rows, with commas between them; of a table that has some of them only these are run."""


def each(*columns: Collection[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Makes a test of a check that takes one value of each column: all combinations, and all failures in one error.

    A test of its own for every row would cost more than what most of the rows do.
    """

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            rows = list(product(*columns))
            only = os.environ.get(ONLY, "").split(",")
            rows = [row for row in rows if any(name in row for name in only)] or rows
            assert rows, "a table without rows"
            failures: list[Exception] = []
            for row in rows:
                try:
                    check(*row)
                except _FAILURES as error:
                    failed = error if isinstance(error, Exception) else AssertionError(str(error))
                    failed.add_note(f"The row: {', '.join(map(repr, row))}")
                    failures.append(failed)
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(rows)} rows fail", failures)

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        test.__module__ = check.__module__
        return test

    return decorate
