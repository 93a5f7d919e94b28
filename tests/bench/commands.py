"""How long a person waits for the short commands."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.bench import measure
from tests.bench.generate import EventStream
from tests.bench.product import READY_TIMEOUT_SECONDS, Home, home
from tests.bench.receiver import REPOSITORY, Receiver
from tests.bench.report import Row

VERSION_MAX_MS = 80
STATUS_MAX_MS = 150


def rows(runs: int) -> list[Row]:
    """`status` is measured beside a running daemon and without one; the median of each is judged."""
    with Receiver(arena_bytes=10_000_000) as receiver, home() as place:
        place.configure(receiver.url)
        place.new_session(EventStream(3000), 20)
        version = _judge("exporter --version", VERSION_MAX_MS, _times(place, ("--version",), runs))
        with place.running("run"):
            measure.wait_until(lambda: place.follows(1), READY_TIMEOUT_SECONDS, "the control socket")
            beside = _judge("exporter status, daemon running", STATUS_MAX_MS, _times(place, ("status",), runs))
        alone = _judge("exporter status, no daemon", STATUS_MAX_MS, _times(place, ("status",), runs))
    return [version, beside, alone]


def _times(place: Home, arguments: Sequence[str], runs: int) -> list[float]:
    installed = Path(sys.executable).with_name("exporter")
    program = [str(installed)] if installed.exists() else [sys.executable, "-m", "exporter"]
    command = [*program, *arguments, *([] if "--version" in arguments else ["--config", str(place.config)])]
    taken = []
    for _ in range(runs):
        began = time.monotonic()
        subprocess.run(command, env=place.environ(), cwd=REPOSITORY, check=True, capture_output=True)
        taken.append((time.monotonic() - began) * 1000)
    return taken


def _judge(what: str, target_ms: float, taken: Sequence[float]) -> Row:
    middle, best = statistics.median(taken), min(taken)
    return Row(
        f"{what}, median (best)",
        f"≤ {target_ms:g} ms",
        f"{middle:.0f} ({best:.0f}) ms",
        middle <= target_ms,
        {"median_ms": round(middle, 1), "best_ms": round(best, 1), "max_ms": round(max(taken), 1), "runs": len(taken)},
    )
