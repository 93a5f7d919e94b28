"""A proxy on loopback: tunnels (CONNECT) and plain requests, to whatever address the test has for a name."""

import base64
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

_END: Final = b"\r\n\r\n"


class ConnectProxy:
    """Serves until closed. `heard` holds the head of each request, and `seen` every other byte that came from clients.

    `places` maps `host:port`, as clients write it, to the port on loopback that they are joined with. With `user`, a
    request without these credentials gets 407; a name that has no place gets 502.
    """

    def __init__(
        self,
        places: Mapping[str, int],
        *,
        user: str | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self._places = places
        self._user = user
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if certificate else None
        if self._context and certificate:
            self._context.load_cert_chain(*certificate)
        self.heard: list[str] = []
        self.seen = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "ConnectProxy":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # or the thread that accepts keeps the port
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            if self._context:
                client = self._context.wrap_socket(client, server_side=True)
            while head := _head(client):
                self.heard.append(head.decode("latin-1"))
                if not self._answer(client, head):
                    return

    def _answer(self, client: socket.socket, head: bytes) -> bool:
        """Answer one request; False when the connection is of no use any more."""
        line, _, headers = head.decode("latin-1").partition("\r\n")
        method, target, _ = line.split(" ")
        if self._user and base64.b64encode(self._user.encode()).decode() not in headers:
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return True
        place = target if method == "CONNECT" else target.split("/")[2]
        if place not in self._places:
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return True
        with socket.create_connection(("127.0.0.1", self._places[place])) as server:
            if method == "CONNECT":
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = "/" + target.split("/", 3)[3]
                kept = [one for one in headers.split("\r\n") if not one.lower().startswith("proxy-")]
                server.sendall("\r\n".join((f"{method} {path} HTTP/1.1", *kept)).encode("latin-1"))
            self._join(client, server)
        return False

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        def back() -> None:
            with suppress(OSError):
                while part := server.recv(65_536):
                    client.sendall(part)
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=back, daemon=True).start()
        with suppress(OSError):
            while part := client.recv(65_536):
                self.seen += part
                server.sendall(part)


def _head(client: socket.socket) -> bytes:
    """Read the head of a request byte by byte, so that what follows stays where it is."""
    head = b""
    while not head.endswith(_END):
        part = client.recv(1)
        if not part:
            return b""
        head += part
    return head
