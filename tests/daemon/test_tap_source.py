"""What a tap shows goes to the sinks that show it, once, redacted, and is owed to nobody."""

import asyncio
import json

import pytest

from config.settings import MissionControl, Source
from exporter.core.events.redaction import Masked, Redacted
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from exporter.sources.local_socket import socket_path
from exporter.sources.tap.source import SOCKET_NAME
from tests.daemon.exchange import Request
from tests.daemon.peer import Peer
from tests.daemon.sessions import event
from tests.daemon.station import Station, never, until

pytestmark = pytest.mark.anyio


def redact(line: bytes, /) -> Redacted:
    return Masked(line.replace(b"hunter2", b"***"), ("password",)) if b"hunter2" in line else line


def told(line: bytes) -> bytes:
    return json.dumps({"session": "s", "dropped": 0, "event": json.loads(line)}).encode() + b"\n"


async def test_live_events_of_a_tap_are_shown_and_never_delivered(station: Station, full: Peer) -> None:
    def live() -> list[Request]:
        return [one for one in full.requests if one.path.endswith("/live")]

    session = station.session()
    session.add(3)
    sinks = {"default": MissionControl(url=full.url, live=True)}
    settings = station.settings(sinks, source=(Source(url="tap"),))
    exporter = station.exporter(settings, redaction=Redactors(redact, lambda text: text))
    await until(lambda: full.ids() == ["e0", "e1", "e2"])
    await exporter.idle()
    before = exporter.running.daemon.runs[0].lanes["s"].mark
    await until(socket_path(station.state, SOCKET_NAME).exists)
    _, writer = await asyncio.open_unix_connection(str(socket_path(station.state, SOCKET_NAME)))
    passing = told(event("p1", ephemeral=True, text="hunter2"))

    writer.write(passing + passing + told(event("durable")))
    await until(live)

    await never(lambda: len(live()) > 1 or len(full.ids()) != 3, 0.3)
    assert live()[0].body.count(b'"p1"') == 1
    assert b"hunter2" not in live()[0].body
    assert b'"durable"' not in live()[0].body
    assert exporter.running.daemon.runs[0].lanes["s"].mark == before
    [tap] = [one for one in (await exporter.ask("status"))["sources"] if one["name"] == "tap"]
    assert tap["state"] == "1 connected"
    assert await exporter.idle() is Exit.DONE
    writer.close()
    await exporter.stop()
    assert not socket_path(station.state, SOCKET_NAME).exists()
    assert list((station.state / "journals").iterdir()) == []
