"""Waiting for what a process of its own will do."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE_SECONDS: Final = 30.0


def until(condition: Callable[[], bool], what: str, *, seconds: float = PATIENCE_SECONDS) -> float:
    """Return as soon as the condition holds, with the seconds it took; fail when it does not within the deadline."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.005)
    return time.monotonic() - start
