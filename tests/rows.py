"""Tests that are a table of hundreds of rows: one test for all of them, which names every row that fails."""

import os
import re
from collections.abc import Callable, Collection
from itertools import product
from typing import Any, Final

import pytest

_CHOICE: Final = re.compile("«([^»]*)»")
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


def with_each_choice(line: str) -> list[str]:
    """A line in which `«a¦b»` says a choice: with the first of its choices, then with one other at a time.

    `\\n` and `\\t` in it are meant as such.
    """
    parts = [part.split("¦") for part in _CHOICE.split(line.replace("\\n", "\n").replace("\\t", "\t"))]
    parts[::2] = [["¦".join(part)] for part in parts[::2]]
    first = [part[0] for part in parts]
    others = [[*first[:at], one, *first[at + 1 :]] for at, part in enumerate(parts) for one in part[1:]]
    return ["".join(one) for one in (first, *others)]
