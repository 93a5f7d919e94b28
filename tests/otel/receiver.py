"""An OTLP receiver on loopback, over HTTP and gRPC, that keeps what it accepted and answers as a test tells it to.

What it accepted is an append-only log, read in order and decoded with opentelemetry-proto's own classes. `plan` sets
the answers to the next requests; when the plan is used up, every request gets `then`, at first `OK`. The replies are
in `tests.otel.reply`.
"""

import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.otel.over_grpc import grpc_server
from tests.otel.over_http import HttpServer
from tests.otel.reply import OK, REQUESTS, Reply, Signal

HANG_SECONDS_MAX: Final = 30


def text_of(message: Any, key: str) -> str:
    """Return the text that a span, record or point has under a name; raise when it has none."""
    return next(str(one.value.string_value) for one in message.attributes if one.key == key)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came; header names are in lower case, the body is uncompressed."""

    signal: Signal
    path: str
    headers: Mapping[str, str]
    body: bytes
    reply: Reply
    kept: bool
    connection: str

    def decoded(self) -> Any:
        """The request as a message of opentelemetry-proto; raises when it is none."""
        return REQUESTS[self.signal].FromString(self.body)


class Receiver:
    """Serves until closed; every method may be called from any thread."""

    def __init__(
        self,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        client_ca: Path | None = None,
        with_grpc: bool = False,
        port: int = 0,
        grpc_port: int = 0,
    ) -> None:
        self._lock = threading.Lock()
        self._arrived = threading.Condition(self._lock)
        self._requests: list[Received] = []
        self._plan: list[Reply] = []
        self._then = OK
        self._always: Mapping[str, Reply] = {}
        self._closing = threading.Event()
        self.http = HttpServer(self.took, port)
        scheme = "http"
        if certificate is not None:
            scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            if client_ca is not None:
                context.load_verify_locations(client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
            self.http.context = context
        self.url = f"{scheme}://127.0.0.1:{self.http.server_address[1]}"
        self.port = self.http.server_address[1]
        self.grpc_port = 0
        self._grpc = grpc_server(self.took, certificate, key, client_ca, grpc_port) if with_grpc else None
        if self._grpc is not None:
            self.grpc_port = self._grpc[1]
        self.grpc_url = f"{scheme}://127.0.0.1:{self.grpc_port}"
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; connections that are open are closed."""
        self._closing.set()
        self.http.shutdown()
        self.http.close_connections()
        self.http.server_close()
        if self._grpc is not None:
            self._grpc[0].stop(0).wait(5)

    def plan(self, *replies: Reply, then: Reply | None = None) -> None:
        """Set the replies to the next requests, and what every request after them gets."""
        with self._lock:
            self._plan = list(replies)
            self._then = then or self._then

    def always(self, **replies: Reply) -> None:
        """Set what every request of a signal gets, whatever the plan says; of the others, the plan decides."""
        with self._lock:
            self._always = replies

    def asked(self, signal: Signal) -> int:
        """How many requests of a signal came."""
        return sum(request.signal == signal for request in self.requests)

    @property
    def requests(self) -> list[Received]:
        """Every request so far, accepted or not, in the order of arrival."""
        with self._lock:
            return list(self._requests)

    def wait_for(self, count: int, *, seconds: float = 10) -> list[Received]:
        """Wait until so many requests have come and return all; fails when they do not come."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: len(self._requests) >= count, seconds), (
                f"{len(self._requests)} of {count} requests came"
            )
            return list(self._requests)

    def spans(self) -> list[Span]:
        """Every span that was accepted, in order, as often as it was sent."""
        return [span for scope in self._scopes("traces") for span in scope.spans]

    def logs(self) -> list[LogRecord]:
        """Every log record that was accepted."""
        return [record for scope in self._scopes("logs") for record in scope.log_records]

    def metrics(self) -> list[Metric]:
        """Every metric message that was accepted; a metric comes once in each request that has points of it."""
        return [metric for scope in self._scopes("metrics") for metric in scope.metrics]

    def resources(self, signal: Signal) -> list[Resource]:
        """The resource of each part of each accepted request."""
        return [part.resource for part in self._parts(signal)]

    def _scopes(self, signal: Signal) -> Iterator[Any]:
        for part in self._parts(signal):
            yield from getattr(
                part, {"traces": "scope_spans", "logs": "scope_logs", "metrics": "scope_metrics"}[signal]
            )

    def _parts(self, signal: Signal) -> Iterator[Any]:
        name = {"traces": "resource_spans", "logs": "resource_logs", "metrics": "resource_metrics"}[signal]
        for request in self.requests:
            if request.kept and request.signal == signal:
                yield from getattr(request.decoded(), name)

    def took(self, signal: Signal, path: str, headers: Mapping[str, str], body: bytes, connection: str) -> Reply:
        """Take a request down and return what to do with it. For the servers."""
        with self._arrived:
            reply = self._plan.pop(0) if self._plan else self._then
            if (reply.unless is not None and reply.unless not in body) or reply.signal not in (None, signal):
                reply = OK
            reply = self._always.get(signal, reply)
            kept = reply.act == "lose" or (reply.act == "answer" and reply.status == 200)
            self._requests.append(Received(signal, path, headers, body, reply, kept, connection))
            self._arrived.notify_all()
        if reply.act == "hang":
            self._closing.wait(HANG_SECONDS_MAX)
        return reply
