"""How fast a whole session file is delivered, and for how much CPU, beside syslog-ng in the same minutes."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence

from tests.bench import syslog_ng
from tests.bench.generate import SessionFile, cached
from tests.bench.product import home
from tests.bench.receiver import Receiver
from tests.bench.report import Row
from tests.bench.syslog_ng import Delivery, delivery

SPEED_RATIO_MIN = 1.1
CPU_RATIO_MAX = 1.0
TIMEOUT_SECONDS = 300
REPEAT_MAX_SECONDS = 15
"""A run that takes longer is not repeated: its figure is steady, and the machine is wanted by others."""

PASS_THROUGH = (sys.executable, "-m", "tests.bench.passthrough")


def deliver(file: SessionFile, receiver: Receiver, *, pass_through: bool) -> Delivery:
    """One run of the exporter from a fresh state: start, deliver the file, stop."""
    with home() as place:
        place.add(file)
        place.configure(receiver.url)
        receiver.reset(file.durable)
        command = [*PASS_THROUGH, "run", "--config", str(place.config)] if pass_through else None
        with place.running("run", command=command) as program:
            summary = receiver.summary(TIMEOUT_SECONDS, program.check)
            finished = program.stop()
        return delivery(file, summary, finished, program.started)


def rows(size_bytes: int, rounds: int) -> list[Row]:
    """Runs the three of them in turn, so that a change of the machine's load meets all alike."""
    file = cached(size_bytes)
    peer = syslog_ng.find()
    runs: dict[str, list[Delivery]] = {}
    with Receiver() as receiver:
        contestants: dict[str, Callable[[], Delivery]] = {
            "pass-through": lambda: deliver(file, receiver, pass_through=True),
            "real": lambda: deliver(file, receiver, pass_through=False),
        }
        if peer is not None:
            contestants["syslog-ng"] = lambda: peer.deliver(file, receiver)
        for _ in range(rounds):
            for name, run in contestants.items():
                if not any(earlier.seconds > REPEAT_MAX_SECONDS for earlier in runs.get(name, [])):
                    runs.setdefault(name, []).append(run())
    reference = runs.get("syslog-ng", [])
    title = f"deliver {file.size_bytes / 1e6:.0f} MB"
    found = [_absolute(f"{title}: syslog-ng {peer.version()}", reference)] if peer is not None else []
    for name, engine in (("pass-through", "pass-through engine"), ("real", "real engine")):
        found.append(_absolute(f"{title}: exporter, {engine}", runs[name]))
        if reference:
            found += _ratios(engine, runs[name], reference, promised=name == "pass-through")
    return found


def _absolute(what: str, runs: Sequence[Delivery]) -> Row:
    speed, cpu = _speed(runs), _cpu(runs)
    return Row(
        what,
        "",
        f"{speed:.0f} MB/s, {cpu:.2f} CPU s/GB",
        None,
        {
            "megabytes_per_second": [round(run.megabytes_per_second, 1) for run in runs],
            "cpu_seconds_per_gigabyte": [round(run.cpu_seconds_per_gigabyte, 3) for run in runs],
            "first_event_seconds": [round(run.first_event_seconds, 3) for run in runs],
            "steady_megabytes_per_second": [round(run.steady_megabytes_per_second, 1) for run in runs],
            "requests": [run.requests for run in runs],
            "rss_max_bytes": [run.rss_max_bytes for run in runs],
            "receiver_cpu_seconds": [round(run.receiver_cpu_seconds, 3) for run in runs],
        },
    )


def _ratios(engine: str, ours: Sequence[Delivery], theirs: Sequence[Delivery], *, promised: bool) -> list[Row]:
    speed, cpu = _speed(ours) / _speed(theirs), _cpu(ours) / _cpu(theirs)
    return [
        Row(
            f"speed, {engine}, to syslog-ng",
            f"≥ {SPEED_RATIO_MIN:.1f} x" if promised else "",
            f"{speed:.2f} x",
            speed >= SPEED_RATIO_MIN if promised else None,
            {"ratio": round(speed, 3)},
        ),
        Row(
            f"CPU per GB, {engine}, to syslog-ng",
            f"≤ {CPU_RATIO_MAX:.1f} x" if promised else "",
            f"{cpu:.2f} x",
            cpu <= CPU_RATIO_MAX if promised else None,
            {"ratio": round(cpu, 3)},
        ),
    ]


def _speed(runs: Sequence[Delivery]) -> float:
    return statistics.median(run.megabytes_per_second for run in runs)


def _cpu(runs: Sequence[Delivery]) -> float:
    return statistics.median(run.cpu_seconds_per_gigabyte for run in runs)
