"""How long an event takes from the append to the receiver's answer after its commit, and what that costs.

Both ends are the real commands: `exporter run` and `exporter mission-control serve` with its SQLite store. The clock of
an event starts before its write() and stops when the 2xx answer to the request that carried it passes the relay between
them.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.bench import measure
from tests.bench.generate import EventStream
from tests.bench.product import Home, Running, home, mission_control
from tests.bench.relay import Relay
from tests.bench.report import Row

FIRST_EVENT_MAX_MS = 50
NEW_SESSIONS = 20
SETTLE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Pace:
    """Events a second for some seconds, and what was promised for it."""

    events_per_second: int
    seconds: float
    p50_max_ms: float | None
    p99_max_ms: float
    core_max_percent: float | None


PACES = (Pace(100, 20, 1, 5, None), Pace(5_000, 10, None, 30, 20))


@dataclass(frozen=True, slots=True)
class Chain:
    """An exporter that follows `place` and delivers through the relay to our own receiver."""

    place: Home
    exporter: Running
    server: Running
    relay: Relay


@contextmanager
def chain() -> Iterator[Chain]:
    """Ready once a first session has gone all the way."""
    with home() as place, home() as elsewhere, mission_control(elsewhere) as (server, port), Relay(port) as relay:
        place.configure(f"http://127.0.0.1:{relay.port}/agents")
        first = EventStream(900, ephemeral_share=0)
        place.new_session(first, 3)
        with place.running("run") as exporter:
            found = Chain(place, exporter, server, relay)
            wait_stored(found, set(first.durable_ids))
            yield found


def wait_stored(found: Chain, ids: set[str]) -> dict[str, float]:
    """See `wait_ids`."""
    return wait_ids(found.relay, found.exporter, ids)


def wait_ids(relay: Relay, exporter: Running, ids: set[str]) -> dict[str, float]:
    """The moment each event was known to be stored; raises TimeoutError when some never are."""
    stored: dict[str, float] = {}

    def all_stored() -> bool:
        exporter.check()
        time.sleep(0.2)
        stored.update(relay.stored())
        return ids <= stored.keys()

    measure.wait_until(all_stored, SETTLE_SECONDS, f"{len(ids)} events stored")
    return stored


def rows(paces: tuple[Pace, ...] = PACES) -> list[Row]:
    """One row per promise and pace."""
    return [row for pace in paces for row in _measure(pace)]


def new_session_rows() -> list[Row]:
    """A directory and a file appear with their first event, while the exporter is idle."""
    with chain() as found:
        began: dict[str, float] = {}
        for number in range(NEW_SESSIONS):
            stream = EventStream(1000 + number, ephemeral_share=0)
            time.sleep(0.1 + 0.013 * (number % 7))
            moment = time.monotonic()
            found.place.new_session(stream, 1)
            began[stream.durable_ids[0]] = moment
        stored = wait_stored(found, set(began))
    taken = [(stored[item] - moment) * 1000 for item, moment in began.items()]
    middle, worst = statistics.median(taken), max(taken)
    return [
        Row(
            "new session: made → first event stored, median (largest)",
            f"≤ {FIRST_EVENT_MAX_MS} ms",
            f"{middle:.1f} ({worst:.1f}) ms",
            middle <= FIRST_EVENT_MAX_MS,
            {"median_ms": round(middle, 2), "max_ms": round(worst, 2), "runs": len(taken)},
        )
    ]


def _measure(pace: Pace) -> list[Row]:
    stream = EventStream(901, ephemeral_share=0)
    count = round(pace.events_per_second * pace.seconds)
    lines = [stream.next_line() for _ in range(count + 1)]
    with chain() as found:
        path = found.place.session_path(stream.session_id)
        path.write_bytes(lines[0])
        wait_stored(found, {stream.durable_ids[0]})
        exporter, server = measure.cpu_seconds(found.exporter.pid), measure.cpu_seconds(found.server.pid)
        appended = _append(str(path), lines[1:], pace.events_per_second)
        seconds = time.monotonic() - appended[0]
        exporter = (measure.cpu_seconds(found.exporter.pid) - exporter) / seconds * 100
        server = (measure.cpu_seconds(found.server.pid) - server) / seconds * 100
        stored = wait_stored(found, set(stream.durable_ids))
    taken = [(stored[i] - at) * 1000 for i, at in zip(stream.durable_ids[1:], appended, strict=True)]
    return _judge(pace, taken, exporter, server)


def _append(path: str, lines: list[bytes], events_per_second: int) -> list[float]:
    """Writes each line at its own time, one write() each; returns when each write began."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    appended = []
    start = time.monotonic()
    try:
        for number, line in enumerate(lines):
            due = start + number / events_per_second
            while (early := due - time.monotonic()) > 0:
                time.sleep(early)
            appended.append(time.monotonic())
            os.write(descriptor, line)
    finally:
        os.close(descriptor)
    return appended


def _judge(pace: Pace, taken: list[float], exporter_percent: float, server_percent: float) -> list[Row]:
    p50, p99 = measure.percentile(taken, 0.5), measure.percentile(taken, 0.99)
    at = f"at {pace.events_per_second:,} events/s"
    figures: dict[str, object] = {
        "p50_ms": round(p50, 3),
        "p99_ms": round(p99, 3),
        "max_ms": round(max(taken), 3),
        "events": len(taken),
        "exporter_core_percent": round(exporter_percent, 2),
        "receiver_core_percent": round(server_percent, 2),
    }
    target = f"≤ {pace.p99_max_ms:g} ms" if pace.p50_max_ms is None else f"≤ {pace.p50_max_ms:g}/{pace.p99_max_ms:g} ms"
    holds = p99 <= pace.p99_max_ms and (pace.p50_max_ms is None or p50 <= pace.p50_max_ms)
    name = "p99" if pace.p50_max_ms is None else "p50/p99"
    measured = f"{p99:.1f} ms (p50 {p50:.1f})" if pace.p50_max_ms is None else f"{p50:.2f}/{p99:.2f} ms"
    core = None if pace.core_max_percent is None else exporter_percent <= pace.core_max_percent
    return [
        Row(f"append → stored {name} {at}", target, measured, holds, figures),
        Row(
            f"exporter's share of a core {at} (its receiver's)",
            "" if pace.core_max_percent is None else f"≤ {pace.core_max_percent:g} %",
            f"{exporter_percent:.1f} % ({server_percent:.1f} %)",
            core,
        ),
    ]
