"""What stands between a receiver and the server: it loses the answer to a commit, or says numbers as a pooler does."""

import socket
import threading
from typing import Final
from urllib.parse import urlsplit, urlunsplit

_CHUNK: Final = 65_536
_KEY: Final = b"K\0\0\0\x0c"
"""The beginning of the message with the number of the server's process."""


class Link:
    """Listens on loopback and passes bytes on to a server. `lose_commit` cuts the next commit's answer off.

    As a pooler does, it says another number than that of the server's process at the beginning, when `is_pooler`.
    """

    def __init__(self, url: str, *, is_pooler: bool = False) -> None:
        self._is_pooler = is_pooler
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
                if self._is_pooler and (at := data.find(_KEY)) >= 0:
                    data = data[: at + len(_KEY)] + b"\0\0\0\1" + data[at + len(_KEY) + 4 :]
                client.sendall(data)
        except OSError:
            pass
        _cut(client)


def _cut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
