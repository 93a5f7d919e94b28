"""Receivers that take every request down: the floor of the wire, a proxy before a real one, OTLP over HTTP and gRPC."""

import gzip
import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # comes without types
import zstandard

_LEFT_OUT: Final = frozenset({"host", "content-length", "connection", "accept-encoding", "transfer-encoding"})
_OF_ANSWERS: Final = ("content-type", "session-exporter-store", "retry-after")
_HOP: Final = frozenset({"content-length", "connection", "transfer-encoding", "date", "server"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What a recorder answers."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"{}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, its body unpacked, and what it was answered."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    answer: Answer

    def written(self) -> bytes:
        """All of it as bytes that can be compared."""
        head = [f"{self.method} {self.path}", *(f"{name}: {value}" for name, value in sorted(self.headers.items()))]
        told = [f"{name}: {self.answer.headers[name]}" for name in _OF_ANSWERS if name in self.answer.headers]
        parts = ["\n".join(head).encode(), self.body, "\n".join([f"HTTP {self.answer.status}", *told]).encode()]
        return b"\n\n".join([*parts, self.answer.body]) + b"\n\n"


class Recorder:
    """An HTTP server on a fixed port; `answer` decides and may be replaced; what came in is in `taken`."""

    def __init__(self, port: int, answer: Callable[[str, str, Mapping[str, str], bytes, bytes], Answer]) -> None:
        self.taken: list[Exchange] = []
        self.lock = threading.Lock()
        self.answer = answer
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.recorder = self
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def take(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Answer:
        """Answer a request and take it down."""
        body = unpacked(raw, headers.get("content-encoding"))
        answer = self.answer(method, path, headers, body, raw)
        kept = {name: value for name, value in headers.items() if name not in _LEFT_OUT}
        with self.lock:
            self.taken.append(Exchange(method, path, kept, body, answer))
        return answer

    def clear(self) -> list[Exchange]:
        """Return what was taken so far, and forget it."""
        with self.lock:
            taken, self.taken = self.taken, []
        return taken

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    recorder: Recorder

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def _handle(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        answer = self.server.recorder.take(self.command, self.path, headers, body)
        self.send_response_only(answer.status)
        for name, value in {**answer.headers, "content-length": str(len(answer.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815  names of the library

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def unpacked(body: bytes, encoding: str | None) -> bytes:
    """A body without its compression."""
    if encoding == "gzip":
        return gzip.decompress(body)
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(body)
    return body


@contextmanager
def floor(port: int, *, refuse: Callable[[str, bytes], Answer | None] | None = None) -> Iterator[Recorder]:
    """A Mission Control that speaks the floor of the wire; `refuse` may answer an events POST in its place."""

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes, raw: bytes) -> Answer:
        kind = {"content-type": "application/json"}
        parts = path.split("/")
        if method == "POST" and parts[2:] == ["sessions"]:
            named = f"mc-{json.loads(body)['id']}"
            return Answer(200, kind, json.dumps({"id": named, "task_id": named}).encode())
        if method == "POST" and parts[-1] == "events":
            return (refuse and refuse(parts[3], body)) or Answer(200, kind)
        if method == "GET":
            return Answer(200, kind, json.dumps({"id": parts[3], "task_id": parts[3]}).encode())
        return Answer(404, kind)

    with closing(Recorder(port, answer)) as recorder:
        yield recorder


@contextmanager
def proxy(
    port: int, upstream: int, *, refuse: Callable[[str, bytes], Answer | None] | None = None
) -> Iterator[Recorder]:
    """A proxy before a real receiver: its answers are passed on, and taken down too."""

    def answer(method: str, path: str, headers: Mapping[str, str], body: bytes, raw: bytes) -> Answer:
        if refuse is not None and path.endswith("/events") and (instead := refuse(path.split("/")[3], body)):
            return instead
        connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=30)
        try:
            sent = {name: value for name, value in headers.items() if name not in ("host", "connection")}
            connection.request(method, path, body=raw or None, headers=sent)
            told = connection.getresponse()
            content = told.read()
            passed = {name.lower(): value for name, value in told.getheaders() if name.lower() not in _HOP}
            return Answer(told.status, passed, content)
        except OSError:
            return Answer(503, {}, b"")
        finally:
            connection.close()

    with closing(Recorder(port, answer)) as recorder:
        yield recorder


@contextmanager
def closing(recorder: Recorder) -> Iterator[Recorder]:
    """Close a recorder after the block."""
    try:
        yield recorder
    finally:
        recorder.close()


@contextmanager
def otlp_http(port: int) -> Iterator[Recorder]:
    """An OTLP endpoint over HTTP that accepts everything; an empty body is a whole answer in protobuf."""
    with closing(Recorder(port, lambda *_: Answer(200, {"content-type": "application/x-protobuf"}, b""))) as recorder:
        yield recorder


@contextmanager
def otlp_grpc(first_port: int, count: int) -> Iterator[list[list[tuple[str, dict[str, str], bytes]]]]:
    """So many OTLP endpoints over gRPC, as its addresses have no path; each has a list of method, headers and body."""
    taken: list[list[tuple[str, dict[str, str], bytes]]] = [[] for _ in range(count)]
    servers = []
    with ThreadPoolExecutor(16) as threads:
        for number in range(count):
            handler = _export_to(taken[number])
            server = grpc.server(threads, handlers=(handler,), options=[("grpc.so_reuseport", 0)])
            if server.add_insecure_port(f"127.0.0.1:{first_port + number}") == 0:
                raise OSError(f"port {first_port + number} is taken")
            server.start()
            servers.append(server)
        try:
            yield taken
        finally:
            for server in servers:
                server.stop(0)


def _export_to(taken: list[tuple[str, dict[str, str], bytes]]) -> Any:
    class Export(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
        def service(self, call: Any) -> Any:
            def export(body: bytes, context: Any) -> bytes:
                headers = {name: str(value) for name, value in context.invocation_metadata() if name != "user-agent"}
                taken.append((call.method, headers, body))
                return b""

            return grpc.unary_unary_rpc_method_handler(export)

    return Export()
