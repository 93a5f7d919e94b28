"""What only requests over HTTP can get wrong: connections, and what an error says."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from exporter.sinks.http_transport import HttpTransport
from exporter.sinks.transport import NoAnswerError
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor

pytestmark = pytest.mark.anyio


async def test_the_text_of_an_error_names_no_token() -> None:
    transport = HttpTransport("http://127.0.0.1:1/agents", connections=1, timeout_seconds=2.0)

    with pytest.raises(NoAnswerError) as raised:
        await transport.request("POST", "/sessions", {"Authorization": "Bearer secret-token"}, b"{}")

    assert str(raised.value)
    assert "secret-token" not in str(raised.value)


async def test_a_connection_that_the_server_closed_meanwhile_is_made_again() -> None:
    with Peer(Floor()) as peer:
        transport = HttpTransport(peer.url, connections=1, timeout_seconds=2.0)
        await transport.request("GET", "/sessions/r", {}, b"")
        peer.script = lambda request: Reply(lost=True)
        with pytest.raises(NoAnswerError):
            await transport.request("GET", "/sessions/r", {}, b"")
        peer.script = lambda request: None

        answer = await transport.request("GET", "/sessions/r", {}, b"")

        assert answer.status == 404


async def test_never_more_connections_than_allowed() -> None:
    with Peer(Floor()) as peer:
        peer.script = lambda request: Reply(delay=0.02)
        transport = HttpTransport(peer.url, connections=2, timeout_seconds=5.0)

        await asyncio.gather(*(transport.request("GET", "/sessions/r", {}, b"") for _ in range(20)))

        assert peer.connections <= 2
        assert len(peer.requests) == 20


@contextmanager
def _raw(*answers: bytes) -> Iterator[str]:
    """Serve these bytes, each as the answer to one request, and nothing after them on any connection."""
    left = list(answers)

    def serve(connection: socket.socket) -> None:
        with connection:
            received = b""
            while left and (part := connection.recv(65_536)):
                received += part
                if received.endswith(b"{}"):  # the body, which may come by itself
                    received = b""
                    connection.sendall(left.pop(0))

    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while left:
                serve(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def test_an_answer_that_is_no_http_and_repeats_the_request_names_no_token() -> None:
    with _raw(b"HTTP/1.1 200 OK\r\nX \xe9: Bearer secret-token\r\n\r\n") as url:
        transport = HttpTransport(url, connections=1, timeout_seconds=2.0)

        with pytest.raises(NoAnswerError) as raised:
            await transport.request("POST", "/sessions", {"Authorization": "Bearer secret-token"}, b"{}")

    assert "[hidden]" in str(raised.value)
    assert "secret-token" not in str(raised.value)


async def test_what_comes_behind_an_answer_answers_no_other_request() -> None:
    accepted = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    with _raw(accepted * 2, b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n") as url:
        transport = HttpTransport(url, connections=1, timeout_seconds=2.0)

        answers = [await transport.request("POST", "/sessions", {}, b"{}") for _ in range(2)]

    assert [answer.status for answer in answers] == [200, 503]
