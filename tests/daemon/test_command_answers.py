"""What a command printed stays here when a server, an agent host or a tap tells it, live and after a restart."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import exporter.sources.rpc.session as session_module
from config.settings import MissionControl, Source
from exporter.core.events.redaction import Redacted, Refused
from exporter.pipeline.redactors import Redactors
from exporter.sources.local_socket import socket_path
from exporter.sources.tap.source import SOCKET_NAME
from exporter.wiring.redactor import make_redaction
from tests.daemon.peer import Peer
from tests.daemon.station import Station, until
from tests.daemon.test_live_secrets import page, passing, watched
from tests.sources.rpc.server import SESSION, MadeUpServer

pytestmark = pytest.mark.anyio

SECRET = "amber jetty lagoon"
"""Nothing but the command says that it is one."""


def durable(n: int, type: str, **data: Any) -> dict[str, Any]:
    return {"type": type, "data": data, "id": f"e{n}", "timestamp": "2026-11-18T09:00:00Z", "parentId": None}


def start(n: int, call: str, command: str) -> dict[str, Any]:
    return durable(n, "tool.execution_start", toolCallId=call, toolName="bash", arguments={"command": command})


def answer(n: int, call: str) -> dict[str, Any]:
    result = {"content": SECRET, "contents": [{"type": "text", "text": SECRET, "size": 3}]}
    return durable(n, "tool.execution_complete", toolCallId=call, success=True, result=result)


def pieces(first: int, call: str) -> list[dict[str, Any]]:
    return [
        passing(first, "tool.shell_output", toolCallId=call, stream="stdout", text=SECRET, sequence=0),
        passing(first + 1, "tool.execution_partial_result", toolCallId=call, partialOutput=SECRET),
    ]


async def test_a_cli_server_is_known_by_its_journal_after_a_restart(
    station: Station, tmp_path: Path, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.01)
    cli = MadeUpServer()
    cli.history = [durable(1, "user.message", content="Go"), start(2, "c", "pass show a"), start(3, "d", "ls")]
    listening = await asyncio.start_server(cli.serve, "127.0.0.1", 0)
    source = Source(url=f"rpc://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    settings = station.settings({"default": MissionControl(url=full.url)}, source=(source,))
    first = station.exporter(settings, redaction=None)
    await until(lambda: len(full.ids(SESSION)) == 3)
    await first.crash(full)

    again = station.exporter(settings, redaction=None)
    await until(lambda: any("waitMs" in params and params["waitMs"] for _, params in cli.calls))
    await cli.add(answer(4, "c"), answer(5, "d"), answer(6, "nobody knows"), start(7, "c", "ls"), answer(8, "c"))
    await until(lambda: len(full.ids(SESSION)) == 8)
    await again.idle()

    bodies = b"\n".join(request.body for request in full.event_requests())
    found = {one["id"]: json.dumps(one) for one in events_in(bodies)}
    assert [SECRET in found[f"e{n}"] for n in (4, 5, 6, 8)] == [False, True, True, True]
    assert found["e4"].count("[REDACTED:printed.pass:") == 3
    assert '"size": 3' in found["e4"]
    assert '"success": true' in found["e4"]
    journal = b"".join(path.read_bytes() for path in station.state.rglob("events.jsonl"))
    assert journal.count(SECRET.encode()) == 6
    assert await again.differences() == []
    [status] = [one for one in (await again.ask("status"))["sources"] if one["name"] == "journals"]
    assert status["calls_unknown"] == 1
    await again.stop()
    cli.hang_up()
    listening.close()


async def test_the_answer_to_a_start_that_is_refused_is_masked(station: Station, full: Peer) -> None:
    cli = MadeUpServer()
    cli.history = [durable(1, "user.message", content="Go"), start(2, "c", "pass show a"), answer(3, "c")]
    listening = await asyncio.start_server(cli.serve, "127.0.0.1", 0)
    source = Source(url=f"rpc://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
    settings = station.settings({"default": MissionControl(url=full.url)}, source=(source,))
    rules = make_redaction(settings)

    def event(line: bytes, /) -> Redacted:
        return Refused("timeout") if b"tool.execution_start" in line else rules.event(line)

    exporter = station.exporter(settings, redaction=Redactors(event, rules.text, commands=rules.commands))
    await until(lambda: len(full.ids(SESSION)) == 2)
    await exporter.idle()

    bodies = b"\n".join(request.body for request in full.event_requests())
    assert SECRET.encode() not in bodies
    assert bodies.count(b"[REDACTED:printed.pass:") == 3
    await exporter.stop()
    cli.hang_up()
    listening.close()


def events_in(bodies: bytes) -> list[dict[str, Any]]:
    return [one for line in bodies.split(b"\n") for one in json.loads(line)["events"]]


@pytest.mark.parametrize("told", ["by the file", "by the tap", "by the file that grew"])
async def test_the_pieces_that_a_tap_tells_are_masked_whole(told: str, station: Station, tmp_path: Path) -> None:
    async with page(tmp_path / "receiver.db") as url:
        file, starts = station.session(SESSION), start(2, "c", "cd /srv && pass show a")
        file.append(
            *(
                json.dumps(one).encode()
                for one in (durable(1, "user.message", content="Go"), starts)[: 1 + (told == "by the file")]
            )
        )
        sinks = {"default": MissionControl(url=f"{url}/agents", live=True)}
        exporter = station.exporter(station.settings(sinks, source=(Source(url="tap"),)), redaction=None)
        await exporter.idle()
        seen: list[bytes] = []
        watching = asyncio.create_task(watched(url, seen))
        await until(lambda: seen and socket_path(station.state, SOCKET_NAME).exists())
        _, writer = await asyncio.open_unix_connection(str(socket_path(station.state, SOCKET_NAME)))

        async def tell(*events: dict[str, Any]) -> None:
            for event in events:
                writer.write(json.dumps({"session": SESSION, "dropped": 0, "event": event}).encode() + b"\n")
            await writer.drain()

        await tell(*pieces(20, "another call"), passing(8, "session.idle"))
        await until(lambda: b'"p8"' in b"".join(seen))
        if told == "by the file that grew":
            file.append(json.dumps(starts).encode())
        await tell(*([starts] if told == "by the tap" else []), *pieces(0, "c"), passing(9, "session.idle"))
        await until(lambda: b'"p9"' in b"".join(seen))

        shown = b"".join(seen)
        assert SECRET.encode() not in shown
        assert shown.count(b"[REDACTED:printed.pass:") == 2
        watching.cancel()
        writer.close()
        await exporter.stop()
