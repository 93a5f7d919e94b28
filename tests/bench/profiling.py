"""Shows where the time of a delivery goes: functions of the main thread, and the CPU of every thread."""

from __future__ import annotations

import pstats
import sys
from pathlib import Path

from tests.bench.delivery import PASS_THROUGH, TIMEOUT_SECONDS
from tests.bench.generate import cache_directory, cached
from tests.bench.product import home
from tests.bench.receiver import Receiver

LINES = 45


def profile(size_bytes: int, *, pass_through: bool) -> int:
    """Delivers one file under cProfile, which makes calls slower but keeps their order; prints the costliest."""
    file = cached(size_bytes)
    result = cache_directory() / "profile.pstats"
    result.unlink(missing_ok=True)
    with Receiver() as receiver, home() as place:
        place.add(file)
        place.configure(receiver.url)
        receiver.reset(file.durable)
        program_module = PASS_THROUGH[-1] if pass_through else "exporter"
        module = ["-m", program_module, "run", "--config", str(place.config)]
        command = [sys.executable, "-m", "cProfile", "-o", str(result), *module]
        with place.running("run", command=command) as program:
            summary = receiver.summary(TIMEOUT_SECONDS, program.check)
            threads = _threads(program.pid)
            program.stop()
    seconds = summary.last_at - program.started
    pstats.Stats(str(result)).sort_stats("tottime").print_stats(LINES)
    print(f"complete: {summary.complete}; {seconds:.2f} s and {size_bytes / 1e6 / seconds:.0f} MB/s under the profiler")
    print("CPU seconds by thread:", ", ".join(f"{name} {cpu:.2f}" for name, cpu in threads))
    return 0


def _threads(process: int) -> list[tuple[str, float]]:
    """The threads of a process by their kernel names, the busiest first."""
    found = []
    for task in (Path("/proc") / str(process) / "task").iterdir():
        nanoseconds = int((task / "schedstat").read_text().split()[0])
        found.append((f"{(task / 'comm').read_text().strip()}/{task.name}", nanoseconds / 1e9))
    return sorted(found, key=lambda item: -item[1])
