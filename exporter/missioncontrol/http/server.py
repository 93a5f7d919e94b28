"""The receiver on a port: uvicorn inside the running event loop, and the rules that only a network needs.

A connection knows which user has it, and how long it may be idle. Other users must not be able to lock out the owner
with open connections: their number is limited, and each one without a token is closed after some time. Nor may they
slow the owner down: the user is found out beside the event loop, and nothing is read before.
"""

import asyncio
import errno
import logging
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol, h11  # type: ignore[attr-defined]  # the very h11 it uses
from uvicorn.server import ServerState

from exporter.errors import ExporterError, SettingsError
from exporter.files import open_regular
from exporter.missioncontrol.http.guard import ADMITTED, PATH, PEER
from exporter.missioncontrol.http.peers import Peer, PeerLookup, is_any, is_loopback, peer_or_ends, tells_users
from exporter.missioncontrol.http.responses import ApiError, error_answer

_log: Final = logging.getLogger("uvicorn.error")
_SAY_SECONDS: Final = 60.0
_HEAD_SECONDS: Final = 10.0
_REST_SECONDS: Final = 30.0
"""How long the rest of a body may take whose request has been answered; who is cut off does not read the answer."""
_STRANGER_SECONDS: Final = 5
_OTHERS_MAX: Final = 256
"""How many connections each of "other", "unknown" and "remote" may have; the same user has no limit."""
_REFUSAL: Final = bytes(
    error_answer(
        ApiError(
            400,
            "bad_http",
            "This is no valid HTTP request.",
            hint="Send one Host, one length or whole chunks, and a head below 16 KiB, as every HTTP library does.",
        )
    ).body
)
_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nX-Content-Type-Options: nosniff\r\n"
    b"Cache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_REFUSAL), _REFUSAL)
)


