"""How much this machine, which others use too, gives to a program."""

from __future__ import annotations

import time


def share() -> float:
    """How much of a processor a program gets just now, from 0 to 1."""
    began, worked = time.perf_counter(), time.process_time()
    while time.process_time() - worked < 0.03:
        sum(range(1000))
    return min(1.0, (time.process_time() - worked) / (time.perf_counter() - began))
