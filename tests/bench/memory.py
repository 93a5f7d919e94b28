"""How much memory the exporter takes while it works off a long backlog."""

from __future__ import annotations

import threading

from tests.bench import measure
from tests.bench.generate import cached
from tests.bench.product import home
from tests.bench.receiver import Receiver
from tests.bench.report import Row

PSS_MAX_MB = 80
SESSIONS = 4
SAMPLE_SECONDS = 0.25
TIMEOUT_SECONDS = 600


def rows(size_bytes: int) -> list[Row]:
    """Samples the whole tree with the real engine until every event has arrived; the largest sample is judged.

    The backlog is spread over as many sessions as are delivered at once, which takes more memory than one long session.
    """
    files = [cached(size_bytes // SESSIONS, seed) for seed in range(11, 11 + SESSIONS)]
    samples: list[int] = []
    done = threading.Event()
    with Receiver(arena_bytes=int(size_bytes * 1.1)) as receiver, home() as place:
        for file in files:
            place.add(file)
        place.configure(receiver.url)
        receiver.reset(sum(file.durable for file in files))
        with place.running("run") as program:

            def sample() -> None:
                while not done.wait(SAMPLE_SECONDS):
                    samples.append(measure.pss_bytes(program.pid))

            sampler = threading.Thread(target=sample)
            sampler.start()
            try:
                summary = receiver.summary(TIMEOUT_SECONDS, program.check)
            finally:
                done.set()
                sampler.join()
    if not summary.complete:
        raise RuntimeError(f"{summary.distinct} events of the backlog arrived within {TIMEOUT_SECONDS} s")
    peak = max(samples) / 1e6
    seconds = summary.last_at - program.started
    return [
        Row(
            f"memory (PSS, largest) at {size_bytes / 1e9:.1f} GB backlog, real engine",
            f"≤ {PSS_MAX_MB} MB",
            f"{peak:.0f} MB",
            peak <= PSS_MAX_MB,
            {
                "pss_max_bytes": max(samples),
                "pss_median_bytes": sorted(samples)[len(samples) // 2],
                "samples": len(samples),
                "seconds": round(seconds, 2),
                "megabytes_per_second": round(size_bytes / 1e6 / seconds, 1),
            },
        )
    ]