class _Parser(h11.Connection):
    """Refuses two lengths for one body: a proxy before us may believe the other one, and see two requests in it."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("Content-Length with Transfer-Encoding")
        return event


class ClientConnection(H11Protocol):
    """Finds out once per connection which user has it, and reads nothing from its client until that is known."""

    def __init__(
        self,
        lookup: PeerLookup,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _Parser(h11.SERVER)
        self.peer: Peer | None = None
        self._lookup = lookup
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self._watch()
        found = peer_or_ends(self.client, self.server)
        if isinstance(found, str):
            self._meet(found)
            return
        self.flow.pause_reading()
        if not self._lookup.ask(found, self._meet):
            transport.abort()

    def _meet(self, peer: Peer) -> None:
        self.peer = peer
        self.app_state = {**self.app_state, PEER: peer}
        if self._is_one_too_many():
            self.transport.abort()
        elif not self.transport.is_closing():
            self.flow.resume_reading()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        is_trusted = self.peer == "same" or ADMITTED in self.scope.get("state", {})
        self.timeout_keep_alive = self.config.timeout_keep_alive if is_trusted else _STRANGER_SECONDS
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._watch()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as everything else is answered, unless an answer is on its way already."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_BAD_REQUEST)
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _is_one_too_many(self) -> bool:
        if self.peer == "same":
            return False
        alike = [one for one in self.connections if isinstance(one, ClientConnection) and one.peer == self.peer]
        return len(alike) > _OTHERS_MAX

    def _watch(self) -> None:
        """Let the connection end some time after we began to wait for its client; what trickles in does not help."""
        is_head = self.conn.their_state is h11.IDLE and self.timeout_keep_alive_task is None
        is_rest = self.conn.their_state is h11.SEND_BODY and self.conn.our_state is h11.DONE
        if self._end is not None and (self.transport.is_closing() or not (is_head or is_rest)):
            self._end.cancel()
            self._end = None
        elif self._end is None and not self.transport.is_closing() and (is_head or is_rest):
            self._end = self.loop.call_later(_HEAD_SECONDS if is_head else _REST_SECONDS, self.transport.abort)


_PORTS_TRIED: Final = 64
_STOP_SECONDS: Final = 1.0
_BACKLOG: Final = 512
# Longer than an uploader waits between two batches, so that it does not run into a closing connection.
_KEEP_ALIVE_SECONDS: Final = 75


@dataclass(slots=True)
class ServerHandle:
    """A receiver that listens. `stop` ends open streams, lets requests finish for a second, and closes the port."""

    host: str
    port: int
    scheme: str
    _app: Starlette
    _server: uvicorn.Server
    _serving: "asyncio.Task[None]"

    @property
    def url(self) -> str:
        """Where it listens."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def named(self) -> str | None:
        """Return what other machines open where it listens on all addresses, which is none that can be opened."""
        return f"{self.scheme}://{socket.gethostname()}:{self.port}/" if is_any(self.host) else None

    def address(self) -> str:
        """Return what a person opens: on loopback where the system does not say whose a connection is, works once."""
        if self._app.state.public is not None:
            return str(self._app.state.public)
        if is_loopback(self.host) and not tells_users():
            return f"{self.url}{PATH}?once={self._app.state.login.one_time_code()}"
        return f"{self.url}/"

    async def stop(self) -> None:
        """Stop listening. A second call does nothing."""
        self._app.state.receivers.end_streams()
        self._server.should_exit = True
        with suppress(asyncio.CancelledError):
            await self._serving

    async def wait(self) -> None:
        """Return when the server has stopped."""
        await asyncio.shield(self._serving)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of a certificate (with its chain) and of its key, both PEM."""

    certificate: Path
    key: Path

    def check(self) -> None:
        """Raise `SettingsError` when they cannot be read or do not belong together."""
        try:
            for file in (self.certificate, self.key):
                open_regular(file).close()
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
                self.certificate, self.key, password=lambda: ""
            )
        except (OSError, ValueError) as error:  # an SSLError is an OSError
            raise SettingsError(
                f"The certificate {self.certificate} with the key {self.key} cannot be used: {error}.",
                hint="Both are PEM files, the key without a passphrase.",
            ) from error


async def serve_http(
    app: Starlette, host: str, port: int, *, explicit_port: bool, certificate: Certificate | None = None
) -> ServerHandle:
    """Serve the application from the running loop, without touching signal handlers, and return once it listens.

    A port that is taken is replaced by the next free one, or with `explicit_port` raises `SettingsError`. An address
    that is not loopback raises `SettingsError` unless the application has a token.
    """
    if (app.state.public or not is_loopback(host)) and not app.state.has_token:
        raise SettingsError(
            f"The receiver will not listen on {app.state.public or host} without a token.",
            hint="Make one with `exporter mission-control token create NAME`, or listen on 127.0.0.1.",
        )
    if certificate is not None:
        certificate.check()
    listener = _listen(host, port, explicit_port=explicit_port)
    bound: int = listener.getsockname()[1]
    lookup = PeerLookup()
    server = _QuietServer(_config(app, certificate, lookup))
    serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]), name="receiver-http")
    serving.add_done_callback(lambda _: lookup.close())
    _log.addFilter(once := _once_a_minute())
    serving.add_done_callback(lambda _: _log.removeFilter(once))
    while not server.started:
        if serving.done():
            listener.close()
            await serving
            raise ExporterError("The receiver did not start.", hint="Run with --json to see its errors.")
        await asyncio.sleep(0.002)
    return ServerHandle(host, bound, "http" if certificate is None else "https", app, server, serving)


def _config(app: Starlette, certificate: Certificate | None, lookup: PeerLookup) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=partial(ClientConnection, lookup),  # type: ignore[arg-type]  # it is called, like a class
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(_STOP_SECONDS),
        ssl_certfile=certificate.certificate if certificate is not None else None,
        ssl_keyfile=certificate.key if certificate is not None else None,
    )


def _once_a_minute() -> Callable[[logging.LogRecord], bool]:
    """Return a filter that passes one line of each kind a minute: anyone can make any number of bad requests."""
    quiet_until: dict[str, float] = {}

    def passes(record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now < quiet_until.get(record.msg, now):
            return False
        quiet_until[record.msg] = now + _SAY_SECONDS
        return True

    return passes


class _QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers: signals belong to the program."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int, *, explicit_port: bool) -> socket.socket:
    last = port if explicit_port or port == 0 else min(port + _PORTS_TRIED - 1, 65535)
    for candidate in range(port, last + 1):
        try:
            return _bind(host, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ExporterError(
                    f"The receiver cannot listen on {host}:{candidate}: {error.strerror or error}.",
                    hint="Choose another --host or --port.",
                ) from error
    if explicit_port:
        raise SettingsError(f"Port {port} on {host} is in use.", hint="Choose another --port, or leave it out.")
    raise SettingsError(f"Ports {port} to {last} on {host} are all in use.", hint="Choose another --port.")


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name the protocol; without it every answer waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener
