"""How fast the receiver stores, indexes, finds and shows, and what memory that takes.

A receiver of its own process on a store in a temporary directory, driven over HTTP on loopback: bodies of 500 events
(2.5 KB each on average), each answered after its commit is synced.
"""

from __future__ import annotations

import http.client
import json
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from exporter.missioncontrol.search.fts5 import path_beside
from tests.bench import measure
from tests.bench.first_run import Sampled
from tests.bench.generate import EventStream
from tests.bench.receiver import REPOSITORY
from tests.bench.report import Row

INGEST_MIN = 40_000
INDEX_MIN = 30_000
CATCH_UP_MAX_SECONDS = 10
PAGE_MAX_MS = 100
SESSION_MAX_MS = 300
SEARCH_MAX_MS = 300
RSS_MAX_MB = 150
BATCH = 500
SESSIONS = 5_000
LARGE = 20_000
CONNECTIONS = 4
BURSTS = ("first", "second", "third")
EVENTS, EVENTS_ON_A_SMALL_DISK, DISK_BYTES = 5_000_000, 1_000_000, 40 << 30
VARIANTS = 40
PAGES = ("/", "/api/v1/sessions?limit=100", "/feed", "/health")
OF_THE_LARGE_SESSION = ("/sessions/large", "/api/v1/sessions/large/events?limit=500", "/api/v1/sessions/large/tree")
SEARCHES = ("session", "password+handbook", "re", "line_number", "zzznothing", "resumed&session=session-00001")
SERVE = """
import asyncio, sys
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

async def serve():
    with Store(sys.argv[1]) as store:
        server = await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True)
        print(server.port, flush=True)
        await server.wait()

asyncio.run(serve())
"""


