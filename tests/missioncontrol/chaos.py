"""Receivers on one database while processes are killed and the server restarts, and what must be true afterwards.

Uploaders use the exporter's own sink. Of each session several send the whole file, in batches that overlap, each to any
receiver, and go on behind what was accepted, as a lane does.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

import psycopg

from exporter.core.delivery.verdict import Accepted
from exporter.core.events import digest
from exporter.missioncontrol.store import queries
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.sinks.http_transport import HttpTransport
from exporter.sinks.mission_control import MissionControlSink
from exporter.sinks.sink import Registered
from exporter.sinks.transport import NoAnswerError
from tests.missioncontrol.postgres import Server

CONNECTIONS: Final = 12
BATCH_MAX: Final = 40
SECONDS_MAX: Final = 900.0
SERVE: Final = """
import asyncio, os, signal, sys
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.postgresql.database import PostgresDatabase
from exporter.missioncontrol.store.postgresql.store import PostgresStore

url, is_locked = sys.argv[1], sys.argv[2] == "locked"
if not is_locked:
    PostgresDatabase.lock_session = lambda self, session_id: None

async def serve(port):
    with PostgresStore(url, may_be_away=True) as store:
        server = await serve_http(create_app(store), "127.0.0.1", port, explicit_port=True)
        print(os.getpid(), server.port, flush=True)
        await server.wait()

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    if not os.fork():
        asyncio.run(serve(int(line)))
        os._exit(0)
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much there is, and how much goes wrong meanwhile."""

    sessions: int = 5
    events: int = 240
    uploaders: int = 3
    receivers: int = 3
    faults: int = 10
    seed: int = 20261119
    is_locked: bool = True


@dataclass(slots=True)
class Outcome:
    """What was acknowledged and done, and what is wrong of what is stored."""

    acknowledged: int = 0
    refused: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Receivers:
    """Receivers on ports of their own: children of a process that has loaded the program once."""

    def __init__(self, url: str, is_locked: bool) -> None:
        command = [sys.executable, "-c", SERVE, url, "locked" if is_locked else "unlocked"]
        self._parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes: dict[int, int] = {}

    def start(self, port: int = 0) -> int:
        """Start one, or the one of this port again; return the port when it listens."""
        assert self._parent.stdin is not None and self._parent.stdout is not None
        self._parent.stdin.write(f"{port}\n")
        self._parent.stdin.flush()
        process, port = map(int, self._parent.stdout.readline().split())
        self.processes[port] = process
        return port

    def kill(self, port: int) -> None:
        """Kill one."""
        os.kill(self.processes[port], signal.SIGKILL)

    def close(self) -> None:
        """Kill all."""
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._parent.communicate()


def lines_of(session: str, events: int) -> list[tuple[str, bytes]]:
    """Return the ids and lines of a session's file; each names the line before it."""
    lines: list[tuple[str, bytes]] = []
    for number in range(events):
        parent = lines[-1][0] if lines else None
        at = f"2026-11-19T10:{number // 60 % 60:02}:{number % 60:02}.{number // 3600:03}Z"
        data = {"content": f"{session} {number} " + "x" * (number * 37 % 1500)}
        told = {"type": "user.message", "id": f"{session}-{number}", "parentId": parent, "timestamp": at, "data": data}
        lines.append((f"{session}-{number}", json.dumps(told).encode()))
    return lines


class Uploader:
    """Sends one session's file, from the mark or some lines before it, until all was accepted.

    One that is alone repeats nothing that was accepted, so that what is lost then stays lost. One that is scattered
    sends its parts in any order, so that two receivers store different events at once: where all go on behind the same
    mark, the unique index alone makes one of two transactions begin again.
    """

    def __init__(
        self, session: str, lines: list[tuple[str, bytes]], chance: random.Random, *, is_alone: bool, is_scattered: bool
    ) -> None:
        self.session, self.lines, self.chance, self._is_alone = session, lines, chance, is_alone
        self.mark = 0
        self._left = list(range(0, len(lines), BATCH_MAX)) if is_scattered else None
        chance.shuffle(self._left or [])

    async def send(self, sinks: list[MissionControlSink], outcome: Outcome) -> None:
        """Send on to any receiver; after a failure to another one."""
        while self.mark < len(self.lines):
            sink = self.chance.choice(sinks)
            try:
                registered = await sink.register(self.session, None)
                while isinstance(registered, Registered) and self.mark < len(self.lines):
                    if not await self._send_batch(sink, registered.remote_id):
                        outcome.refused += 1
                        break
                    outcome.acknowledged += 1
            except NoAnswerError:
                outcome.refused += 1
            await asyncio.sleep(self.chance.random() / 20)

    async def _send_batch(self, sink: MissionControlSink, remote_id: str) -> bool:
        start = self.mark if self._is_alone else max(0, self.mark - self.chance.randrange(BATCH_MAX))
        end = min(len(self.lines), self.mark + self.chance.randrange(1, BATCH_MAX))
        if self._left is not None:
            start = self._left[-1]
            end = min(len(self.lines), start + BATCH_MAX)
        ids, lines = zip(*self.lines[start:end], strict=True)
        sent = await sink.send(remote_id, ids, lines)
        if not isinstance(sent.verdict, Accepted):
            return False
        if self._left is not None:
            self._left.pop()
            self.mark += end - start
        else:
            self.mark = max(self.mark, end)
        return True


