"""What it costs to observe a CLI server in which much happens, and how soon its events are stored.

Everything is real: `exporter run`, which has no session file in reach and keeps a journal, our receiver with its SQLite
store and live view, and a server process. The clock of an event starts when it happens in the server, which is before
the journal is written, and stops when the 2xx answer to the request that carried it passes the relay.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from tests.bench import measure
from tests.bench.latency import wait_ids
from tests.bench.product import home, mission_control
from tests.bench.relay import Relay
from tests.bench.report import Row
from tests.bench.rpc_peer import RpcPeer

P95_MAX_MS = 50
CORE_MAX_PERCENT = 30
LIVE_SHARE = 0.77
"""As in the captures: of 126 events that a long poll gave, 29 were durable."""


@dataclass(frozen=True, slots=True)
class Pace:
    """So many events a second for some seconds, of which so many pass."""

    events_per_second: int
    seconds: float
    ephemeral_share: float


PACES = (Pace(5_000, 10, LIVE_SHARE), Pace(5_000, 10, 0))
QUICK_PACES = (Pace(5_000, 2, LIVE_SHARE),)


def rows(paces: tuple[Pace, ...] = PACES) -> list[Row]:
    """Two rows for each mix: what it costs, and how long an event takes."""
    return [row for pace in paces for row in _measure(pace)]


def _measure(pace: Pace) -> list[Row]:
    with (
        home() as place,
        home() as elsewhere,
        mission_control(elsewhere) as (_, port),
        Relay(port) as relay,
        RpcPeer(pace.events_per_second, pace.seconds, pace.ephemeral_share) as peer,
    ):
        place.configure(f"http://127.0.0.1:{relay.port}/agents")
        with place.config.open("a") as file:
            file.write(f"live = true\n[[source]]\nurl = {json.dumps(f'rpc://127.0.0.1:{peer.port}')}\n")
        with place.running("run") as exporter:
            first = next(iter(peer.durable))
            wait_ids(relay, exporter, {first})
            time.sleep(1)
            cpu, began = measure.cpu_seconds(exporter.pid), peer.begin()
            time.sleep(max(0.0, began + pace.seconds - time.monotonic()))
            percent = (measure.cpu_seconds(exporter.pid) - cpu) / (time.monotonic() - began) * 100
            stored = wait_ids(relay, exporter, set(peer.durable))
    due = {id: began + (number - 1) / pace.events_per_second for id, number in peer.durable.items() if number}
    taken = [(stored[id] - moment) * 1000 for id, moment in due.items()]
    return _judge(pace, percent, taken)


def _judge(pace: Pace, percent: float, taken: list[float]) -> list[Row]:
    p50, p95 = measure.percentile(taken, 0.5), measure.percentile(taken, 0.95)
    mix = f"{pace.ephemeral_share:.0%} of them live" if pace.ephemeral_share else "all of them durable"
    at = f"CLI server at {pace.events_per_second:,} events/s, {mix}"
    figures: dict[str, object] = {
        "core_percent": round(percent, 2),
        "p50_ms": round(p50, 2),
        "p95_ms": round(p95, 2),
        "max_ms": round(max(taken), 2),
        "durable": len(taken),
    }
    return [
        Row(f"{at}: share of a core", f"≤ {CORE_MAX_PERCENT} %", f"{percent:.1f} %", percent <= CORE_MAX_PERCENT),
        Row(
            f"{at}: event → journal → stored p95",
            f"≤ {P95_MAX_MS} ms",
            f"{p95:.1f} ms (p50 {p50:.1f})",
            p95 <= P95_MAX_MS,
            figures,
        ),
    ]
