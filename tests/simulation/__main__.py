"""Plays schedules; ends with 1, and the smallest part of the first one that fails, when something does not hold."""

import argparse
import sys
import time

from tests.simulation.schedules import play, schedule, smallest, told


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first one")
    parser.add_argument("--workers", type=int, default=2, help="in how many processes")
    given = parser.parse_args()
    begun = time.monotonic()
    failed, played, requests, starts = play(given.seed, given.schedules, workers=given.workers)
    seconds = time.monotonic() - begun
    print(f"{played} schedules, {requests} requests, {starts} starts of an exporter, {seconds:.0f} s")
    for seed in failed[:1]:
        print(f"{len(failed)} of them fail; the smallest part of one that does:")
        print(told(smallest(schedule(seed))))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
