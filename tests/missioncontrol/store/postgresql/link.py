"""A connection to a server that a test cuts: at once, or when the answer to a commit would pass."""

import socket
import threading
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_CHUNK: Final = 65_536


class Link:
    """Listens on loopback and passes bytes on to a server. `lose_commit` cuts the next commit's answer off."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        user = parts.netloc.rpartition("@")[0]
        self.url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{self._listener.getsockname()[1]}"))
        self.lost = 0
        self._loses = False
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_commit(self) -> None:
        """Let the next commit reach the server, and its answer nobody."""
        self._loses = True

    def close(self) -> None:
        """Cut everything, and listen no more."""
        self._listener.close()
        for one in self._open:
            _cut(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._open += [client, server]
            loses = threading.Event()
            threading.Thread(target=self._requests, args=(client, server, loses), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client, loses), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, loses: threading.Event) -> None:
        try:
            while data := client.recv(_CHUNK):
                if self._loses and b"COMMIT" in data:
                    self._loses = False
                    loses.set()
                server.sendall(data)
        except OSError:
            pass
        _cut(server)

    def _answers(self, server: socket.socket, client: socket.socket, loses: threading.Event) -> None:
        try:
            while data := server.recv(_CHUNK):
                if loses.is_set():
                    assert b"COMMIT" in data, "the server did not commit"
                    self.lost += 1
                    break
                client.sendall(data)
        except OSError:
            pass
        _cut(client)


def _cut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
