"""The counting receiver that every peer delivers to: a process of its own, cheap, and exact about what arrived.

A connection is a thread. Bodies are read straight into one arena that is touched beforehand, so that nothing is copied
or allocated while a peer is being measured; a search for the end of an envelope counts events as they come, which tells
when the last one is here. Only then, after the measurement, are all ids taken from the kept bodies and compared.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bench.generate import digest_of_ids

ID_TAIL = b'","timestamp":"'
"""Follows the id of every generated event and, unescaped, is nowhere else in it."""
EVENT_ID = re.compile(rb'"id":"([0-9a-f-]{36})","timestamp":"')
CAPABILITIES = {"encodings": [], "max_body": 4 << 20, "max_events": 5000, "max_event_bytes": 16 << 20}
REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Summary:
    """What arrived since the last reset; times are `time.monotonic()`, comparable between processes."""

    complete: bool
    events: int
    distinct: int
    ids_digest: str
    requests: int
    body_bytes: int
    first_at: float
    last_at: float
    cpu_seconds: float


class Receiver:
    """Runs the receiver as a child process: `with Receiver() as receiver: …`."""

    def __init__(self, *, arena_bytes: int = 700_000_000, floor: bool = False) -> None:
        command = [sys.executable, "-m", "tests.bench.receiver", "--arena-bytes", str(arena_bytes)]
        self._process = subprocess.Popen(command + ["--floor"] * floor, cwd=REPOSITORY, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}/agents"

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()

    def reset(self, expected: int) -> None:
        """Forgets everything; the run is complete once `expected` different events have come."""
        self._control("POST", f"/bench/reset?{expected}")

    def summary(self, timeout_seconds: float, check: Callable[[], None] = lambda: None) -> Summary:
        """Waits until the run is complete, at most `timeout_seconds`, and says what came.

        `check` is called about twice a second; what it raises ends the waiting.
        """
        deadline = time.monotonic() + timeout_seconds
        while not self._control("POST", "/bench/wait?0.5") and (timeout_seconds := deadline - time.monotonic()) > 0:
            check()
        timeout_seconds = max(0.0, timeout_seconds)
        return Summary(**self._control("POST", f"/bench/summary?{timeout_seconds}", timeout_seconds + 30))

    def _control(self, method: str, path: str, timeout_seconds: float = 10) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_seconds)
        try:
            connection.request(method, path, body=b"")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


class Tally:
    """Everything that arrived since the last reset; shared by the threads of all connections."""

    def __init__(self, arena_bytes: int) -> None:
        self.arena = bytearray(arena_bytes)
        for page in range(0, arena_bytes, 4096):
            self.arena[page] = 1
        self._lock = threading.Lock()
        self._reached = threading.Condition(self._lock)
        self.reset(0)

    def reset(self, expected: int) -> None:
        with self._lock:
            self._expected = self._threshold = expected
            self._used = self._count = self._requests = self._bytes = 0
            self._first_at = self._last_at = 0.0
            self._bodies: list[tuple[int, int]] = []
            self._spilled_ids: set[str] = set()
            self._cpu = _cpu_seconds()

    def reserve(self, length: int) -> int | None:
        """The place in the arena for a body, or None when it is full."""
        with self._lock:
            if self._used + length > len(self.arena):
                return None
            self._used += length
            return self._used - length

    def add(self, started: float, length: int, place: int | None, spilled: bytes) -> None:
        """Counts one events body that has been answered just now."""
        now = time.monotonic()
        if place is None:
            ids = EVENT_ID.findall(spilled)
            count = len(ids)
        else:
            count = self.arena.count(ID_TAIL, place, place + length)
        with self._lock:
            if place is None:
                self._spilled_ids.update(item.decode() for item in ids)
            else:
                self._bodies.append((place, place + length))
            self._requests += 1
            self._bytes += length
            self._count += count
            self._first_at = self._first_at or started
            self._last_at = now
            if self._count >= self._threshold:
                self._reached.notify_all()

    def wait(self, timeout_seconds: float) -> bool:
        """Whether enough events came, duplicates not told apart; cheap enough to ask while a peer is measured."""
        with self._lock:
            return self._reached.wait_for(lambda: self._count >= self._threshold, timeout_seconds)

    def summary(self, timeout_seconds: float) -> Summary:
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            while True:
                reached = self._reached.wait_for(
                    lambda: self._count >= self._threshold, max(0.0, deadline - time.monotonic())
                )
                cpu = _cpu_seconds() - self._cpu
                ids = self._ids()
                if not reached or len(ids) >= self._expected:
                    break
                self._threshold = self._count + self._expected - len(ids)
            return Summary(
                len(ids) == self._expected,
                self._count,
                len(ids),
                digest_of_ids(ids),
                self._requests,
                self._bytes,
                self._first_at,
                self._last_at,
                cpu,
            )

    def _ids(self) -> set[str]:
        kept = (EVENT_ID.findall(self.arena, start, end) for start, end in self._bodies)
        return self._spilled_ids | {item.decode() for ids in kept for item in ids}


class Connection:
    """One keep-alive connection, served until the peer closes it."""

    def __init__(self, peer: socket.socket, tally: Tally, capabilities: dict[str, object] | None) -> None:
        self._peer, self._tally, self._capabilities = peer, tally, capabilities
        self._pending = bytearray()

    def serve(self) -> None:
        """Never raises for a peer that goes away."""
        try:
            while self._exchange():
                pass
        except OSError:
            pass
        finally:
            self._peer.close()

    def _exchange(self) -> bool:
        while (end := self._pending.find(b"\r\n\r\n")) < 0:
            chunk = self._peer.recv(65536)
            if not chunk:
                return False
            self._pending += chunk
        started = time.monotonic()
        head = bytes(self._pending[:end])
        del self._pending[: end + 4]
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
        fields = {name.lower(): value.strip() for name, _, value in lines}
        if b"expect" in fields:
            self._peer.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if b"transfer-encoding" in fields:
            self._answer({"error": "a Content-Length is needed"}, b"411 Length Required")
            return False
        length = int(fields.get(b"content-length", b"0"))
        if method == "POST" and target.endswith("/events"):
            self._receive_events(started, length)
        else:
            self._answer(self._other(method, target, bytes(self._receive(length))))
        return True

    def _receive_events(self, started: float, length: int) -> None:
        place = self._tally.reserve(length)
        if place is None:
            spilled = bytes(self._receive(length))
            self._answer({})
            self._tally.add(started, length, None, spilled)
        else:
            with memoryview(self._tally.arena) as arena, arena[place : place + length] as room:
                self._receive_into(room)
            self._answer({})
            self._tally.add(started, length, place, b"")

    def _receive(self, length: int) -> bytearray:
        body = bytearray(length)
        with memoryview(body) as room:
            self._receive_into(room)
        return body

    def _receive_into(self, room: memoryview) -> None:
        have = min(len(self._pending), len(room))
        room[:have] = self._pending[:have]
        del self._pending[:have]
        while have < len(room):
            got = self._peer.recv_into(room[have:])
            if not got:
                raise ConnectionResetError
            have += got

    def _answer(self, value: object, status: bytes = b"200 OK") -> None:
        body = json.dumps(value).encode()
        self._peer.sendall(
            b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)
        )

    def _other(self, method: str, target: str, body: bytes) -> object:
        path, _, argument = target.partition("?")
        match path:
            case "/bench/reset":
                self._tally.reset(int(argument))
                return {}
            case "/bench/wait":
                return self._tally.wait(float(argument))
            case "/bench/summary":
                return asdict(self._tally.summary(float(argument)))
        wanted = json.loads(body)["id"] if method == "POST" and path.endswith("/sessions") else path.rpartition("/")[2]
        answer: dict[str, object] = {"id": wanted, "task_id": wanted}
        return answer | ({"capabilities": self._capabilities} if self._capabilities else {})


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Prints the port it listens on and serves until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arena-bytes", type=int, default=700_000_000)
    parser.add_argument("--floor", action="store_true", help="offer no capability, as a plain Mission Control")
    options = parser.parse_args()
    tally = Tally(options.arena_bytes)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    while True:
        peer, _ = listener.accept()
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(peer, tally, None if options.floor else dict(CAPABILITIES))
        threading.Thread(target=connection.serve, daemon=True).start()


if __name__ == "__main__":
    main()
