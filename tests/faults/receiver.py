"""One receiver for the exporter and its peers: counts events by id, and fails as it is told to.

The exporter and syslog-ng post `{"events":[…]}` to the path of the floor; rsyslog and Filebeat post to `_bulk`, where a
single event is refused in the answer's list of items, as Elasticsearch does it.
"""

import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

EVENT_ID: Final = re.compile(rb'"id": ?"([0-9a-f-]{36})"')
VERSION: Final = b'{"version":{"number":"8.1.3","build_flavor":"default"},"tagline":"You Know, for Search"}'
LICENSE: Final = b'{"license":{"uid":"x","type":"basic","status":"active"}}'
RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request with events, whole."""

    number: int
    ids: tuple[str, ...]
    size: int
    at: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What happens to it; a status of 2xx stores its events."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    lost: bool = False
    """Stored, and the connection is reset before the answer."""
    hold_seconds: float = 0.0


class Receiver:
    """`script` says what to answer to a delivery; `poison` names events that are never taken."""

    def __init__(self, listener: socket.socket) -> None:
        self.script: Callable[[Delivery], Answer] = lambda _: Answer()
        self.poison: frozenset[str] = frozenset()
        self.resets = 0
        """How many of the next bodies are cut off in the middle."""
        self.deliveries: list[Delivery] = []
        self.stored: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.port = int(listener.getsockname()[1])
        self.open(listener)

    def open(self, listener: socket.socket) -> None:
        """Serve at this socket, again after `shut`."""
        self.server = _Server(listener.getsockname(), _Handler, bind_and_activate=False)
        self.server.socket.close()
        self.server.socket = listener
        self.server.receiver = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def shut(self) -> None:
        """Refuse connections, and end those that are open."""
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.server.connections):
            _reset(connection)

    def take(self, documents: list[bytes], size: int, *, by_item: bool) -> tuple[Answer, list[bool]]:
        """Decide about a delivery; the list says which events are refused. Not `by_item`, one refuses the batch."""
        ids = [found[1].decode() if (found := EVENT_ID.search(one)) else "" for one in documents]
        with self.lock:
            delivery = Delivery(len(self.deliveries), tuple(ids), size, time.monotonic())
            self.deliveries.append(delivery)
            answer = self.script(delivery)
            refused = [one in self.poison for one in ids]
            if any(refused) and not by_item and answer.status < 300:
                answer = Answer(400)
            if answer.status < 300:
                self.stored.update(one for one, bad in zip(ids, refused, strict=True) if one and not bad)
        return answer, refused


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    receiver: Receiver

    def __init__(self, *arguments: object, **more: object) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*arguments, **more)  # type: ignore[arg-type]  # passed on as they came


def _reset(connection: socket.socket) -> None:
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    except OSError:
        return


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            self.close_connection = True

    def do_HEAD(self) -> None:
        self._send(Answer(), b"")

    def do_GET(self) -> None:
        if self.path.startswith("/agents"):
            self._send(Answer(), b"{}")
        else:
            self._send(Answer(), LICENSE if "license" in self.path else VERSION)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        receiver = self.server.receiver
        bulk = "/_bulk" in self.path
        events = bulk or self.path.endswith("/events")
        if events and receiver.resets and length > 2_000:
            receiver.resets -= 1
            self.rfile.read(length // 2)
            _reset(self.connection)
            self.close_connection = True
            return
        body = self.rfile.read(length)
        if not events:
            session = json.loads(body).get("id", "")
            self._send(Answer(), b'{"id":"%b","task_id":"%b"}' % (session.encode(), session.encode()))
            return
        answer, refused = receiver.take(_documents(body) if bulk else _events(body), length, by_item=bulk)
        time.sleep(answer.hold_seconds)
        if answer.lost:
            _reset(self.connection)
            self.close_connection = True
        elif bulk:
            operation = "create" if body.startswith(b'{"create"') or body.startswith(b'{ "create"') else "index"
            fine = answer.status < 300
            self._send(answer, _items(operation, refused) if fine else b"<html>%d</html>" % answer.status)
        else:
            self._send(answer, b"{}")

    def _send(self, answer: Answer, body: bytes) -> None:
        headers = {"Content-Length": str(len(body)), "Content-Type": "application/json", **answer.headers}
        headers["X-Elastic-Product"] = "Elasticsearch"
        lines = [f"HTTP/1.1 {answer.status} x", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        self.connection.sendall("\r\n".join(lines).encode() + body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def _events(body: bytes) -> list[bytes]:
    """The events of a body by their lines or, where they are glued with commas, by their keys."""
    decoder = json.JSONDecoder()
    text = body.decode("utf-8", "surrogateescape")
    position = text.index("[") + 1
    found: list[bytes] = []
    while position < len(text) and text[position] not in "]":
        try:
            _, end = decoder.raw_decode(text, position)
        except ValueError:
            end = text.find("\n", position) if "\n" in text[position:] else len(text)
        found.append(text[position:end].encode("utf-8", "surrogateescape"))
        position = end
        while position < len(text) and text[position] in ", \n":
            position += 1
    return found


def _documents(body: bytes) -> list[bytes]:
    """Every second line; Filebeat's documents hold the line as a text."""
    documents = [line for line in body.split(b"\n") if line][1::2]
    return [_message(one) for one in documents]


def _message(document: bytes) -> bytes:
    try:
        message = json.loads(document).get("message")
    except ValueError:
        return document
    return message.encode("utf-8", "surrogateescape") if isinstance(message, str) else document


def _items(operation: str, refused: list[bool]) -> bytes:
    bad = f'{{"{operation}":{{"_index":"x","status":400,"error":{{"type":"mapper_parsing_exception","reason":"x"}}}}}}'
    good = f'{{"{operation}":{{"_index":"x","_id":"x","status":201}}}}'
    items = ",".join(bad if one else good for one in refused)
    return f'{{"took":1,"errors":{str(any(refused)).lower()},"items":[{items}]}}'.encode()
