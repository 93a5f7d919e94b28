"""Runs the parts that are named, or all; ends with 1 when one of them fails."""

import argparse
import os
import subprocess
import sys
import time

from tests.soak.parts import PARTS, Part


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help="; ".join(f"{one.name}: {one.what}" for one in PARTS))
    parser.add_argument("--list", action="store_true", help="list the parts")
    given, more = parser.parse_known_args()
    known = {one.name: one for one in PARTS}
    if unknown := [name for name in given.parts if name not in known]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(known)}")
    chosen = [known[name] for name in given.parts or known]
    if given.list:
        for one in chosen:
            print(f"{one.name:10} {one.minutes:3} min  {one.what}")
        return 0
    failed = [one.name for one in chosen if not _passes(one, more)]
    print(
        f"soak: {len(chosen) - len(failed)} of {len(chosen)} parts hold{': not ' if failed else ''}{', '.join(failed)}"
    )
    return 1 if failed else 0


def _passes(part: Part, more: list[str]) -> bool:
    print(f"== {part.name}: {part.what} (up to {part.minutes} minutes)", flush=True)
    begun = time.monotonic()
    ended = subprocess.run(part.line(more), env={**os.environ, **part.environment}, check=False)
    print(f"== {part.name}: exit {ended.returncode} after {time.monotonic() - begun:.0f} s", flush=True)
    return ended.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
