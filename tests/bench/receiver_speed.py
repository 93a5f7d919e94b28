"""`python -m tests.bench.receiver_speed [--events N]`: how fast the receiver stores, finds and shows.

A receiver of its own process on a store in a temporary directory, driven over HTTP on loopback: bodies of 500 events
(2.2 KB each on average), each answered after its commit is synced. Prints a line per figure with its bound.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.bench.generate import EventStream
from tests.bench.receiver import REPOSITORY

BATCH = 500
SESSIONS = 5_000
LARGE = 20_000
SERVE = """
import asyncio, sys
from exporter.missioncontrol.app import create_app
from exporter.missioncontrol.server import serve_http
from exporter.missioncontrol.store import Store

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

    def register(self, session: str) -> None:
        self.ask("POST", "/agents/sessions", json.dumps({"id": session}).encode())

    def seconds(self, path: str, times: int = 20) -> tuple[float, bytes]:
        """The median of how long the answer takes, and the last one."""
        took: list[float] = []
        content = b""
        for _ in range(times):
            start = time.perf_counter()
            content = self.ask("GET", path)
            took.append(time.perf_counter() - start)
        return statistics.median(took), content


def bodies(seed: int, events: int) -> list[bytes]:
    """Bodies of at most 500 events that follow each other."""
    stream = EventStream(seed, ephemeral_share=0)
    lines = [stream.next_line()[:-1] for _ in range(events)]
    return [b'{"events":[' + b",".join(lines[at : at + BATCH]) + b"]}" for at in range(0, events, BATCH)]


def ingest(port: int, made: list[bytes], rounds: int, connections: int) -> float:
    """Events a second of `rounds` sessions per connection, each of all the bodies."""
    total = 0
    lock = threading.Lock()

    def send(number: int) -> None:
        nonlocal total
        client = Client(port)
        for turn in range(rounds):
            session = f"ingest-{number}-{turn}"
            client.register(session)
            for body in made:
                client.ask("POST", f"/agents/sessions/{session}/events", body)
                with lock:
                    total += BATCH

    threads = [threading.Thread(target=send, args=(number,)) for number in range(connections)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return total / (time.perf_counter() - start)


def fill(client: Client, events: int) -> None:
    """Many sessions of the same size, and every one different from its neighbours."""
    each = max(1, (events - LARGE) // SESSIONS)
    variants = [bodies(seed, each) for seed in range(40)]
    for number in range(SESSIONS):
        session = f"session-{number:05}"
        client.register(session)
        for body in variants[number % len(variants)]:
            client.ask("POST", f"/agents/sessions/{session}/events", body)


def indexed(store: Path) -> int:
    import sqlite3

    with sqlite3.connect(store.with_name(f"{store.stem}-search.db")) as index:
        return int(index.execute("SELECT until FROM indexed").fetchone()[0])


def newest(store: Path) -> int:
    import sqlite3

    with sqlite3.connect(store) as database:
        return int(database.execute("SELECT max(n) FROM events").fetchone()[0])


def catch_up(store: Path, limit_seconds: float = 300) -> float:
    """How long the index takes from now until it has everything."""
    start = time.perf_counter()
    target = newest(store)
    while indexed(store) < target:
        if time.perf_counter() - start > limit_seconds:
            raise TimeoutError("the index does not catch up")
        time.sleep(0.05)
    return time.perf_counter() - start


def memory(pid: int) -> dict[str, int]:
    """Resident megabytes now and at most."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = dict(line.split(":", 1) for line in status.splitlines())
    return {name: int(found[key].split()[0]) // 1024 for name, key in (("now", "VmRSS"), ("peak", "VmHWM"))}


def cpu_seconds(pid: int) -> float:
    """Processor time of the receiver so far: what other programs on the machine do not change much."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(store: Path, port: int, pid: int, events: int) -> dict[str, Any]:
    client = Client(port)
    figures: dict[str, Any] = {}
    made = bodies(1, LARGE)
    client.register("large")
    for body in made:
        client.ask("POST", "/agents/sessions/large/events", body)
    catch_up(store)
    used = cpu_seconds(pid)
    figures["ingest_events_per_second"] = round(ingest(port, made, 4, 2))
    figures["ingest_cpu_microseconds_per_event"] = round((cpu_seconds(pid) - used) / (8 * LARGE) * 1e6, 1)
    figures["load_of_the_machine"] = os.getloadavg()[0]
    before, start = indexed(store), time.perf_counter()
    figures["index_catch_up_seconds_after_160k"] = round(catch_up(store), 2)
    behind, took = newest(store) - before, time.perf_counter() - start
    figures["index_events_per_second"] = round(behind / took) if behind > 5000 else "kept up"
    figures["memory_mb_after_ingest"] = memory(pid)
    fill(client, events)
    figures["fill_catch_up_seconds"] = round(catch_up(store), 2)
    figures["events"] = newest(store)
    for name, path in {
        "first_page": "/api/v1/sessions?limit=100",
        "filtered_page": "/api/v1/sessions?q=session-049&limit=100",
        "page_of_html": "/",
        "large_session": "/api/v1/sessions/large",
        "large_session_window": "/api/v1/sessions/large/events?limit=500",
        "large_session_tree": "/api/v1/sessions/large/tree",
        "feed": "/api/v1/notifications",
        "search_common": "/api/v1/search?q=session",
        "search_two": "/api/v1/search?q=password+handbook",
        "search_prefix": "/api/v1/search?q=re",
        "search_identifier": "/api/v1/search?q=line_number",
        "search_rare": "/api/v1/search?q=zzznothing",
        "search_of_session": "/api/v1/search?q=resumed&session=session-00001",
    }.items():
        took, _ = client.seconds(path)
        figures[f"{name}_ms"] = round(took * 1000, 1)
    figures["memory_mb"] = memory(pid)
    start = time.perf_counter()
    client.ask("DELETE", "/api/v1/sessions/large")
    figures["delete_large_session_seconds"] = round(time.perf_counter() - start, 2)
    figures["memory_mb_after_delete"] = memory(pid)
    figures["store_mb"] = {path.name: path.stat().st_size >> 20 for path in sorted(store.parent.iterdir())}
    return figures


def main() -> None:
    """Prints the figures as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000, help="events stored when pages are measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="receiver-speed-") as directory:
        store = Path(directory) / "mc.db"
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(store)], cwd=REPOSITORY, stdout=subprocess.PIPE, env=dict(os.environ)
        )
        try:
            assert process.stdout is not None
            figures = measure(store, int(process.stdout.readline()), process.pid, options.events)
        finally:
            process.kill()
            process.wait()
    for name, value in figures.items():
        print(json.dumps({name: value}))


if __name__ == "__main__":
    main()
