"""The receiver on a port: uvicorn inside the running event loop, and the rules that only a network needs."""

import asyncio
import errno
import socket
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette

from exporter.errors import ExporterError, SettingsError
from exporter.missioncontrol.http.connection import ClientConnection, is_any, is_loopback, tells_users
from exporter.missioncontrol.http.login import PATH

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
        if is_loopback(self.host) and not tells_users():
            return f"{self.url}{PATH}?once={self._app.state.login.one_time_code()}"
        return f"{self.url}/"

    async def stop(self) -> None:
        """Stop listening. A second call does nothing."""
        self._app.state.receiver.live.close()
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

    A port that is taken is replaced by the next free one, or with `explicit_port` raises `ExporterError`. An address
    that is not loopback raises `SettingsError` unless the application has a token.
    """
    if not is_loopback(host) and not app.state.has_token:
        raise SettingsError(
            f"The receiver will not listen on {host} without a token.",
            hint="Make one with `exporter mission-control token create NAME`, or listen on 127.0.0.1.",
        )
    if certificate is not None:
        certificate.check()
    listener = _listen(host, port, explicit_port=explicit_port)
    bound: int = listener.getsockname()[1]
    server = _QuietServer(_config(app, certificate))
    serving = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]), name="receiver-http")
    while not server.started:
        if serving.done():
            listener.close()
            await serving
            raise ExporterError("The receiver did not start.", hint="Run with --json to see its errors.")
        await asyncio.sleep(0.002)
    return ServerHandle(host, bound, "http" if certificate is None else "https", app, server, serving)


def _config(app: Starlette, certificate: Certificate | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=ClientConnection,
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
        raise ExporterError(f"Port {port} on {host} is taken.", hint="Choose another --port, or leave it out.")
    raise ExporterError(f"Ports {port} to {last} on {host} are all taken.", hint="Choose another --port.")


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
