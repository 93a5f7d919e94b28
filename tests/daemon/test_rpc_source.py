"""Sessions that only a CLI server has: they arrive once and in order, whatever ends in between."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

import exporter.daemon.remote_sources as observing_module
import exporter.sources.rpc.session as session_module
import exporter.sources.rpc.source as rpc_module
from config.settings import Limits, MissionControl, Otel, Settings, Source
from exporter.core.events.redaction import Masked, Redacted, Refused
from exporter.errors import Exit
from exporter.pipeline.redactors import Redactors
from tests.daemon.exchange import Reply, Request
from tests.daemon.peer import Peer
from tests.daemon.station import Exporter, Station, never, until
from tests.otel.receiver import Receiver, text_of
from tests.otel.reply import Reply as OtlpReply
from tests.sources.rpc.server import SESSION, MadeUpServer, event

pytestmark = pytest.mark.anyio


class Listening:
    """A made-up server at an address, where it can be absent."""

    def __init__(self, server: MadeUpServer) -> None:
        self.server = server
        self.port = 0

    @property
    def url(self) -> str:
        return f"rpc://127.0.0.1:{self.port}"

    async def listen(self) -> None:
        self._listening = await asyncio.start_server(self.server.serve, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    def leave(self) -> None:
        self._listening.close()
        self.server.hang_up()


@pytest.fixture
async def cli(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Listening]:
    monkeypatch.setattr(rpc_module, "REST_SECONDS", 0.01)
    monkeypatch.setattr("exporter.sources.remote.PAUSE_SECONDS", (0.01, 0.05))
    monkeypatch.setattr(session_module, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(observing_module, "HOUSEKEEPING_SECONDS", 0.05)
    listening = Listening(MadeUpServer())
    await listening.listen()
    yield listening
    listening.leave()


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


async def test_a_signal_that_is_off_fills_no_journal(station: Station, cli: Listening, full: Peer) -> None:
    cli.server.page_max = 10
    cli.server.history = [event(n, text="x" * 20_000) for n in range(100)]
    limits = Limits(poll_seconds=0.1, journal_bytes=1 << 20)
    with Receiver() as receiver:
        receiver.always(logs=OtlpReply(404), metrics=OtlpReply(404))
        endpoint = {"default": Otel(endpoint=receiver.url, history_days=36_500)}
        exporter = station.exporter(settings_of(station, cli, full, limits=limits, otel=endpoint))

        await until(lambda: len(full.ids(SESSION)) == 100, 60.0)

        assert full.ids(SESSION) == ids(*range(100))
        assert (await source_status(exporter, "journals"))["state"] == "ok"
        states = {one["name"]: one["state"] for one in (await exporter.ask("status"))["sinks"]}
        assert states["otel:logs"] == "off (404)"
        await exporter.stop()


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


@pytest.mark.parametrize("push", [False, True], ids=["polled", "pushed"])
async def test_a_session_whose_server_is_gone_is_reported_until_it_goes_on(
    push: bool, station: Station, cli: Listening, full: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing_module, "LOST_SECONDS", 0.2)
    cli.server.history = cli.server.file = [event(1), event(2, type="assistant.turn_end")]
    source = Source(url=cli.url, push=push)
    exporter = station.exporter(settings_of(station, cli, full, source=(source,)))
    await until(lambda: full.ids(SESSION) == ids(1, 2))

    async def becomes(state: str, liveness: str | None = None) -> None:
        async with asyncio.timeout(15):
            while True:
                found = await exporter.ask("session", session=SESSION)
                if (found["state"], found.get("liveness")) == (state, liveness):
                    return
                await asyncio.sleep(0.05)

    await becomes("idle")
    cli.server.protocol = 99  # nobody is let in any more
    cli.server.hang_up()

    await becomes("idle", "unknown")  # it is there, and does not say
    cli.leave()
    await becomes("crashed")  # nothing listens at its address
    await cli.listen()
    cli.server.protocol, cli.server.loaded = 3, False
    cli.server.file = [*cli.server.file, event(3, type="session.shutdown")]
    await until(lambda: full.ids(SESSION) == ids(1, 2, 3))
    await becomes("ended")
    cli.server.history, cli.server.loaded = [*cli.server.file, event(4, type="session.resume")], True
    cli.server.send({"method": "session.lifecycle", "params": {"type": "session.updated", "sessionId": SESSION}})
    await until(lambda: full.ids(SESSION) == ids(1, 2, 3, 4))
    await becomes("idle")


def rewound_by(full: Peer) -> list[str]:
    """The ids that a receiver was told to hide."""
    return [id for one in full.event_requests(SESSION) for id in json.loads(one.body).get("rewound", ())]


async def test_what_was_rewound_at_the_server_is_rewound_at_the_sink(
    station: Station, cli: Listening, full: Peer
) -> None:
    cli.server.history = cli.server.file = [event(n) for n in range(1, 8)]
    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(*range(1, 8)))

    await cli.server.rewind(4, event(8), event(9))

    await until(lambda: full.ids(SESSION) == ids(1, 2, 3, 4, 8, 9))
    assert await exporter.idle() is Exit.DONE
    assert rewound_by(full) == ids(5, 6, 7)
    assert await exporter.differences() == []
    await exporter.stop()
    cli.server.history = cli.server.file = [event(n) for n in (1, 2, 10)]  # while nobody looks
    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(1, 2, 10))
    await exporter.idle()
    assert rewound_by(full) == ids(5, 6, 7, 3, 4, 8, 9)
    assert await exporter.differences() == []


@pytest.mark.parametrize("end", [2, 0], ids=["behind the mark", "everything"])
async def test_a_cold_session_that_was_rewound_is_rewound_at_the_sink(
    end: int, station: Station, cli: Listening, full: Peer
) -> None:
    cli.server.history = cli.server.file = [event(n) for n in range(1, 6)]
    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(1, 2, 3, 4, 5))
    await exporter.stop()

    cli.server.loaded = False
    cli.server.file = [*cli.server.file[:end], event(7)]

    exporter = station.exporter(settings_of(station, cli, full))
    await until(lambda: full.ids(SESSION) == ids(*range(1, end + 1), 7))
    await exporter.idle()
    assert await exporter.differences() == []


async def test_what_was_cut_off_a_journal_can_be_rewound(station: Station, cli: Listening, full: Peer) -> None:
    limits = Limits(poll_seconds=0.1, journal_bytes=1 << 20)
    cli.server.page_max = 10
    cli.server.history = cli.server.file = [event(n, text="x" * 20_000) for n in range(100)]
    exporter = station.exporter(settings_of(station, cli, full, limits=limits))
    await until(lambda: len(full.ids(SESSION)) == 100, 30.0)
    observing = exporter.running.daemon.observing
    assert observing is not None
    await until(lambda: observing.journals.begins(SESSION) > 200_000)

    await cli.server.rewind(5, event(200))

    await until(lambda: full.ids(SESSION) == ids(0, 1, 2, 3, 4, 200))
    await exporter.idle()
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


USED: Final[dict[str, Any]] = {
    "model": "m", "inputTokens": 1000, "outputTokens": 50, "duration": 40, "apiCallId": "call-1",
}  # fmt: skip


def _turn(usage: dict[str, Any], /) -> list[dict[str, Any]]:
    """An interaction as a server tells it: what the call used is ephemeral, and the record in the file is not told."""
    told = event(4, ephemeral=True, type="assistant.usage", **usage)
    answer: dict[str, Any] = {"model": "m", "content": "Yes.", "apiCallId": "call-1", "outputTokens": 50}
    turn = [
        event(1, type="session.start"), event(2), event(3, type="assistant.turn_start"), told,
        event(5, type="assistant.message", **answer), event(6, type="assistant.turn_end"),
    ]  # fmt: skip
    for tenths, one in enumerate(turn):
        one["timestamp"] = f"2026-11-18T10:00:00.{tenths}00Z"
    return turn


@pytest.mark.parametrize("accounting", [{"accounting": {"sourceSessionId": SESSION}}, {}], ids=["1.0.102", "older"])
async def test_what_a_call_used_is_told_by_telemetry_and_delivered_nowhere(
    accounting: dict[str, Any], station: Station, cli: Listening, full: Peer
) -> None:
    told = _turn(USED | accounting)
    told[3]["parentId"] = "record-1" if accounting else "e3"
    cli.server.history = told[:2]
    with Receiver() as receiver:
        exporter = station.exporter(
            settings_of(station, cli, full, otel={"default": Otel(endpoint=receiver.url, history_days=36_500)})
        )
        await until(lambda: full.ids(SESSION) == ids(1, 2))
        await cli.server.add(*told[2:])
        await until(lambda: full.ids(SESSION) == ids(1, 2, 3, 5, 6))
        await until(lambda: len(receiver.spans()) == 2, 20)
        assert await exporter.idle() is Exit.DONE
        root, chat = sorted(receiver.spans(), key=lambda span: len(span.parent_span_id))
        figures = {one.key: one.value.int_value for one in root.attributes if "tokens" in one.key}
        assert figures == {"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 50}
        took = chat.end_time_unix_nano - chat.start_time_unix_nano
        assert took == 140_000_000  # from 40 ms before what it used was told until the answer, 100 ms later
        assert await exporter.differences() == []
        assert full.ids(SESSION) == ids(1, 2, 3, 5, 6)
        assert sorted(text_of(one, "event.id") for one in receiver.logs()) == ids(1, 2, 3, 5, 6)
        await exporter.stop()

        # From the journal alone, and beside the record itself, once the session is read from its file.
        cli.server.loaded, cli.server.file = False, [*told[:3], *told[4:]]
        if accounting:
            record = {**event(0, type="session.usage_record", usage=USED), "id": "record-1"}
            cli.server.file.append({**record, "timestamp": "2026-11-18T10:00:09.000Z"})
        with Receiver() as again:
            other = {"other": Otel(endpoint=again.url, history_days=36_500)}
            exporter = station.exporter(settings_of(station, cli, full, otel=other))
            await until(lambda: len(again.spans()) == 2, 20)
            assert await exporter.idle() is Exit.DONE
            told_again = {span.span_id: span.SerializeToString(deterministic=True) for span in again.spans()}
            assert told_again == {one.span_id: one.SerializeToString(deterministic=True) for one in (root, chat)}
            assert len(again.logs()) == 5 + bool(accounting)
