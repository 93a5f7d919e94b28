"""A clock that runs fast: minutes of waiting pass in seconds, for the event loop and for what asks the time."""

import asyncio
import selectors
import time

SPEED = 50.0
_real = time.monotonic
_begin = _real()


def fast_monotonic() -> float:
    """Return the seconds of the fast clock."""
    return _begin + (_real() - _begin) * SPEED


class _FastSelector(selectors.DefaultSelector):
    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found: list[tuple[selectors.SelectorKey, int]] = super().select(timeout and timeout / SPEED)
        return found


def fast_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop whose timers follow the fast clock; `time.monotonic` must be patched to it as well."""
    return asyncio.SelectorEventLoop(_FastSelector())