class Client:
    """One connection to the receiver."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self._connection.request(method, path, body=body, headers={"Session-Exporter": "bench"})
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {content[:300]!r}")
        return content

    def store(self, session: str, made: list[bytes]) -> None:
        """Register a session and store these bodies of it."""
        self.ask("POST", "/agents/sessions", json.dumps({"id": session}).encode())
        for body in made:
            self.ask("POST", f"/agents/sessions/{session}/events", body)

    def times_ms(self, path: str, times: int = 20) -> list[float]:
        """How long the answer took each time, the first one first."""
        took: list[float] = []
        for _ in range(times):
            start = time.perf_counter()
            self.ask("GET", path)
            took.append(time.perf_counter() - start)
        return [seconds * 1000 for seconds in took]


def bodies(seed: int, events: int) -> list[bytes]:
    """Bodies of at most 500 events that follow each other."""
    stream = EventStream(seed, ephemeral_share=0)
    lines = [stream.next_line()[:-1] for _ in range(events)]
    return [b'{"events":[' + b",".join(lines[at : at + BATCH]) + b"]}" for at in range(0, events, BATCH)]


@dataclass(frozen=True, slots=True)
class Burst:
    """Sessions stored as fast as the receiver takes them; `indexed_seconds` is how long the index took to follow."""

    events: int
    seconds: float
    cpu_seconds: float
    catch_up_seconds: float

    @property
    def stored_per_second(self) -> float:
        return self.events / self.seconds

    @property
    def indexed_per_second(self) -> float:
        return self.events / (self.seconds + self.catch_up_seconds)


@dataclass(frozen=True, slots=True)
class Served:
    """A receiver at work."""

    store: Path
    port: int
    pid: int


def rows(*, quick: bool) -> list[Row]:
    """One row per promise."""
    sessions = 500 if quick else SESSIONS
    with (
        tempfile.TemporaryDirectory(prefix="receiver-speed-") as directory,
        served(Path(directory)) as receiver,
        Sampled(receiver.pid) as sampled,
    ):
        client = Client(receiver.port)
        made = bodies(1, LARGE)
        client.store("large", made)
        catch_up(receiver.store)
        bursts = [
            store_burst(receiver, made, name, rounds=1 if quick else 4) for name in BURSTS[: 1 if quick else None]
        ]
        enough = shutil.disk_usage(directory).free >= DISK_BYTES
        fill(client, 50_000 if quick else EVENTS if enough else EVENTS_ON_A_SMALL_DISK, sessions)
        filled_catch_up = catch_up(receiver.store)
        events = newest(receiver.store)
        told = [
            *_of_bursts(bursts, filled_catch_up),
            *_of_pages(client, f"{sessions:,} sessions and {events / 1e6:.1f} M events"),
        ]
    peak = max(sampled.found)
    return [
        *told,
        Row(
            "receiver: memory (PSS, largest, all processes)",
            f"≤ {RSS_MAX_MB} MB",
            f"{peak / 1e6:.0f} MB",
            peak <= RSS_MAX_MB * 1e6,
        ),
    ]


def _of_bursts(bursts: list[Burst], filled_catch_up: float) -> list[Row]:
    late = max(filled_catch_up, *(burst.catch_up_seconds for burst in bursts))
    burst = sorted(bursts, key=lambda one: one.stored_per_second)[len(bursts) // 2]
    slowest, processor = min(one.stored_per_second for one in bursts), burst.cpu_seconds / burst.events * 1e6
    return [
        Row(
            "receiver: events stored per second, batches of 500, synced before the answer, median of bursts (slowest)",
            f"≥ {INGEST_MIN:,}",
            f"{burst.stored_per_second:,.0f} ({slowest:,.0f}), {processor:.0f} µs of CPU each",
            burst.stored_per_second >= INGEST_MIN,
            {"events": burst.events, "each": [round(one.stored_per_second) for one in bursts]},
        ),
        Row(
            "receiver: events that can be searched per second, in the same bursts",
            f"≥ {INDEX_MIN:,}",
            f"{burst.indexed_per_second:,.0f}",
            burst.indexed_per_second >= INDEX_MIN,
        ),
        Row(
            "receiver: text index caught up after a burst",
            f"≤ {CATCH_UP_MAX_SECONDS} s",
            f"{late:.1f} s",
            late <= CATCH_UP_MAX_SECONDS,
        ),
    ]


def _of_pages(client: Client, stored: str) -> list[Row]:
    searches = ("/?q=session-049", *(f"/api/v1/search?q={words}" for words in SEARCHES))
    return [
        _slowest(client, f"first pages with {stored}", PAGE_MAX_MS, PAGES),
        _slowest(client, f"a session of {LARGE:,} events opens", SESSION_MAX_MS, OF_THE_LARGE_SESSION),
        _slowest(client, f"search over {stored}", SEARCH_MAX_MS, searches),
    ]


def _slowest(client: Client, what: str, most: float, paths: tuple[str, ...]) -> Row:
    every = {path: client.times_ms(path) for path in paths}
    took = {path: statistics.median(times) for path, times in every.items()}
    slowest, first = max(took, key=lambda path: took[path]), max(times[0] for times in every.values())
    return Row(
        f"receiver: {what}, median of the slowest (slowest when asked first)",
        f"≤ {most:g} ms",
        f"{took[slowest]:.0f} ms, {slowest} ({first:.0f} ms)",
        took[slowest] <= most,
        {path: (round(took[path], 1), round(times[0], 1)) for path, times in every.items()},
    )


@contextmanager
def served(directory: Path) -> Iterator[Served]:
    """A receiver of its own process, as it is without an exporter around it."""
    store = directory / "mc.db"
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(store)], cwd=REPOSITORY, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        yield Served(store, int(process.stdout.readline()), process.pid)
    finally:
        process.kill()
        process.wait()


def store_burst(receiver: Served, made: list[bytes], name: str, rounds: int) -> Burst:
    """`rounds` sessions on each of several connections, each of all the bodies."""

    def send(number: int) -> None:
        client = Client(receiver.port)
        for turn in range(rounds):
            client.store(f"{name}-{number}-{turn}", made)

    threads = [threading.Thread(target=send, args=(number,)) for number in range(CONNECTIONS)]
    used, start = measure.cpu_seconds_in_all(receiver.pid), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    used = measure.cpu_seconds_in_all(receiver.pid) - used
    return Burst(CONNECTIONS * rounds * LARGE, seconds, used, catch_up(receiver.store))


def fill(client: Client, events: int, sessions: int) -> None:
    """Many sessions of the same size, and every one different from its neighbours."""
    variants = [bodies(seed, max(1, events // sessions)) for seed in range(VARIANTS)]
    for number in range(sessions):
        client.store(f"session-{number:05}", variants[number % VARIANTS])


def newest(store: Path) -> int:
    """The number of the last event stored."""
    with closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT max(n) FROM events").fetchone()[0])


def catch_up(store: Path, limit_seconds: float = 300) -> float:
    """How long the index takes from now until it has everything."""
    start, target = time.perf_counter(), newest(store)
    while _indexed(store) < target:
        if time.perf_counter() - start > limit_seconds:
            raise TimeoutError("the index does not catch up")
        time.sleep(0.05)
    return time.perf_counter() - start


def _indexed(store: Path) -> int:
    with closing(sqlite3.connect(path_beside(store))) as index:
        return int(index.execute("SELECT until FROM indexed").fetchone()[0])
