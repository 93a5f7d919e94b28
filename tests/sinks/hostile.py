"""A server on loopback that answers as no server should: any bytes, at any pace, with any end."""

import gzip
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self

from hypothesis import strategies as st

End = Literal["close", "keep", "reset"]
_REQUEST_END: Final = b"\r\n\r\n"


@dataclass(frozen=True)
class Answer:
    """What is sent after a request: the pieces with the pause before each, then how the connection ends.

    `accepts` says whether a client may take it for an acceptance.
    """

    pieces: tuple[tuple[float, bytes], ...]
    end: End = "close"
    accepts: bool = False


def at_once(data: bytes, end: End = "close", *, accepts: bool = False) -> Answer:
    return Answer(((0.0, data),), end, accepts)


@dataclass
class HostileServer:
    """Gives every request the answer that is set now, each on its own connection or not."""

    answer: Answer = field(default_factory=lambda: at_once(b""))
    reads: bool = True
    """Whether the body of a request is read."""

    def __enter__(self) -> Self:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._open = True
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._listening.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/agents"

    def _accept(self) -> None:
        while self._open:
            with suppress(OSError):
                connection, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while self._request(connection):
                answer = self.answer
                for pause, data in answer.pieces:
                    if pause:
                        time.sleep(pause)
                    connection.sendall(data)
                if answer.end == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if answer.end != "keep":
                    return

    def _request(self, connection: socket.socket) -> bool:
        """Read one request; return False when there is none."""
        received = b""
        while _REQUEST_END not in received:
            part = connection.recv(65_536)
            if not part:
                return False
            received += part
        head, _, body = received.partition(_REQUEST_END)
        length = next(
            (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        if not self.reads:
            time.sleep(60)
        while len(body) < length:
            part = connection.recv(65_536)
            if not part:
                return False
            body += part
        return True


# ---- what is sent ---------------------------------------------------------------------------------------------

_STATUS_LINES: Final = (
    (b"HTTP/1.1 200 OK", True),
    (b"HTTP/1.1 201 Created", True),
    (b"HTTP/1.1 200 ", True),
    (b"HTTP/1.0 200 OK", True),
    (b"HTTP/1.1 206 Partial", False),
    (b"HTTP/1.1 302 Found", False),
    (b"HTTP/1.1 503 No", False),
    (b"HTTP/1.1 200OK", False),
    (b"HTTP/2 200", False),
    (b"HTTP/1.1 2000 OK", False),
    (b"HTTP/1.1 -200 OK", False),
    (b"ICY 200 OK", False),
    (b"HTTP/1.1 999 Odd", False),
    (b"SSH-2.0-OpenSSH_9.6", False),
    (b"\x16\x03\x01\x02\x00\x01", False),
    (b"", False),
)
_HEADERS: Final = (
    b"Content-Type: application/json",
    b"Content-Type: text/plain",
    b"X-Long: " + b"y" * 9_000,
    b"Set-Cookie: a=b",
    b"Retry-After: -1",
    b"Retry-After: 1e309",
    b"Session-Exporter-Store: \xff\xfe",
    b"Location: http://127.0.0.1:1/",
    b"X: \x80",
    b"Trailer: X",
)
_ODD_HEADERS: Final = (
    b"Content-Type: text/html",
    b"no colon here",
    b": no name",
    b" folded: from nothing",
    b"X: a\x00b",
    b"X-Long: " + b"y" * 200_000,
    b"Content-Length: 5, 6",
    b"Content-Length: -1",
    b"Transfer-Encoding: gzip, chunked, x",
    b"Content-Encoding: br",
)
_BODIES: Final = (
    (b"", True),
    (b'{"id":"r"}', True),
    (b"[]", True),
    (b" {} ", True),
    (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", True),
    (b"<html>sign in</html>", False),
    (b'{"id":', False),
    (b'{"id":"r"}trailing', False),
    (b"OK", False),
    (b"null", False),
    (b"\xff\xfe\x00", False),
    (b"[" * 100_000, False),
    (b'"' + b"x" * 2_000_000 + b'"', False),
    (b'["' + b"x" * 2_000_000 + b'"]', False),
)
_INFORMATION: Final = (b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3)


def _framed(body: bytes, framing: str) -> tuple[list[bytes], bytes, bool]:
    """Return the headers that frame a body, the body as it is sent, and whether it arrives whole."""
    length = len(body)
    match framing:
        case "length":
            return [f"Content-Length: {length}".encode()], body, True
        case "short":
            return [f"Content-Length: {length + 7}".encode()], body, False
        case "chunked":
            return [b"Transfer-Encoding: chunked"], _chunks(body) + b"0\r\n\r\n", True
        case "cut":
            return [b"Transfer-Encoding: chunked"], _chunks(body), False
        case "bad chunk":
            return [b"Transfer-Encoding: chunked"], b"zz\r\n" + body + b"\r\n0\r\n\r\n", False
        case "gzip":
            return (
                [b"Content-Encoding: gzip", b"Transfer-Encoding: chunked"],
                _chunks(gzip.compress(body)) + b"0\r\n\r\n",
                True,
            )
        case "bad gzip":
            return [b"Content-Encoding: gzip", f"Content-Length: {length + 1}".encode()], b"x" + body, False
        case _:
            return [], body, True  # until the connection closes


def _chunks(body: bytes) -> bytes:
    parts = [body[at : at + 50_000] for at in range(0, len(body), 50_000)]
    return b"".join(f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts)


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    """Any answer: a sound one with one or two things wrong with it is the most likely to be believed."""
    line, sound = draw(st.sampled_from(_STATUS_LINES))
    body, is_json = draw(st.sampled_from(_BODIES))
    names = ["length", "short", "chunked", "cut", "bad chunk", "gzip", "bad gzip", "close"]
    headers, framed, whole = _framed(body, framing := draw(st.sampled_from(names)))
    headers += draw(st.lists(st.sampled_from(_HEADERS), max_size=3))
    odd = draw(st.lists(st.sampled_from(_ODD_HEADERS), max_size=1))
    end: End = draw(st.sampled_from(["close", "keep", "reset"]))
    if framing == "close" and end == "keep":
        end = "close"
    head = draw(st.sampled_from(_INFORMATION)) + b"\r\n".join([line, *headers, *odd, b"", b""])
    data, pauses = head + framed, draw(st.sampled_from([0.0, 0.0, 0.0, 0.02, 0.12]))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=4))) if pauses else []
    pieces = tuple((pauses if at else 0.0, data[at:to]) for at, to in zip([0, *cuts], [*cuts, len(data)], strict=True))
    # What is odd may be tolerated by a client or not; it never makes an acceptance of what is none.
    return Answer(pieces, end, accepts=sound and is_json and whole)


def drip(data: bytes, pause: float) -> Answer:
    """Return the answer a byte at a time."""
    return Answer(tuple((pause, bytes([one])) for one in data), "close")


@contextmanager
def serving(answer: Answer, *, reads: bool = True) -> Iterator[HostileServer]:
    with HostileServer(answer, reads) as server:
        yield server
