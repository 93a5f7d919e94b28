"""The HTTP side of the receiver: OTLP's http/protobuf, and connections that break."""

import gzip
import json
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from tests.otel.reply import REQUESTS, Reply, Signal, answer_of

Took: TypeAlias = "Callable[[Signal, str, Mapping[str, str], bytes, str], Reply]"
"""Takes a request down (signal, path, headers, body, connection) and says what to do with it."""


class HttpServer(ThreadingHTTPServer):
    """A thread per connection; port 0 is one of its own."""

    daemon_threads = True
    block_on_close = False
    context: ssl.SSLContext | None = None

    def __init__(self, took: Took, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.took = took
        self._open: set[socket.socket] = set()

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self.context is not None:  # here and not when accepting: a slow handshake must hold nobody else up
            request = self.context.wrap_socket(request, server_side=True)
        self._open.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            self._open.discard(request)
            with suppress(OSError):
                request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up and handshakes that fail are what tests do here."""

    def close_connections(self) -> None:
        for connection in tuple(self._open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """One connection, which may carry many requests."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one segment for the whole answer
    disable_nagle_algorithm = True
    server: HttpServer

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        signal: Any = self.path.rpartition("/")[2]
        if signal not in REQUESTS:
            self._answer(404, b"", {}, "text/plain")
            return
        reply = self.server.took(signal, self.path, headers, body, f"{self.client_address}")
        if reply.act != "answer":
            self._hang_up(reset=reply.act == "reset")
            return
        extra = dict(reply.headers)
        if reply.retry_after is not None:
            extra["Retry-After"] = reply.retry_after
        if headers.get("content-type") == "application/json":
            self._answer(reply.status, reply.body or json.dumps({}).encode(), extra, "application/json")
        else:
            self._answer(reply.status, answer_of(signal, reply), extra, "application/x-protobuf")

    def _answer(self, status: int, body: bytes, extra: Mapping[str, str], kind: str) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **extra}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _hang_up(self, *, reset: bool) -> None:
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
