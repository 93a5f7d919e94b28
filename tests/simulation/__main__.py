"""Plays schedules: `python -m tests.simulation --schedules N --seed S`; ends with 1 and the smallest one that fails."""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.simulation.schedules import Result, run, schedule, smallest, told

_CHUNK = 500


def _some(seeds: range) -> tuple[list[int], int, int]:
    results = [(seed, run(schedule(seed))) for seed in seeds]
    failed = [seed for seed, result in results if result.why is not None]
    return failed, sum(result.requests for _, result in results), sum(result.restarts for _, result in results)