async def play(server: Server, url: str, plan: Plan) -> Outcome:
    """Let uploaders send everything while the plan's faults happen, and compare what is stored with the files."""
    outcome, chance, begun = Outcome(), random.Random(plan.seed), time.monotonic()
    files = {f"s{number}": lines_of(f"s{number}", plan.events) for number in range(plan.sessions)}
    receivers = Receivers(url, plan.is_locked)
    ports = [receivers.start() for _ in range(plan.receivers)]
    uploaders = _uploaders(plan, files)
    try:
        async with asyncio.timeout(SECONDS_MAX), _transports(ports) as transports:
            doing = asyncio.create_task(_go_wrong(server, receivers, plan, uploaders, chance, outcome))
            await asyncio.gather(*(one.send(_sinks(transports), outcome) for one in uploaders))
            await doing
    finally:
        receivers.close()
    outcome.seconds = time.monotonic() - begun
    outcome.wrong = wrong(url, files)
    return outcome


def _uploaders(plan: Plan, files: dict[str, list[tuple[str, bytes]]]) -> list[Uploader]:
    """Return one uploader for every third session, and several for each of the others."""
    made = []
    for place, (session, lines) in enumerate(files.items()):
        is_alone = place % 3 == 0 and plan.is_locked
        for number in range(1 if is_alone else plan.uploaders):
            chance = random.Random(f"{plan.seed} {session} {number}")
            made.append(Uploader(session, lines, chance, is_alone=is_alone, is_scattered=number % 3 == 2))
    return made


@contextlib.asynccontextmanager
async def _transports(ports: list[int]) -> AsyncIterator[dict[str, HttpTransport]]:
    urls = [f"http://127.0.0.1:{port}/agents" for port in ports]
    transports = {url: HttpTransport(url, connections=CONNECTIONS, timeout_seconds=30) for url in urls}
    yield transports
    for transport in transports.values():
        await transport.close()


def _sinks(transports: dict[str, HttpTransport]) -> list[MissionControlSink]:
    return [MissionControlSink("mc", url, transport, token=lambda: None) for url, transport in transports.items()]


async def _go_wrong(
    server: Server, receivers: Receivers, plan: Plan, uploaders: list[Uploader], chance: random.Random, outcome: Outcome
) -> None:
    """Do one thing after the other, spread over the progress of the uploaders."""
    total = sum(len(one.lines) for one in uploaders)
    kinds = ["receiver killed", "backend ended", "backend killed", "server restarted", "server killed"]
    for number in range(plan.faults):
        due = total * (number + 1) // (plan.faults + 2)
        while sum(one.mark for one in uploaders) < due:  # noqa: ASYNC110  it is a number that grows
            await asyncio.sleep(0.01)
        kind = kinds[number] if number < len(kinds) else chance.choice([*kinds, "receiver killed", "receiver killed"])
        outcome.faults[kind] += 1
        await asyncio.to_thread(_do, kind, server, receivers, chance)


def _do(kind: str, server: Server, receivers: Receivers, chance: random.Random) -> None:
    if kind == "receiver killed":
        port = chance.choice(list(receivers.processes))
        receivers.kill(port)
        receivers.start(port)
    elif kind.startswith("server"):
        server.stop() if kind == "server restarted" else server.kill()
        server.start()
    else:
        with psycopg.connect(server.url(), autocommit=True) as connection:
            working = "SELECT pid FROM pg_stat_activity WHERE application_name = 'exporter-mission-control'"
            processes = [process for (process,) in connection.execute(working)]
            process = chance.choice(processes)
            if kind == "backend ended":
                connection.execute("SELECT pg_terminate_backend(%s)", (process,))
            else:  # the server then ends all others too, and recovers
                os.kill(process, signal.SIGKILL)


def wrong(url: str, files: dict[str, list[tuple[str, bytes]]]) -> list[str]:
    """Return what of the stored sessions is not as in the files, and which events are stored twice."""
    found: list[str] = []
    with _opened(url) as store:
        for session, lines in files.items():
            expected = [(id, sha256(line).hexdigest()) for id, line in lines]
            held = store.read_now(lambda database, id=session: queries.upload_state(database, id, with_items=True))  # type: ignore[misc]
            assert held.items is not None
            total = digest.total((id, sha256(line).digest()) for id, line in lines)
            told = {"count": held.ack.count == len(lines), "digest": held.ack.digest == total}
            ids, here = [id for id, _ in expected], [id for id, _ in held.items]
            told |= {"order": here == ids, "bytes": sorted(held.items) == sorted(expected)}
            told |= {"lost": not set(ids) - set(here), "twice": len(set(here)) == len(here)}
            found += [f"{session}: {name}" for name, is_right in told.items() if not is_right]
        twice = (
            "SELECT count(*) FROM (SELECT 1 FROM events WHERE hidden = 0 GROUP BY session, id HAVING count(*) > 1) AS t"
        )
        ((number,),) = store.read_now(lambda database: database.execute(twice).fetchall())
        found += [f"{number} events are stored twice"] if number else []
    return found


def _opened(url: str) -> PostgresStore:
    """Open the store, which may be recovering."""
    end = time.monotonic() + 60
    while True:
        try:
            return PostgresStore(url)
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
