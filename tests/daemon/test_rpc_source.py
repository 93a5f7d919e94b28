"""Sessions that only a CLI server has: they arrive once and in order, whatever ends in between."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

import exporter.daemon.remote_sources as observing_module
import exporter.sources.rpc.session as session_module
import exporter.sources.rpc.source as rpc_module
from config.settings import Limits, MissionControl, Settings, Source
from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.daemon.running import Redactors
from exporter.errors import Exit
from tests.daemon.exchange import Reply, Request
from tests.daemon.peer import Peer
from tests.daemon.station import Exporter, Station, never, until
from tests.sources.rpc.server import SESSION, MadeUpServer, event

pytestmark = pytest.mark.anyio


class Listening:
    """A made-up server at an address."""

    def __init__(self, server: MadeUpServer, port: int) -> None:
        self.server = server
        self.url = f"rpc://127.0.0.1:{port}"


@pytest.fixture
async def cli(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Listening]:
    monkeypatch.setattr(rpc_module, "REST_SECONDS", 0.01)
    monkeypatch.setattr("exporter.sources.remote.PAUSE_SECONDS", (0.01, 0.05))
    monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(observing_module, "HOUSEKEEPING_SECONDS", 0.05)
    server = MadeUpServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    yield Listening(server, listening.sockets[0].getsockname()[1])
    server.hang_up()
    listening.close()


def settings_of(station: Station, cli: Listening, peer: Peer, *, live: bool = False, **changes: Any) -> Settings:
    sinks = {"default": MissionControl(url=peer.url, live=live)}
    return station.settings(sinks, **{"source": (Source(url=cli.url),), **changes})


def ids(*numbers: int) -> list[str]:
    return [f"e{n}" for n in numbers]


def line_of(one: dict[str, Any]) -> bytes:
    return json.dumps(one, separators=(",", ":")).encode()


async def source_status(exporter: Exporter, name: str) -> dict[str, Any]:
    [found] = [one for one in (await exporter.ask("status"))["sources"] if one["name"] == name]
    return dict(found)


async def test_a_session_without_a_file_arrives_once_and_in_order(station: Station, cli: Listening, full: Peer) -> None:
    cli.server.history = [event(1), event(2, ephemeral=True), event(3)]
    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(1, 3))

    await cli.server.add(event(4), event(5, ephemeral=True), event(6))
    await until(lambda: full.ids(SESSION) == ids(1, 3, 4, 6))

    assert await exporter.idle() is Exit.DONE
    assert await exporter.differences() == []
    bodies = b"".join(request.body for request in full.event_requests())
    assert b'"ephemeral"' not in bodies
    assert not (station.copilot / "session-state" / SESSION).exists()


async def test_what_is_delivered_is_not_sent_again_after_a_restart(
    station: Station, cli: Listening, full: Peer
) -> None:
    cli.server.history = [event(n) for n in range(1200)]
    first = station.exporter(settings_of(station, cli, full))
    await until(lambda: len(full.ids(SESSION)) >= 500)
    await first.crash(full)
    cli.server.history += [event(n) for n in range(1200, 1300)]

    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: len(full.ids(SESSION)) == 1300)

    await exporter.idle()
    assert full.ids(SESSION) == ids(*range(1300))
    assert await exporter.differences() == []
    await exporter.stop()
    sent = len(full.event_requests())
    again = station.exporter(settings_of(station, cli, full))
    await again.idle()
    assert len(full.event_requests()) == sent


async def test_a_sink_that_is_away_makes_the_server_wait_when_the_journal_is_full(
    station: Station, cli: Listening, full: Peer
) -> None:
    cli.server.page_max = 10
    cli.server.history = [event(n, text="x" * 20_000) for n in range(100)]
    full.script = lambda request: Reply(503) if request.is_events else None
    limits = Limits(poll_seconds=0.1, journal_bytes=1 << 20)
    exporter = station.exporter(settings_of(station, cli, full, limits=limits))
    observing = exporter.running.daemon.observing
    assert observing is not None
    await until(lambda: observing.journaling.problem is not None)
    assert observing.journals.used_bytes <= 1 << 20
    assert "full" in (await source_status(exporter, cli.url))["state"]

    full.script = lambda request: None
    await until(lambda: len(full.ids(SESSION)) == 100, 60.0)

    assert full.ids(SESSION) == ids(*range(100))
    await until(lambda: observing.journaling.problem is None)
    await exporter.stop()
    await station.exporter(settings_of(station, cli, full, limits=limits)).idle()
    assert full.ids(SESSION) == ids(*range(100))


async def test_a_page_or_an_event_for_which_there_is_no_room_at_once_finds_some(
    station: Station, cli: Listening, full: Peer
) -> None:
    cli.server.history = [event(0, text="x" * 450_000)]
    limits = Limits(poll_seconds=0.1, journal_bytes=1 << 20)
    station.exporter(settings_of(station, cli, full, limits=limits))
    await until(lambda: full.ids(SESSION) == ids(0))

    await cli.server.add(*(event(n, text="x" * 20_000) for n in range(1, 41)))
    await until(lambda: len(full.ids(SESSION)) == 41, 30.0)
    await cli.server.add(event(41, text="x" * 2_000_000), event(42))
    await until(lambda: len(full.ids(SESSION)) == 43, 30.0)

    assert full.ids(SESSION) == ids(*range(43))


async def test_a_session_with_a_file_is_read_from_the_file(station: Station, cli: Listening, full: Peer) -> None:
    session = station.session(SESSION)
    history = [event(1), event(2)]
    cli.server.history = history
    session.append(*map(line_of, history))
    exporter = station.exporter(settings_of(station, cli, full, live=True))
    await until(lambda: full.ids(SESSION) == ids(1, 2))
    await until(lambda: "read" in str(cli.server.calls))

    await cli.server.add(event(3), event(4, ephemeral=True))

    def live() -> list[Request]:
        return [one for one in full.requests if one.path.endswith("/live")]

    await until(live)

    await never(lambda: full.ids(SESSION) != ids(1, 2), 0.2)
    assert b'"e4"' in live()[0].body
    assert b'"e3"' not in live()[0].body
    assert list((station.state / "journals").iterdir()) == []
    assert await exporter.differences() == []


async def test_a_file_that_appears_takes_the_place_of_the_journal(station: Station, cli: Listening, full: Peer) -> None:
    cli.server.history = [event(1), event(2)]
    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(1, 2))
    await exporter.idle()

    session = station.session(SESSION)
    session.append(line_of(event(1)))
    session.append(line_of(event(2)), line_of(event(7)))

    await until(lambda: full.ids(SESSION) == ids(1, 2, 7))
    await cli.server.add(event(8))
    await never(lambda: full.ids(SESSION) != ids(1, 2, 7), 0.2)
    session.append(line_of(event(8)))
    await until(lambda: full.ids(SESSION) == ids(1, 2, 7, 8))
    await exporter.idle()
    assert not (station.state / "journals" / SESSION).exists()
    assert not any("rewound" in notice.message for notice in exporter.notices)
    assert await exporter.differences() == []


async def test_what_cannot_be_redacted_is_in_quarantine_and_in_no_journal(
    station: Station, cli: Listening, full: Peer
) -> None:
    def redact(line: bytes, /) -> Redacted:
        if b"unsure" in line:
            return Refused("budget")
        return Masked(line.replace(b"hunter2", b"***"), ("password",)) if b"hunter2" in line else line

    cli.server.history = [event(1, text="unsure hunter2"), event(2, text="hunter2"), event(3)]
    exporter = station.exporter(settings_of(station, cli, full), redaction=Redactors(redact, lambda text: text))
    await until(lambda: full.ids(SESSION) == ids(2, 3))

    assert await exporter.idle() is Exit.PARTIAL
    assert [one["event"] for one in await exporter.quarantined()] == ["e1"]
    assert b"hunter2" not in (station.state / "journals" / SESSION / "events.jsonl").read_bytes()
    assert exporter.running.daemon.store.masked_in_all(SESSION, exporter.running.daemon.runs[0].sink_state.sink_id) == 1


async def test_a_deleted_session_leaves_no_journal_once_every_sink_has_it(
    station: Station, cli: Listening, full: Peer
) -> None:
    cli.server.history = [event(1)]
    station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(1))

    cli.server.send({"method": "session.lifecycle", "params": {"type": "session.deleted", "sessionId": SESSION}})

    await until(lambda: not (station.state / "journals" / SESSION).exists())
    assert full.ids(SESSION) == ids(1)


async def test_with_nothing_named_there_is_no_journal_and_no_connection(
    station: Station, cli: Listening, full: Peer
) -> None:
    station.session().add(3)
    exporter = station.exporter(settings_of(station, cli, full, source=()))
    await exporter.idle()

    assert exporter.running.daemon.observing is None
    assert not (station.state / "journals").exists()
    assert cli.server.calls == []
    assert [one["name"] for one in (await exporter.ask("status"))["sources"]] == ["files"]
