"""A secret that a model or a tool types out over many live events is seen by nobody who watches the page."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import exporter.sources.rpc.session as session_module
from config.settings import MissionControl, Source
from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.sources.local_socket import socket_path
from exporter.sources.tap.source import SOCKET_NAME
from tests.daemon.station import Station, until
from tests.sources.rpc.server import SESSION, MadeUpServer

pytestmark = pytest.mark.anyio

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
TEXT = f"The token is {TOKEN} and nothing else.\nGo on.\n\n"


def passing(number: int, type: str, **data: Any) -> dict[str, Any]:
    event = {"type": type, "data": data, "id": f"p{number}", "timestamp": "t", "parentId": None}
    return {**event, "ephemeral": True}


def typed(text: str, length: int) -> list[dict[str, Any]]:
    """The text as a model says it, as it thinks it, as it gives it to a tool, and as the tool puts it out."""
    events = [passing(0, "assistant.message_start", messageId="m")]
    for place in range(0, len(text), length):
        piece, n = text[place : place + length], len(events)
        events += [
            passing(n, "assistant.message_delta", messageId="m", deltaContent=piece),
            passing(n + 1, "assistant.reasoning_delta", reasoningId="r", deltaContent=piece),
            passing(n + 2, "assistant.tool_call_delta", toolCallId="c", inputDelta=piece),
            passing(n + 3, "tool.shell_output", toolCallId="c", stream="stdout", text=piece, sequence=place // length),
            passing(n + 4, "tool.execution_partial_result", toolCallId="c", partialOutput=text[: place + length]),
        ]
    return [*events, passing(len(events), "session.idle")]


@asynccontextmanager
async def page(path: Path) -> AsyncIterator[str]:
    """A Mission Control with its page, at an address."""
    with Store(path) as store:
        server = await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True)
        try:
            yield server.url
        finally:
            await server.stop()


async def watched(url: str, seen: list[bytes]) -> None:
    """Collect what the page's stream says until cancelled."""
    address = f"/api/v1/stream?session={SESSION}"
    async with httpx.AsyncClient(base_url=url, timeout=60) as client, client.stream("GET", address) as answer:
        assert answer.status_code == 200
        async for chunk in answer.aiter_bytes():
            seen.append(chunk)


def texts(stream: bytes) -> dict[str, str]:
    """Every text as the page puts it together, by the type that brought it."""
    found: dict[str, str] = {}
    for line in stream.split(b"\n"):
        if not line.startswith(b'data: {"session"') or b'"ephemeral":true' not in line:
            continue
        for event in json.loads(line.removeprefix(b"data: ")).get("events", ()):
            data = event["data"]
            for field in ("deltaContent", "inputDelta", "text"):
                if field in data:
                    found[event["type"]] = found.get(event["type"], "") + data[field]
            if "partialOutput" in data:
                found[event["type"]] = data["partialOutput"]
    return found


def assert_shown_without_the_secret(stream: bytes) -> None:
    found = texts(stream)
    assert len(found) == 5
    for type, text in found.items():
        assert text.startswith("The token is"), (type, text)
        assert "[REDACTED:" in text and text.rstrip().endswith("Go on."), (type, text)
    assert not [part for part in (TOKEN[at : at + 8] for at in range(4, len(TOKEN) - 8)) if part.encode() in stream]


@pytest.mark.parametrize("length", [1, 5, 17])
async def test_of_a_cli_server(length: int, station: Station, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.01)
    cli = MadeUpServer()
    cli.history = [{"type": "user.message", "data": {}, "id": "e1", "timestamp": "t", "parentId": None}]
    listening = await asyncio.start_server(cli.serve, "127.0.0.1", 0)
    source = Source(url=f"rpc://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    async with page(tmp_path / "receiver.db") as url:
        sinks = {"default": MissionControl(url=f"{url}/agents", live=True)}
        exporter = station.exporter(station.settings(sinks, source=(source,)), redaction=None)
        await exporter.idle()
        seen: list[bytes] = []
        watching = asyncio.create_task(watched(url, seen))
        await until(lambda: seen)
        await until(lambda: any("waitMs" in params and params["waitMs"] for _, params in cli.calls))

        for event in typed(TEXT, length):
            await cli.add(event)
        await until(lambda: b"session.idle" in b"".join(seen))

        assert_shown_without_the_secret(b"".join(seen))
        watching.cancel()
        await exporter.stop()
    cli.hang_up()
    listening.close()


async def test_of_a_tap(station: Station, tmp_path: Path) -> None:
    async with page(tmp_path / "receiver.db") as url:
        station.session(SESSION).add(1)
        sinks = {"default": MissionControl(url=f"{url}/agents", live=True)}
        exporter = station.exporter(station.settings(sinks, source=(Source(url="tap"),)), redaction=None)
        await exporter.idle()
        seen: list[bytes] = []
        watching = asyncio.create_task(watched(url, seen))
        await until(lambda: seen and socket_path(station.state, SOCKET_NAME).exists())
        _, writer = await asyncio.open_unix_connection(str(socket_path(station.state, SOCKET_NAME)))

        for event in typed(TEXT, 3):
            writer.write(json.dumps({"session": SESSION, "dropped": 0, "event": event}).encode() + b"\n")
            await writer.drain()
        await until(lambda: b"session.idle" in b"".join(seen))

        assert_shown_without_the_secret(b"".join(seen))
        watching.cancel()
        writer.close()
        await exporter.stop()


async def test_after_a_tap_has_dropped_events_no_rest_of_a_secret_is_shown(station: Station, tmp_path: Path) -> None:
    async with page(tmp_path / "receiver.db") as url:
        station.session(SESSION).add(1)
        sinks = {"default": MissionControl(url=f"{url}/agents", live=True)}
        exporter = station.exporter(station.settings(sinks, source=(Source(url="tap"),)), redaction=None)
        await exporter.idle()
        seen: list[bytes] = []
        watching = asyncio.create_task(watched(url, seen))
        await until(lambda: seen and socket_path(station.state, SOCKET_NAME).exists())
        _, writer = await asyncio.open_unix_connection(str(socket_path(station.state, SOCKET_NAME)))
        half = TEXT.index(TOKEN) + 12
        pieces = [(TEXT[:half], 0), (TEXT[half + 8 :], 3), ("and on\n", 3), ("and on\n\n", 3)]

        events = [(passing(0, "assistant.message_start", messageId="m"), 0)]
        for piece, dropped in pieces:
            delta = passing(len(events), "assistant.message_delta", messageId="m", deltaContent=piece)
            events.append((delta, dropped))
        for event, dropped in [*events, (passing(99, "session.idle"), 3)]:
            writer.write(json.dumps({"session": SESSION, "dropped": dropped, "event": event}).encode() + b"\n")
        await until(lambda: b"session.idle" in b"".join(seen))

        [text] = texts(b"".join(seen)).values()
        assert text == "Go on.\n\nand on\nand on\n\n"  # the line with the gap in it is not shown
        watching.cancel()
        writer.close()
        await exporter.stop()
