"""How a function's time grows with its input: the only thing about time that a test may judge."""

import gc
import time
from collections.abc import Callable
from typing import Final

GROWTH_MAX: Final = 6.0  # for input four times as long; quadratic would be 16
NOISE_SECONDS: Final = 0.02


def seconds(do: Callable[[bytes], object], text: bytes) -> float:
    """Processor time of the best of three runs, so that a busy machine does not decide."""
    best = float("inf")
    gc.disable()  # whatever else the process holds would be looked through again and again
    try:
        for _ in range(3):
            begin = time.process_time()
            do(text)
            best = min(best, time.process_time() - begin)
    finally:
        gc.enable()
    return best


def grows_with_size(do: Callable[[bytes], object], make: Callable[[int], bytes], size: int) -> bool:
    """True when four times the input takes about four times as long."""
    small, large = seconds(do, make(size)), seconds(do, make(4 * size))
    return large < max(GROWTH_MAX * small, NOISE_SECONDS)
