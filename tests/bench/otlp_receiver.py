"""An OTLP receiver that answers at once: a process of its own that notes bodies down and reads them afterwards."""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from otel.encode.varint import fields
from tests.bench.receiver import REPOSITORY

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n"
SPAN_ID = 2
"""The number of the field with a span's id."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was answered at `at`, a `time.monotonic()`."""

    signal: str
    at: float
    size: int
    """As it was sent, compressed or not."""
    body: bytes = field(repr=False)

    def records(self) -> Iterator[bytes]:
        """The spans, log records or metrics in it: all three signals have the same layout."""
        for _, resource in _messages(self.body, 1):
            for _, scope in _messages(resource, 2):
                for _, record in _messages(scope, 2):
                    yield record

    def span_ids(self) -> list[bytes]:
        """The ids of the spans in it."""
        return [next(value for _, value in _messages(record, SPAN_ID)) for record in self.records()]


class OtlpReceiver:
    """Runs the receiver as a child process, with its notes in a directory: `with OtlpReceiver(directory) as …`."""

    def __init__(self, directory: Path) -> None:
        self._notes = directory / "otlp-requests"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.otlp_receiver", str(self._notes)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def __enter__(self) -> OtlpReceiver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()

    def requests(self) -> Iterator[Request]:
        """Every request so far; ask when nobody sends."""
        with self._notes.open("rb") as notes:
            while head := notes.readline():
                note = json.loads(head)
                body = notes.read(note["size"])
                yield Request(note["signal"], note["at"], len(body), _plain(body))


def _plain(body: bytes) -> bytes:
    return zlib.decompress(body, wbits=31) if body.startswith(b"\x1f\x8b") else body


def _messages(message: bytes, number: int) -> Iterator[tuple[int, bytes]]:
    for found, value in fields(message):
        if found == number and isinstance(value, bytes):
            yield found, value


def _serve(peer: socket.socket, notes: BinaryIO, lock: threading.Lock) -> None:
    """Answer one connection until its end."""
    with peer, peer.makefile("rb", buffering=1 << 20) as source:
        while request := source.readline():
            size = 0
            while line := source.readline().strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    size = int(value)
            body = source.read(size)
            peer.sendall(ANSWER)
            note = {"signal": request.split()[1].decode().rpartition("/")[2], "at": time.monotonic(), "size": size}
            with lock:
                notes.write(json.dumps(note).encode() + b"\n" + body)
                notes.flush()


def main() -> None:
    """Prints the port it listens on and serves until it is stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notes", type=Path)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    lock = threading.Lock()
    with options.notes.open("wb") as notes:
        print(listener.getsockname()[1], flush=True)
        while True:
            peer, _ = listener.accept()
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve, args=(peer, notes, lock), daemon=True).start()


if __name__ == "__main__":
    main()
