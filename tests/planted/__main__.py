"""Plant as many secrets as asked for, in rounds, and look for each in everything: a part of `make soak`.

python -m tests.planted --secrets 1000000
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.planted.planting import planted

_ROUND: Final = 50_000
_SHOWN_MAX: Final = 20


def run(number: int, first: int = 0) -> int:
    """Plant so many secrets; return how many times one was found somewhere."""
    began, leaks, shown = time.monotonic(), 0, set[str]()
    with TemporaryDirectory(prefix="planted-") as cache:
        for at in range(first, first + number, _ROUND):
            size = min(_ROUND, first + number - at)
            for leak in planted(at, size, Path(cache)):
                leaks += 1
                value = leak.split()[1]
                if value not in shown and len(shown) < _SHOWN_MAX:
                    print(leak, flush=True)
                    shown.add(value)
            seconds = time.monotonic() - began
            print(f"{at + size - first:,} planted, {leaks} found, {seconds:.0f} s", flush=True)
    return leaks


def main() -> int:
    """Plant as the command line says; 1 when anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--secrets", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first secret; others have other values")
    given = parser.parse_args()
    return 1 if run(given.secrets, given.first) else 0


if __name__ == "__main__":
    raise SystemExit(main())
