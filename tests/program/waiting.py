"""Waiting for what a process of its own will do."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 90.0


def until(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> float:
    """Return as soon as the condition holds, with the seconds it took; fail when it does not within the deadline.

    An answer that lacks what the condition looks for means "not yet": a program that does not listen has no sources.
    """
    start = time.monotonic()
    lacks: Exception | None = None
    while True:
        try:
            if condition():
                return time.monotonic() - start
        except (LookupError, ValueError) as error:
            lacks = error
        if time.monotonic() - start > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what}") from lacks
        time.sleep(0.005)
