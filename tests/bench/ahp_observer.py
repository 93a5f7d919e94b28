"""What it costs to observe an agent host in which much happens, and one with many sessions.

Everything is real: `exporter run` with the real engine, which has no session file in reach and keeps journals, our
receiver with its SQLite store and live view, and a host process behind a WebSocket. The clock of an event starts when
its action happens in the host and stops when the 2xx answer to the request that carried it passes the relay.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench import measure
from tests.bench.ahp_peer import AhpPeer
from tests.bench.latency import wait_ids
from tests.bench.product import READY_TIMEOUT_SECONDS, Home, Running, home, mission_control
from tests.bench.relay import Relay
from tests.bench.report import Row

CORE_MAX_PERCENT = 30
P95_MAX_MS = 50
EVENTS_PER_SECOND = 5_000
MEMORY_MAX_MB = 60
SESSIONS = 200
STATE_BYTES = 50_000
SETTLE_SECONDS = 3.0
SAMPLE_SECONDS = 0.1


def rows(*, quick: bool) -> list[Row]:
    """What a busy session costs and how soon it is stored, and what many sessions take."""
    return [*_busy(2 if quick else 10), _many(20 if quick else SESSIONS)]


@contextmanager
def _chain() -> Iterator[tuple[Home, Relay]]:
    """Somewhere to run, and a relay to a receiver."""
    with home() as place, home() as elsewhere, mission_control(elsewhere) as (_, port), Relay(port) as relay:
        yield place, relay


def _configure(place: Home, relay: Relay, peer: AhpPeer | None) -> None:
    place.configure(f"http://127.0.0.1:{relay.port}/agents")
    with place.config.open("a") as file:
        file.write("live = true\n")
        if peer is not None:
            file.write(f"[[source]]\nurl = {json.dumps(peer.url)}\n")


def _busy(seconds: float) -> list[Row]:
    with _chain() as (place, relay), AhpPeer(1, 1000, EVENTS_PER_SECOND, seconds) as peer:
        _configure(place, relay, peer)
        with place.running("run") as exporter:
            wait_ids(relay, exporter, set(peer.last))
            time.sleep(1)
            cpu, began = measure.cpu_seconds(exporter.pid), peer.begin()
            stored = wait_ids(relay, exporter, set(peer.durable))  # what comes late is work too
            percent = (measure.cpu_seconds(exporter.pid) - cpu) / seconds * 100
    taken = [(stored[id] - began - number / EVENTS_PER_SECOND) * 1000 for id, number in peer.durable.items()]
    p50, p95 = measure.percentile(taken, 0.5), measure.percentile(taken, 0.95)
    at = f"agent host at {EVENTS_PER_SECOND:,} actions/s, 77% of them live"
    figures: dict[str, object] = {
        "core_percent": round(percent, 2),
        "p50_ms": round(p50, 2),
        "p95_ms": round(p95, 2),
        "max_ms": round(max(taken), 2),
        "timed": len(taken),
    }
    return [
        Row(f"{at}: share of a core", f"≤ {CORE_MAX_PERCENT} %", f"{percent:.1f} %", percent <= CORE_MAX_PERCENT),
        Row(
            f"{at}: action → journal → stored p95",
            f"≤ {P95_MAX_MS} ms",
            f"{p95:.1f} ms (p50 {p50:.1f})",
            p95 <= P95_MAX_MS,
            figures,
        ),
    ]


def _many(sessions: int) -> Row:
    """The largest of all samples, from the start until a while after all is stored, beside the idle daemon.

    Most of each session's state is a turn that runs, because a turn that was told to its end is not held.
    """
    with _chain() as (place, relay):
        _configure(place, relay, None)
        with place.running("run") as exporter:
            measure.wait_until(lambda: place.status() is not None, READY_TIMEOUT_SECONDS, "the daemon")
            time.sleep(SETTLE_SECONDS)
            idle = measure.pss_bytes(exporter.pid)
    with _chain() as (place, relay), AhpPeer(sessions, STATE_BYTES) as peer:
        _configure(place, relay, peer)
        with place.running("run") as exporter:
            samples = _samples(relay, exporter, set(peer.last))
            resting = measure.pss_bytes(exporter.pid)
    above, rest = (max(samples) - idle) / 1e6, (resting - idle) / 1e6
    return Row(
        f"memory above idle: agent host, {sessions} sessions of {STATE_BYTES // 1000} KB (largest; at rest)",
        f"≤ {MEMORY_MAX_MB} MB",
        f"{above:.0f} MB ({rest:.0f} MB)",
        above <= MEMORY_MAX_MB,
        {"idle_bytes": idle, "largest_bytes": max(samples), "resting_bytes": resting, "samples": len(samples)},
    )


def _samples(relay: Relay, exporter: Running, ids: set[str]) -> list[int]:
    """How much the exporter took at each moment until these events were stored, and a while after."""
    samples: list[int] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_SECONDS):
            samples.append(measure.pss_bytes(exporter.pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        wait_ids(relay, exporter, ids)
        time.sleep(SETTLE_SECONDS)
    finally:
        done.set()
        sampler.join()
    return samples
