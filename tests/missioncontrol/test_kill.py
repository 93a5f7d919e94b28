"""Killing the receiver at any moment loses nothing that it acknowledged, and stores nothing twice."""

import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from exporter.core.events import digest
from exporter.missioncontrol.search.search import SearchIndex
from exporter.missioncontrol.search.search_query import numbers, understand
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio

KILLS = 100
BATCH = 10
EVENTS = 12_000
LOOKED_FOR_AFTER = (30, KILLS)
SERVE = """
import asyncio, os, sys
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

async def serve():
    with Store(sys.argv[1]) as store:
        server = await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True)
        print(os.getpid(), server.url, flush=True)
        await server.wait()

for _ in sys.stdin:
    child = os.fork()
    if not child:
        asyncio.run(serve())
        os._exit(0)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


class Receivers:
    """Receivers at one store, one after the other: children of a process that has loaded the program once."""

    def __init__(self, parent: asyncio.subprocess.Process) -> None:
        assert parent.stdin is not None and parent.stdout is not None
        self._say, self._said, self._parent = parent.stdin, parent.stdout, parent

    @classmethod
    async def open(cls, store_path: Path) -> "Receivers":
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(sys.executable, "-c", SERVE, str(store_path), stdin=pipe, stdout=pipe)
        )

    async def start(self) -> tuple[int, str]:
        """Start the next one; its process and its address."""
        self._say.write(b"\n")
        process, url = (await self._said.readline()).decode().split()
        return int(process), url

    async def kill(self, process: int) -> None:
        """Kill the one that runs, and wait for its end."""
        os.kill(process, signal.SIGKILL)
        assert await self._said.readline() == b"ended\n"

    async def close(self) -> None:
        self._say.close()
        assert await self._parent.wait() == 0


class Uploader:
    """Sends one session's events in order, again from what was acknowledged after each loss."""

    def __init__(self, session: str, make_event: Callable[..., bytes]) -> None:
        self.session = session
        self.events = [make_event(f"{session}-{n}", data={"text": "marked " + "x" * (n % 2000)}) for n in range(EVENTS)]
        self.expected: list[tuple[str, str]] = []
        self.digest = digest.EMPTY
        self.acknowledged = 0
        self.kill_at = 0
        self.reached = asyncio.Event()

    def expect(self, stored: int) -> None:
        """Work out what a receiver must hold that has so many events, never fewer than the last time."""
        added = [(json.loads(raw)["id"], sha256(raw)) for raw in self.events[len(self.expected) : stored]]
        self.expected += [(id, hashed.hexdigest()) for id, hashed in added]
        self.digest = digest.add(self.digest, (digest.item(id, hashed.digest()) for id, hashed in added))

    async def send(self, url: str) -> None:
        """Send until the receiver goes away."""
        # Without a timeout, which on a busy machine would be taken for the end of a receiver that only is slow.
        # No certificates are read for it, which takes longer than some of these lives.
        declared = {"Session-Exporter": "1"}
        async with httpx.AsyncClient(base_url=url, headers=declared, timeout=None, verify=False) as client:
            try:
                await client.post("/agents/sessions", json={"id": self.session})
                while self.acknowledged < len(self.events):
                    some = self.events[self.acknowledged : self.acknowledged + BATCH]
                    body = b'{"events":[' + b",".join(some) + b"]}"
                    answer = await client.post(f"/agents/sessions/{self.session}/events", content=body)
                    assert answer.status_code == 200
                    self.acknowledged += len(some)
                    if self.acknowledged >= self.kill_at:
                        self.reached.set()
                    assert answer.json()["ack"]["count"] == self.acknowledged
            except httpx.TransportError:
                return


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_killed_under_load_it_keeps_all_it_acknowledged(
    store_path: Path, make_event: Callable[..., bytes], record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(20261118)
    uploaders = [Uploader(f"s{number}", make_event) for number in range(4)]
    receivers = await Receivers.open(store_path)
    for kill in range(1, KILLS + 1):
        process, url = await receivers.start()
        watched = chance.choice(uploaders)
        watched.kill_at = watched.acknowledged + chance.randrange(BATCH, 16 * BATCH)
        watched.reached.clear()
        sending = asyncio.gather(*(uploader.send(url) for uploader in uploaders))
        await watched.reached.wait()
        await asyncio.sleep(chance.random() / 100)
        await receivers.kill(process)
        await sending
        check(store_path, uploaders)
        if kill in LOOKED_FOR_AFTER:
            everything_is_found_once(store_path, uploaders)
    await receivers.close()
    record_property(f"{KILLS} kills: events acknowledged", sum(uploader.acknowledged for uploader in uploaders))


def check(store_path: Path, uploaders: list[Uploader]) -> None:
    with Store(store_path) as store:
        assert store.notices == []
        for uploader in uploaders:
            session = uploader.session
            held = store.do(lambda database, id=session: queries.upload_state(database, id, with_items=True))  # type: ignore[misc]
            assert held.items is not None
            stored = len(held.items)
            assert uploader.acknowledged <= stored <= uploader.acknowledged + BATCH
            uploader.expect(stored)
            assert held.items == uploader.expected
            assert held.ack.digest == digest.to_hex(uploader.digest)
            # The lost answer's batch is there whole, so the uploader may go on behind it.
            assert stored in (uploader.acknowledged, uploader.acknowledged + BATCH)
            uploader.acknowledged = stored


def everything_is_found_once(store_path: Path, uploaders: list[Uploader]) -> None:
    """The index, which was killed as often, holds each event once and no other."""
    with Store(store_path) as store:
        search = SearchIndex(store)
        rows = store.do(lambda database: database.execute("SELECT n FROM events ORDER BY n DESC").fetchall())
        stored = [n for (n,) in rows]
        assert search.catch_up(stored[0], 30)
        query = understand("marked")
        assert query is not None
        assert search.read(lambda index: list(numbers(index, query, None))) == stored
        assert len(stored) == sum(uploader.acknowledged for uploader in uploaders)
