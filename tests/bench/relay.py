"""Stands between an uploader and a receiver, passes every byte on at once, and notes when each answer passed.

The receiver answers after it has committed, so the moment its answer passes here is the moment the event is known to be
stored; nothing has to be asked for and neither side is changed. What the relay itself takes (two copies over loopback)
counts against the program. Requests are taken apart only when the measurement is over.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType

import zstandard

from tests.bench.receiver import EVENT_ID, REPOSITORY

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
ENCODING = re.compile(rb"\r\ncontent-encoding: *(\w+)", re.IGNORECASE)


class Relay:
    """Runs the relay as a child process: `with Relay(8411) as relay: …`; uploaders are told `relay.port`."""

    def __init__(self, receiver_port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.relay", str(receiver_port)],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = int(self._read())

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.terminate()
        self._process.wait()

    def stored(self) -> dict[str, float]:
        """For each event id the `time.monotonic()` at which a 2xx answer to a request with it passed first."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        return dict(json.loads(self._read()))

    def _read(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@dataclass(slots=True)
class Recording:
    """Everything that passed on one connection; one request is in flight at a time, so answers pair up in order."""

    requests: list[bytes] = field(default_factory=list)
    answers: list[tuple[float, bytes]] = field(default_factory=list)

    def stored(self) -> Iterator[tuple[str, float]]:
        """Event ids with the moment their answer passed."""
        heads = _messages(b"".join(self.requests))
        for (head, body), (answer, answered_at) in zip(heads, self._answers(), strict=False):
            if b"/events" in head.split(b"\r\n", 1)[0] and answer.split(b" ", 2)[1].startswith(b"2"):
                for item in EVENT_ID.findall(_decoded(head, body)):
                    yield item.decode(), answered_at

    def _answers(self) -> Iterator[tuple[bytes, float]]:
        arrived = list(self.answers)
        end = position = index = 0
        for head, body in _messages(b"".join(chunk for _, chunk in arrived)):
            end += len(head) + 4 + len(body)
            while position + len(arrived[index][1]) < end:
                position += len(arrived[index][1])
                index += 1
            yield head, arrived[index][0]


def _messages(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The complete HTTP messages in what passed, as head and body."""
    at = 0
    while (end := data.find(b"\r\n\r\n", at)) >= 0:
        head = data[at:end]
        found = LENGTH.search(head)
        at = end + 4 + (int(found[1]) if found else 0)
        if at <= len(data):
            yield head, data[end + 4 : at]


def _decoded(head: bytes, body: bytes) -> bytes:
    found = ENCODING.search(head)
    match found[1] if found else b"identity":
        case b"zstd":
            return zstandard.ZstdDecompressor().decompressobj().decompress(body)
        case b"gzip":
            return gzip.decompress(body)
        case _:
            return body


Pass = Callable[[socket.socket, socket.socket, Recording], None]


def _pass_requests(source: socket.socket, target: socket.socket, recording: Recording) -> None:
    while chunk := source.recv(1 << 18):
        target.sendall(chunk)
        recording.requests.append(chunk)
    target.shutdown(socket.SHUT_WR)


def _pass_answers(source: socket.socket, target: socket.socket, recording: Recording) -> None:
    while chunk := source.recv(1 << 18):
        recording.answers.append((time.monotonic(), chunk))
        target.sendall(chunk)
    target.shutdown(socket.SHUT_WR)


def _accept(listener: socket.socket, receiver_port: int, recordings: list[Recording]) -> None:
    while True:
        uploader, _ = listener.accept()
        receiver = socket.create_connection(("127.0.0.1", receiver_port))
        for end in (uploader, receiver):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        recording = Recording()
        recordings.append(recording)
        threading.Thread(target=_quietly, args=(_pass_requests, uploader, receiver, recording), daemon=True).start()
        threading.Thread(target=_quietly, args=(_pass_answers, receiver, uploader, recording), daemon=True).start()


def _quietly(work: Pass, source: socket.socket, target: socket.socket, recording: Recording) -> None:
    """A side that goes away ends its connection and nothing else."""
    try:
        work(source, target, recording)
    except OSError:
        source.close()
        target.close()


def main() -> None:
    """Prints its port; each line on stdin is answered with what was stored so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("receiver_port", type=int)
    receiver_port = parser.parse_args().receiver_port
    listener = socket.create_server(("127.0.0.1", 0))
    recordings: list[Recording] = []
    threading.Thread(target=_accept, args=(listener, receiver_port, recordings), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    for _ in sys.stdin:
        stored: dict[str, float] = {}
        for recording in list(recordings):
            for item, answered_at in recording.stored():
                stored[item] = min(answered_at, stored.get(item, answered_at))
        print(json.dumps(stored), flush=True)


if __name__ == "__main__":
    main()
