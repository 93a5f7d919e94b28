"""What a Mission Control on PostgreSQL costs: `python -m tests.bench.fleet` prints the figures of docs/scale.md.

All of it is processor time, of this process (receiver, worker) and of PostgreSQL's, so that it means something on a
busy machine. Nothing is written but a database and a directory of its own.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from exporter.daemon.sealed_settings import SealedSettings
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.search.index import Term
from exporter.missioncontrol.search.worker import IndexWorker
from exporter.missioncontrol.store import tokens
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from tests.missioncontrol.postgres import Server

EVENTS, BATCH, SESSIONS = 20_000, 500, 20
EVENT_BYTES: Final = 1_900
REPORTS, EXPORTERS = 300, 5_000
SEARCHES: Final = 20
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_WORDS: Final = [f"{random.Random(number).getrandbits(40):x}" for number in range(20_000)]


@dataclass
class Spent:
    """Seconds of processor of this process and of the server."""

    own: float = 0.0
    server: float = 0.0


class Meter:
    """Measures what is spent in a block."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @contextmanager
    def spent(self) -> Iterator[Spent]:
        """Yield what is filled in at the end of the block."""
        found, own, server = Spent(), time.process_time(), self._of_server()
        yield found
        found.own, found.server = time.process_time() - own, self._of_server() - server

    def _of_server(self) -> float:
        assert self._server._process is not None
        main = self._server._process.pid
        children = subprocess.run(["pgrep", "-P", str(main)], check=True, capture_output=True, text=True).stdout
        fields = [_stat(main, 4), *(_stat(int(child), 2) for child in children.split())]
        return sum(map(sum, fields)) / _TICKS


def _stat(process: int, count: int) -> list[int]:
    """Return user and system time of a process; with 4 also those of its children that ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return [0]
    return [int(field) for field in text.rpartition(")")[2].split()[11 : 11 + count]]


def event(session: int, number: int) -> bytes:
    """An event of about 1.9 KB with words as a session has them."""
    chance = random.Random(session << 20 | number)
    text = ""
    while len(text) < EVENT_BYTES - 160:
        text += chance.choice(_WORDS) + " "
    fields = {"type": "assistant.message", "id": f"{session}-{number}", "timestamp": "2026-11-18T10:00:00.000Z"}
    return json.dumps({**fields, "data": {"content": text}}).encode()


async def store_events(client: httpx.AsyncClient, meter: Meter) -> dict[str, float]:
    """Upload through the application, as receivers do; the network is not in it."""
    per_session = EVENTS // SESSIONS
    bodies = [
        (session, b'{"events":[' + b",".join(event(session, n) for n in range(first, first + BATCH)) + b"]}")
        for session in range(SESSIONS)
        for first in range(0, per_session, BATCH)
    ]
    for session in range(SESSIONS):
        await client.post("/agents/sessions", json={"id": f"s{session}"})
    with meter.spent() as spent:
        for session, body in bodies:
            answer = await client.post(f"/agents/sessions/s{session}/events", content=body)
            assert answer.json()["accepted"] == BATCH
    return {"receiver µs/event": spent.own / EVENTS * 1e6, "server µs/event": spent.server / EVENTS * 1e6}


async def report(client: httpx.AsyncClient, meter: Meter) -> dict[str, float]:
    """Report as exporters do every ten seconds, with a hash of their settings."""
    sealed = SealedSettings({f"table.setting_{number}": str(number) for number in range(110)})
    sinks = [{"name": f"sink{n}", "lag_events": 0, "lag_seconds": 0.0, "last_error": None} for n in range(2)]
    body = {"version": "1.0", "host": "laptop", "installation": "0" * 16, "sinks": sinks, "quarantined": 0}
    for full in (True, False):
        told = sealed.told("salt", in_full=full)
        with meter.spent() as spent:
            for number in range(REPORTS):
                await client.post(f"/agents/exporters/e{number}", json={**body, "settings": told})
    return {"receiver µs/report": spent.own / REPORTS * 1e6, "server µs/report": spent.server / REPORTS * 1e6}


async def show_fleet(client: httpx.AsyncClient, store: PostgresStore, meter: Meter) -> dict[str, float]:
    """Show the page of five thousand exporters."""
    copied = (
        "INSERT INTO exporters (id, report, reported_at)"
        " SELECT 'copy-' || n, report, reported_at FROM exporters, generate_series(1, ?) AS n WHERE id = 'e0'"
    )
    store.do(lambda database: database.execute(copied, (EXPORTERS,)).rowcount)
    with meter.spent() as spent:
        assert (await client.get("/fleet")).status_code == 200
    return {"receiver ms": spent.own * 1e3, "server ms": spent.server * 1e3}


async def index(url: str, store: PostgresStore, client: httpx.AsyncClient, meter: Meter) -> dict[str, float]:
    """Build an index of all events, then search in it, and without it."""
    with tempfile.TemporaryDirectory() as directory:
        worker = IndexWorker(url, Path(directory))
        with meter.spent() as built:
            worker.start()
            assert await asyncio.to_thread(worker.ready.wait, 1800)
        found = {
            "worker µs/event": built.own / EVENTS * 1e6,
            "server µs/event, read for it": built.server / EVENTS * 1e6,
            "bytes/event": _size_of(Path(directory)) / EVENTS,
        }
        rare = [next(iter(json.loads(event(n % SESSIONS, n))["data"]["content"].split())) for n in range(SEARCHES)]
        with meter.spent() as asked:
            for word in rare:
                assert worker.find(1, [Term(word)], 1 << 62)[0]
        worker.close()
        with meter.spent() as scanned:
            for word in rare[:3]:
                await client.get(f"/api/v1/search?q={word}&limit=200")
    found["worker ms/search"] = asked.own / SEARCHES * 1e3
    found["receiver and server ms/search without it"] = (scanned.own + scanned.server) / 3 * 1e3
    return found


def _size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.iterdir())


async def measure(server: Server) -> dict[str, Any]:
    """Return every figure."""
    url, meter = server.migrated("bench"), Meter(server)
    with PostgresStore(url) as store:
        token = store.do(lambda database: tokens.create(database, "bench", "now"))
        headers = {"Session-Exporter": "1", "Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(create_app(store))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            steps: list[tuple[str, Callable[[], Any]]] = [
                ("store", lambda: store_events(client, meter)),
                ("report", lambda: report(client, meter)),
                ("fleet page of 5,000 exporters", lambda: show_fleet(client, store, meter)),
                ("index", lambda: index(url, store, client, meter)),
            ]
            found = {name: await step() for name, step in steps}
        size = server.execute("SELECT pg_database_size('bench')")[0][0]
        found["size"] = {"bytes/event in PostgreSQL, all tables": size / EVENTS}
    return found


def main() -> int:
    """Measure and print."""
    with Server(max_connections=50) as server:
        for name, figures in asyncio.run(measure(server)).items():
            print(f"{name}: " + ", ".join(f"{what} {value:,.1f}" for what, value in figures.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
