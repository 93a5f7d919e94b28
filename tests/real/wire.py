"""A wire between two programs in the cage that a test may cut, and hold apart for a while."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.real.cage import Cage

_CHUNK_BYTES = 65_536
_STORM_SECONDS = (0.05, 1.2)


class Wire:
    """Listens at `port` inside the cage and passes on to what `connect` reaches; a context manager."""

    def __init__(self, cage: Cage, connect: Callable[[], socket.socket]) -> None:
        self._listener = cage.listen()
        self.port = int(self._listener.getsockname()[1])
        self.connections = 0
        self._connect = connect
        self._is_cut = False
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()

    def drop(self) -> None:
        """End every connection, as a network does."""
        with self._lock:
            ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self) -> None:
        """End every connection, and let no other come to be until `join`."""
        self._is_cut = True
        self.drop()

    def join(self) -> None:
        """Let connections be made again."""
        self._is_cut = False

    @contextmanager
    def storm(self, seed: int) -> Iterator[None]:
        """End every connection now and then, at random moments."""
        over, moments = threading.Event(), random.Random(seed)

        def blow() -> None:
            while not over.wait(moments.uniform(*_STORM_SECONDS)):
                self.drop()

        storm = threading.Thread(target=blow, daemon=True)
        storm.start()
        try:
            yield
        finally:
            over.set()
            storm.join()

    def __enter__(self) -> Wire:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self._is_cut:
                    raise ConnectionError
                far = self._connect()
            except OSError:
                near.close()
                continue
            self.connections += 1
            with self._lock:
                self._ends += [near, far]
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_pass_on, args=(one, other), daemon=True).start()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while content := one.recv(_CHUNK_BYTES):
            other.sendall(content)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
