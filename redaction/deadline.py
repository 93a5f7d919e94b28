"""The moment after which work on an event stops."""

import time
from dataclasses import dataclass


class OutOfTimeError(Exception):
    """The time budget ended."""


@dataclass(slots=True)
class Deadline:
    """The moment after which work on an event stops."""

    at: float

    @classmethod
    def after(cls, budget_ms: float) -> "Deadline":
        """The deadline of work that may take so long from now on."""
        return cls(time.perf_counter() + budget_ms / 1000)

    def check(self) -> None:
        """Raise `OutOfTimeError` when it has passed."""
        if time.perf_counter() >= self.at:
            raise OutOfTimeError
