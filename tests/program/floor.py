"""A Mission Control that speaks only the floor of the wire, counts what it is sent, and fails when it is told to."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import msgspec

from tests.program.waiting import until

PREFIX: Final = "mc-"
"""What this receiver puts before a session's own id: the returned id is the one to use from then on."""


class _Body(msgspec.Struct):
    events: list[msgspec.Raw]


class _Registration(msgspec.Struct):
    id: str


class _Id(msgspec.Struct):
    id: str


@dataclass(frozen=True, slots=True)
class Post:
    """One events POST whose body came in whole; `run` is the number of the exporter's run it belongs to."""

    session: str
    ids: tuple[str, ...]
    run: int


@dataclass(frozen=True, slots=True)
class Reply:
    """What to answer; only a 2xx stores what came in."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    hold: bool = False
    """The answer waits until `Floor.release`."""

    def __post_init__(self) -> None:
        assert 200 <= self.status < 600


GOOD: Final = Reply()


class Floor:
    """What has come in, by session; `answer` decides about every events POST before it is stored."""

    def __init__(self, *, keep_bytes: bool = True, port: int = 0) -> None:
        self.answer: Callable[[Post], Reply] = lambda _: GOOD
        self.register: Callable[[], Reply] = lambda: GOOD
        self.run = 0
        self.posts: list[Post] = []
        self.stored: dict[str, dict[str, bytes]] = {}
        self.times: dict[str, Counter[str]] = {}
        self.token: str | None = None
        self.keep_bytes = keep_bytes
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.server = _Server(("127.0.0.1", port), _Handler)
        self.server.floor = self
        self.port: int = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/agents"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        """Stop listening and let go of every held answer."""
        self.release()
        self.server.shutdown()
        self.server.server_close()

    def release(self) -> None:
        """Let every held answer, and all that follow, go out."""
        self.released.set()

    def take(self, session: str, body: bytes, run: int) -> Reply:
        """Count what came in, decide what to answer, and store it when that is a 2xx."""
        try:
            lines = [bytes(raw) for raw in msgspec.json.decode(body, type=_Body).events]
            ids = tuple(msgspec.json.decode(line, type=_Id).id for line in lines)
        except (msgspec.MsgspecError, RecursionError):
            lines, ids = _sliced(body)
        with self.lock:
            post = Post(session, ids, run)
            self.posts.append(post)
            reply = self.answer(post)
            if reply.status < 300:
                stored = self.stored.setdefault(session, {})
                for one, line in zip(ids, lines, strict=True):
                    stored.setdefault(one, line if self.keep_bytes else b"")
                self.times.setdefault(session, Counter()).update(ids)
        return reply

    def lines(self, session: str) -> list[bytes]:
        """What is stored of a session, in the order of arrival."""
        with self.lock:
            return list(self.stored.get(session, {}).values())

    def count(self, session: str) -> int:
        """How many distinct events are stored of a session."""
        return len(self.stored.get(session, ()))

    def repeated(self) -> int:
        """How many events were accepted again after they had been accepted."""
        with self.lock:
            return sum(times - 1 for counter in self.times.values() for times in counter.values())

    def wait_for(self, session: str, wanted: int | Sequence[str]) -> None:
        """Wait until so many distinct events, or all of these ids, are stored of the session."""

        def arrived() -> bool:
            if isinstance(wanted, int):
                return self.count(session) >= wanted
            with self.lock:
                stored = self.stored.get(session, {})
                return all(one in stored for one in reversed(wanted))

        number = wanted if isinstance(wanted, int) else len(wanted)
        until(arrived, f"{number} events of {session} at the floor receiver")

    def wait_for_post(self, number: int = 1) -> None:
        """Wait until so many events POSTs have come in."""
        until(lambda: len(self.posts) >= number, f"{number} posts at the floor receiver")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    floor: Floor


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.run = self.server.floor.run

    def do_GET(self) -> None:
        session = self.path.split("/")[3]
        if self.path.endswith("/commands"):
            self._send(Reply(body=b'{"commands":[]}'))
        else:
            self._send(Reply(body=f'{{"id":"{session}","task_id":"{session}"}}'.encode()))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        floor = self.server.floor
        if floor.token is not None and self.headers["Authorization"] != f"Bearer {floor.token}":
            self._send(Reply(401))
        elif self.path == "/agents/sessions":
            self._register(floor.register(), body)
        elif self.path.endswith("/events"):
            reply = floor.take(self.path.split("/")[3].removeprefix(PREFIX), body, self.run)
            if reply.hold:
                floor.released.wait(60)
            self._send(reply)
        else:
            self._send(Reply(404))

    def _register(self, reply: Reply, body: bytes) -> None:
        if reply.status != 200:
            self._send(reply)
            return
        session = PREFIX + msgspec.json.decode(body, type=_Registration).id
        self._send(Reply(body=f'{{"id":"{session}","task_id":"{session}"}}'.encode()))

    def _send(self, reply: Reply) -> None:
        lines = [f"HTTP/1.1 {reply.status} x", f"Content-Length: {len(reply.body)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in reply.headers.items()]
        try:
            self.connection.sendall("\r\n".join([*lines, "", ""]).encode() + reply.body)
        except OSError:
            self.close_connection = True

    def handle(self) -> None:
        # A client that is killed resets its connections; that is what these tests are about.
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{\]}]')
_EVENT_DEPTH: Final = 3


def _sliced(body: bytes) -> tuple[list[bytes], tuple[str, ...]]:
    """The events of a body and their ids by brackets and quotes alone, for JSON that a strict reader refuses."""
    lines: list[bytes] = []
    ids: list[str] = []
    depth = start = 0
    is_id = False
    for token in _TOKEN.finditer(body):
        if token[0] in b"{[":
            depth += 1
            start = token.start() if depth == _EVENT_DEPTH else start
        elif token[0] in b"}]":
            depth -= 1
            if depth == _EVENT_DEPTH - 1:
                lines.append(body[start : token.end()])
        elif is_id:
            ids.append(token[0][1:-1].decode())
        is_id = depth == _EVENT_DEPTH and token[0] == b'"id"' and body[token.end() : token.end() + 1] == b":"
    return lines, tuple(ids)


@contextmanager
def floor(*, keep_bytes: bool = True) -> Iterator[Floor]:
    """A floor receiver that is gone after the block."""
    receiver = Floor(keep_bytes=keep_bytes)
    try:
        yield receiver
    finally:
        receiver.close()
