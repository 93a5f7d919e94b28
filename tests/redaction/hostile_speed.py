"""How fast hostile lines are answered: `python -m tests.redaction.hostile_speed [MB/s]` names the slowest of them."""

import sys
import time

from redaction.engine import Engine
from tests.redaction.hostile import hostile

TARGET = 2.0
ATTEMPTS = 3


def main() -> None:
    """Print the lines below the target, slowest first, in megabytes per CPU second."""
    target = float(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    engine = Engine(b"a key of the tests")
    speeds: list[tuple[float, str]] = []
    for case in hostile():
        line = case.make()
        fastest = float("inf")
        for _ in range(ATTEMPTS):
            began = time.process_time()
            engine.redact(line, 60_000.0)
            fastest = min(fastest, time.process_time() - began)
        speeds.append((len(line) / fastest / 1e6, case.name))
    slow = sorted(speed for speed in speeds if speed[0] < target)
    for speed, name in slow:
        print(f"{speed:8.2f} MB/s  {name}")
    print(f"{len(speeds) - len(slow)} of {len(speeds)} at {target:g} MB/s or more")


if __name__ == "__main__":
    main()
