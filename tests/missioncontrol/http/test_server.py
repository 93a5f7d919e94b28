"""The receiver on a real port."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from exporter.errors import ExporterError, SettingsError
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc/net/tcp is Linux's")
as_root = pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to become another user")


@pytest.fixture
async def app() -> AsyncIterator[Starlette]:
    with Store(":memory:") as store:
        yield create_app(store)


async def get(url: str, **headers: str) -> int:
    async with httpx.AsyncClient() as client:
        return (await client.get(f"{url}/api/v1/sessions", headers=headers)).status_code


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_it_serves_on_every_form_of_loopback(app: Starlette, host: str) -> None:
    server = await serve_http(app, host, 0, explicit_port=True)

    assert await get(server.url) == 200

    await server.stop()


async def test_a_taken_port_is_replaced_by_the_next_free_one(app: Starlette) -> None:
    first = await serve_http(app, "127.0.0.1", 0, explicit_port=True)

    second = await serve_http(app, "127.0.0.1", first.port, explicit_port=False)

    assert second.port > first.port
    assert await get(second.url) == 200
    for server in (first, second):
        await server.stop()


async def test_a_taken_port_that_was_asked_for_is_an_error_with_a_hint(app: Starlette) -> None:
    first = await serve_http(app, "127.0.0.1", 0, explicit_port=True)

    with pytest.raises(ExporterError, match=f"Port {first.port} .* is in use") as raised:
        await serve_http(app, "127.0.0.1", first.port, explicit_port=True)

    assert raised.value.hint
    await first.stop()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
async def test_without_a_token_it_listens_on_loopback_only(app: Starlette, host: str) -> None:
    with pytest.raises(SettingsError, match="without a token") as raised:
        await serve_http(app, host, 0, explicit_port=True)

    assert raised.value.hint


async def test_signals_stay_with_the_program(app: Starlette) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    await server.stop()


async def test_stopping_ends_open_streams_and_frees_the_port(app: Starlette) -> None:
    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
    async with httpx.AsyncClient(base_url=server.url) as client, client.stream("GET", "/api/v1/stream") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == ": open"

        async with asyncio.timeout(2):
            await server.stop()
            assert [line async for line in lines if line] == []

    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", server.port)) != 0
    await server.stop()


async def test_half_a_body_stores_nothing(app: Starlette) -> None:
    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
    async with httpx.AsyncClient(base_url=server.url) as client:
        await client.post("/agents/sessions", json={"id": "s"})
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = b"POST /agents/sessions/s/events HTTP/1.1\r\nHost: localhost\r\nSession-Exporter: 1\r\n"
    writer.write(head + b"Content-Length: 999\r\n\r\n" + b'{"events":[{"type":"x","id":"a"}]')
    await writer.drain()
    writer.close()
    await reader.read()

    async with httpx.AsyncClient(base_url=server.url) as client:
        assert (await client.get("/api/v1/sessions/s/digest")).json()["count"] == 0
    await server.stop()


@on_linux
async def test_the_same_user_needs_no_token_unless_a_proxy_stands_between() -> None:
    with Store(":memory:") as store:
        server = await serve_http(create_app(store, token="right"), "127.0.0.1", 0, explicit_port=True)

        plain = await get(server.url)
        forwarded = await get(server.url, **{"X-Forwarded-For": "203.0.113.5"})
        wrong_then = await get(server.url, **{"X-Forwarded-For": "203.0.113.5", "Authorization": "Bearer right"})
        await server.stop()

    assert (plain, forwarded, wrong_then) == (200, 401, 200)


@on_linux
@as_root
async def test_another_user_on_loopback_is_refused_without_the_token() -> None:
    with Store(":memory:") as store:
        server = await serve_http(create_app(store, token="right"), "127.0.0.1", 0, explicit_port=True)

        refused = await _get_as_other_user(server.port, "")
        allowed = await _get_as_other_user(server.port, "Authorization: Bearer right\r\n")
        health = await _get_as_other_user(server.port, "", path="/healthz")
        await server.stop()

    assert (refused, allowed, health) == ("403", "200", "200")


async def _get_as_other_user(port: int, header: str, path: str = "/api/v1/sessions") -> str:
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket();"
        "s.connect(('127.0.0.1', int(sys.argv[1])));"
        "s.sendall(sys.argv[2].encode()); print(s.recv(4096).split()[1].decode())"
    )
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n"
    run = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(port), request, stdout=subprocess.PIPE, cwd=Path("/")
    )
    printed, _ = await run.communicate()
    return printed.decode().strip()


@on_linux
@as_root
async def test_another_user_who_closes_at_once_is_not_taken_for_root(app: Starlette) -> None:
    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
    request = "DELETE /api/v1/sessions/s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    script = (
        "import os, socket, sys; os.setuid(65534)\n"
        "for _ in range(60):\n"
        " with socket.socket() as s: s.connect(('127.0.0.1', int(sys.argv[1]))); s.sendall(sys.argv[2].encode())"
    )
    # While it runs the server accepts nothing, so that every connection has been closed when it is looked at.
    command = [sys.executable, "-c", script, str(server.port), request]
    subprocess.run(command, cwd="/", check=True, timeout=20)  # noqa: ASYNC221

    answers = app.state.receiver.counters.requests
    async with asyncio.timeout(20):
        while sum(answers.values()) < 60:  # noqa: ASYNC110  nothing tells it
            await asyncio.sleep(0.01)
    assert answers == {"403": 60}
    await server.stop()


@on_linux
@as_root
@pytest.mark.alone
async def test_many_connections_of_another_user_slow_nobody_down(
    app: Starlette, record_property: Callable[[str, object], None]
) -> None:
    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
    script = (
        "import os, socket, sys, time; os.setuid(65534); kept = []\n"
        "for number in range(600):\n"
        " time.sleep(0.005); kept = kept[-100:] + [socket.socket()]\n"
        " kept[-1].connect(('127.0.0.1', int(sys.argv[1])))"
    )
    flood = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(server.port), cwd=Path("/"))
    worst_seconds = 0.0
    async with httpx.AsyncClient() as client:
        while flood.returncode is None:
            start = time.monotonic()
            assert (await client.get(f"{server.url}/healthz", headers={"Connection": "close"})).status_code == 200
            worst_seconds = max(worst_seconds, time.monotonic() - start)
            await asyncio.sleep(0.02)
    await server.stop()

    record_property("slowest answer, seconds", round(worst_seconds, 2))
    assert worst_seconds < 1.0


async def test_bad_requests_are_logged_once_a_minute_and_kind(
    app: Starlette, caplog: pytest.LogCaptureFixture, record_property: Callable[[str, object], None]
) -> None:
    caplog.set_level(logging.WARNING, "uvicorn.error")
    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    for _ in range(20):
        for request in (b"no HTTP\r\n\r\n", upgrade):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(request)
            assert await reader.read()
            writer.close()
    await server.stop()

    said = [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")]
    record_property("lines for 40 requests", len(said))
    assert "Invalid HTTP request received." in said
    assert "Unsupported upgrade request." in said
    assert len(said) == len(set(said))


@on_linux
async def test_a_connection_costs_no_reading_of_the_tables_of_all(app: Starlette) -> None:
    opened: list[str] = []
    is_on = [True]
    sys.addaudithook(lambda event, found: opened.append(str(found[0])) if event == "open" and is_on else None)
    server = await serve_http(app, "127.0.0.1", 0, explicit_port=True)

    assert await get(server.url) == 200

    is_on.clear()
    assert not [path for path in opened if path.startswith("/proc/net")]
    await server.stop()
