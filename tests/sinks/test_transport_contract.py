"""What every transport does, and what only the one over HTTP can."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from exporter.sinks.embedded import InProcessTransport
from exporter.sinks.http_transport import HttpTransport
from exporter.sinks.transport import NoAnswerError, Transport

pytestmark = pytest.mark.anyio

Opened: TypeAlias = Callable[[], AbstractAsyncContextManager[Transport]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _mirror(request: Request) -> Response:
    seen = {
        "method": request.method,
        "path": request.url.path,
        "query": request.url.query,
        "headers": dict(request.headers),
        "body": (await request.body()).decode("latin-1"),
    }
    return JSONResponse(seen, status_code=int(request.query_params.get("status", "200")), headers={"X-Seen": "Yes"})


async def _away(_: Request) -> Response:
    return RedirectResponse("http://127.0.0.1:1/elsewhere", status_code=307)


async def _broken(_: Request) -> Response:
    raise RuntimeError("defect of the receiver")


def _app() -> Starlette:
    return Starlette(
        routes=[
            Route("/agents/away", _away, methods=["GET", "POST"]),
            Route("/agents/broken", _broken, methods=["POST"]),
            Route("/{rest:path}", _mirror, methods=["GET", "POST", "PUT"]),
        ]
    )


@asynccontextmanager
async def _over_http() -> AsyncIterator[Transport]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        server = uvicorn.Server(uvicorn.Config(_app(), log_level="critical", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        transport = HttpTransport(
            f"http://127.0.0.1:{listening.getsockname()[1]}/agents", connections=4, timeout_seconds=5
        )
        try:
            yield transport
        finally:
            await transport.close()
            server.should_exit = True
            await serving


@asynccontextmanager
async def _in_process() -> AsyncIterator[Transport]:
    transport = InProcessTransport(_app())
    try:
        yield transport
    finally:
        await transport.close()


@pytest.fixture(params=[_over_http, _in_process])
def opened(request: pytest.FixtureRequest) -> Opened:
    found: Opened = request.param
    return found


async def _seen(transport: Transport, method: str, path: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    answer = await transport.request(method, path, headers, body)
    found: dict[str, Any] = json.loads(answer.body)
    return found


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
async def test_a_request_arrives_as_it_was_made(opened: Opened, method: str) -> None:
    body = b"" if method == "GET" else bytes(range(256))

    async with opened() as transport:
        seen = await _seen(
            transport, method, "/sessions/a%20b?ids=1", {"X-One": "1", "Authorization": "Bearer t"}, body
        )

    assert (seen["method"], seen["path"], seen["query"]) == (method, "/agents/sessions/a b", "ids=1")
    assert (seen["headers"]["x-one"], seen["headers"]["authorization"]) == ("1", "Bearer t")
    assert seen["body"].encode("latin-1") == body


async def test_names_of_answered_headers_are_in_lower_case(opened: Opened) -> None:
    async with opened() as transport:
        answer = await transport.request("GET", "/sessions", {}, b"")

    assert answer.headers.get("x-seen") == "Yes"
    assert answer.headers.get("retry-after") is None


@pytest.mark.parametrize("status", [200, 201, 400, 404, 413, 429, 503])
async def test_every_status_is_an_answer(opened: Opened, status: int) -> None:
    async with opened() as transport:
        answer = await transport.request("POST", f"/sessions?status={status}", {}, b"{}")

    assert answer.status == status


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_redirect_is_an_answer_and_is_not_followed(opened: Opened, method: str) -> None:
    async with opened() as transport:
        answer = await transport.request(method, "/away", {"Authorization": "Bearer t"}, b"")

    assert (answer.status, answer.headers.get("location")) == (307, "http://127.0.0.1:1/elsewhere")


async def test_a_defect_of_the_receiver_is_an_answer_of_500(opened: Opened) -> None:
    async with opened() as transport:
        answer = await transport.request("POST", "/broken", {}, b"{}")

    assert answer.status == 500


async def test_a_large_body_arrives_whole(opened: Opened) -> None:
    body = b"x" * 3_000_000

    async with opened() as transport:
        answer = await transport.request("POST", "/sessions", {}, body, answer_bytes_max=4_000_000)

    assert answer.whole
    assert len(json.loads(answer.body)["body"]) == len(body)


async def test_an_answer_is_read_up_to_its_limit(opened: Opened) -> None:
    async with opened() as transport:
        answer = await transport.request("POST", "/sessions", {}, b"x" * 3_000_000, answer_bytes_max=1_000_000)
        next_one = await transport.request("GET", "/sessions", {}, b"")

    assert (answer.status, len(answer.body), answer.whole) == (200, 1_000_000, False)
    assert (next_one.status, next_one.whole) == (200, True)


async def test_several_requests_run_beside_each_other(opened: Opened) -> None:
    async with opened() as transport:
        found = await asyncio.gather(*(_seen(transport, "GET", f"/n/{number}", {}, b"") for number in range(20)))

    assert [one["path"] for one in found] == [f"/agents/n/{number}" for number in range(20)]


# ---- over HTTP only ----------------------------------------------------------------------------------------------

Behaviour: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


@asynccontextmanager
async def _misbehaving(behaviour: Behaviour, timeout_seconds: float = 5.0) -> AsyncIterator[HttpTransport]:
    server = await asyncio.start_server(behaviour, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/agents"
    transport = HttpTransport(url, connections=1, timeout_seconds=timeout_seconds)
    try:
        yield transport
    finally:
        await transport.close()
        server.close()


async def _reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.transport.abort()


async def _half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    writer.close()


async def _rubbish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(10)
    writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    writer.close()


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(65_536):
        pass
    writer.close()


@pytest.mark.parametrize("behaviour", [_reset, _half, _rubbish])
async def test_an_exchange_that_breaks_is_no_answer(behaviour: Behaviour) -> None:
    async with _misbehaving(behaviour) as transport:
        with pytest.raises(NoAnswerError):
            await transport.request("POST", "/sessions", {}, b"{}")


async def test_a_receiver_that_says_nothing_is_no_answer_after_the_timeout() -> None:
    async with _misbehaving(_silent, timeout_seconds=0.3) as transport:
        with pytest.raises(NoAnswerError, match="ReadTimeout"):
            await asyncio.wait_for(transport.request("POST", "/sessions", {}, b"{}"), 5)


async def test_a_port_where_nobody_listens_is_no_answer() -> None:
    transport = HttpTransport("http://127.0.0.1:1/agents", connections=1, timeout_seconds=5)

    with pytest.raises(NoAnswerError, match="ConnectError"):
        await transport.request("POST", "/sessions", {}, b"{}")
    await transport.close()


async def test_a_name_that_does_not_resolve_is_no_answer() -> None:
    transport = HttpTransport("http://nowhere.invalid/agents", connections=1, timeout_seconds=5)

    with pytest.raises(NoAnswerError):
        await transport.request("POST", "/sessions", {}, b"{}")
    await transport.close()


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async with _over_http() as transport:
        answer = await transport.request("GET", "/sessions", {}, b"")

    assert answer.status == 200


async def test_a_password_file_of_the_user_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))

    async with _over_http() as transport:
        seen = await _seen(transport, "GET", "/sessions", {}, b"")

    assert "authorization" not in seen["headers"]
