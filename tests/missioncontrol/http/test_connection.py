"""Connections that say nothing, too little, or what is no HTTP."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.http import guard
from exporter.missioncontrol.http import server as serving
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import ServerHandle, serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SECONDS_MAX = 15
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux says whose a connection is")
as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to become another user")
HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /agents/sessions HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
NO_HTTP = {
    "TLS": b"\x16\x03\x01\r\n\r\n",
    "two hosts": HEAD + b"Host: localhost\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "a long head": HEAD + b"X: " + b"x" * 40_000,
    "a length that is none": POST + b"Content-Length: x\r\n\r\n",
    "two lengths": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
    "a chunk that is none": POST + CHUNKED + b"\r\nzz\r\nx",
    "a chunk that is none, for HEAD": b"HEAD" + POST.removeprefix(b"POST") + CHUNKED + b"\r\nzz\r\nx",
    "chunks and a length": POST + CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    "a length and chunks": POST + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
}
# With sockets alone, because another user may not be able to read the modules of this Python.
AS_OTHER_USER = """
import encodings.idna, os, socket, sys
os.setuid(65534)
asked = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(int(sys.argv[2]))]
for one in asked:
    try: one.sendall(sys.argv[3].encode())
    except OSError: pass
print("sent", flush=True)
sys.stdin.readline()
def ended(one):
    one.settimeout(float(sys.argv[4]))
    try:
        while one.recv(4096): pass
    except TimeoutError: return False
    except OSError: pass
    return True
print(sum([ended(one) for one in asked]), flush=True)
"""


@pytest.fixture
async def server() -> AsyncIterator[ServerHandle]:
    with Store(":memory:") as store:
        opened = await serve_http(create_app(store, token="right"), "127.0.0.1", 0, explicit_port=True)
        yield opened
        await opened.stop()


async def said_to(server: ServerHandle, *pieces: bytes) -> bytes:
    """What comes back until the connection ends; each piece is sent when something was answered to the one before."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    answer = b""
    async with asyncio.timeout(SECONDS_MAX):
        for piece in pieces:
            writer.write(piece)
            answer += await reader.read(1 << 16)
        with suppress(ConnectionResetError):
            answer += await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("request_bytes", NO_HTTP.values(), ids=NO_HTTP)
async def test_what_is_no_http_is_refused_in_the_words_of_every_error(
    server: ServerHandle, request_bytes: bytes
) -> None:
    head, _, body = (await said_to(server, request_bytes)).partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"application/json" in head
    error = json.loads(body)["error"]
    assert error["kind"] == "bad_http"
    assert error["message"]
    assert error["hint"]


async def test_a_second_request_that_is_none_is_refused_too(server: ServerHandle) -> None:
    answer = await said_to(server, HEAD + b"\r\n", b"no http\r\n\r\n")

    assert [answer.count(b"HTTP/1.1 200 "), answer.count(b"HTTP/1.1 400 ")] == [1, 1]


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEAD])
async def test_a_request_that_never_comes_is_not_waited_for(
    server: ServerHandle, monkeypatch: Any, sent: bytes
) -> None:
    monkeypatch.setattr(serving, "_HEAD_SECONDS", 0.2)

    assert await said_to(server, sent) == b""


async def test_a_second_request_that_trickles_in_is_not_waited_for(server: ServerHandle, monkeypatch: Any) -> None:
    monkeypatch.setattr(serving, "_HEAD_SECONDS", 0.2)

    answer = await said_to(server, HEAD + b"\r\n", b"GET /", b"x")

    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_body_that_nobody_reads_is_not_waited_for(server: ServerHandle, monkeypatch: Any) -> None:
    monkeypatch.setattr(serving, "_REST_SECONDS", 0.2)

    answer = await said_to(server, HEAD + b"Content-Length: 9\r\n\r\n", b"x", b"x")

    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_form_that_does_not_arrive_is_not_waited_for(server: ServerHandle, monkeypatch: Any) -> None:
    monkeypatch.setattr(guard, "_FORM_SECONDS", 0.1)
    monkeypatch.setattr(serving, "_REST_SECONDS", 0.1)

    answer = await said_to(server, b"POST /enter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\ntoken=", b"x")

    assert answer.startswith(b"HTTP/1.1 408 ")


@on_linux
async def test_who_is_served_may_wait_between_requests(server: ServerHandle, monkeypatch: Any) -> None:
    monkeypatch.setattr(serving, "_HEAD_SECONDS", 0.05)
    monkeypatch.setattr(serving, "_STRANGER_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(HEAD + b"\r\n")
    await reader.readuntil(b'"ok"}')

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(), 0.5)

    writer.close()


@on_linux
@as_root
@pytest.mark.parametrize(("header", "ended"), [("", "1"), ("Authorization: Bearer right\r\n", "0")])
async def test_another_user_without_a_token_is_not_waited_for(
    server: ServerHandle, monkeypatch: Any, header: str, ended: str
) -> None:
    monkeypatch.setattr(serving, "_STRANGER_SECONDS", 0.1)
    other = await _as_other_user(server, 1, f"GET / HTTP/1.1\r\nHost: localhost\r\n{header}\r\n", seconds=2)

    printed, _ = await other.communicate(b"\n")

    assert printed.decode().split() == [ended]


@on_linux
@as_root
async def test_connections_of_another_user_are_few_so_that_ours_is_served(server: ServerHandle) -> None:
    other = await _as_other_user(server, 300, "GET / HT", seconds=0.01)

    async with httpx.AsyncClient() as client:
        own = await client.get(f"{server.url}/api/v1/sessions")
    printed, _ = await other.communicate(b"\n")

    assert own.status_code == 200
    assert int(printed) == 300 - serving._OTHERS_MAX


async def _as_other_user(server: ServerHandle, count: int, text: str, *, seconds: float) -> asyncio.subprocess.Process:
    """Another user who has sent this on so many connections, and prints, once told to, how many end in that time."""
    command = [sys.executable, "-I", "-c", AS_OTHER_USER, str(server.port), str(count), text, str(seconds)]
    other = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=Path("/"))
    assert other.stdout is not None
    assert await other.stdout.readline() == b"sent\n"
    return other
