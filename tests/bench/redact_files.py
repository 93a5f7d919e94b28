"""Reads files of events, redacts each line and writes it away: the whole program that the bench sets beside others.

`python -m tests.bench.redact_files CACHE_DIR redact|scan FILE…` prints what it did as JSON. With `redact-again` and
`scan-again` the files are read twice; `work_seconds` is the CPU time of the last reading, without the start.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from redaction.engine import CLEAN, Engine, Masked

BUDGET_MS = 10_000
READ_BYTES = 1 << 20
AGAIN = "-again"
KEY = b"the bench's key: same tags in every run"


def redact(engine: Engine, source: BinaryIO, away: BinaryIO) -> tuple[int, int, int]:
    """How many lines there were, how many secrets were masked and how many lines refused."""
    lines = secrets = refused = 0
    for line in source:
        result = engine.redact(line, BUDGET_MS)
        lines += 1
        if result is CLEAN:
            away.write(line)
        elif isinstance(result, Masked):
            secrets += len(result.rules)
            away.write(result.line)
        else:
            refused += 1
    return lines, secrets, refused


def scan(engine: Engine, source: BinaryIO, away: BinaryIO) -> tuple[int, int, int]:
    """The gates alone, for comparison: what no engine that is built on them can be faster than."""
    hits = engine._search.hits
    lines = found = 0
    for line in source:
        lines += 1
        found += len(hits(line))
        away.write(line)
    return lines, found, 0


def resident_bytes() -> int:
    """The memory of this process that is in RAM now."""
    rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Rss:"))


def main(arguments: Sequence[str]) -> int:
    """Do it, and say how much there was."""
    cache_dir, mode, *files = arguments
    engine = Engine(KEY, cache_dir=Path(cache_dir))
    loaded = resident_bytes()
    work = {"redact": redact, "scan": scan}[mode.removesuffix(AGAIN)]
    seconds = 0.0
    for _ in range(2 if mode.endswith(AGAIN) else 1):
        counts, began = [0, 0, 0], time.process_time()
        with Path("/dev/null").open("wb", buffering=READ_BYTES) as away:
            for name in files:
                with Path(name).open("rb", buffering=READ_BYTES) as source:
                    counts = [sum(pair) for pair in zip(counts, work(engine, source, away), strict=True)]
        seconds = time.process_time() - began
    names = ("lines", "found", "refused", "rss_loaded_bytes", "rss_end_bytes", "rules", "work_seconds")
    print(json.dumps(dict(zip(names, (*counts, loaded, resident_bytes(), len(engine.rules()), seconds), strict=True))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
