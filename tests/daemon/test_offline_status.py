"""What `status` says of telemetry when no daemon runs: it counts, or says that it estimates."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from config.settings import MissionControl, Settings
from exporter.app import ask
from tests.daemon.peer import Peer
from tests.daemon.station import Station, until
from tests.daemon.telemetry import DEMO, delivered, demo_session, logged, settings_for
from tests.otel.receiver import Receiver
from tests.otel.reply import Reply

_SIGNALS: Final = ("traces", "metrics", "logs")

pytestmark = pytest.mark.anyio


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as opened:
        yield opened


async def _asleep(settings: Settings) -> dict[str, dict[str, Any]]:
    answer = await ask(settings, {"do": "status"}, lambda _: None)
    assert answer["daemon"]["running"] is False
    return {sink["name"].partition(":")[2]: sink for sink in answer["sinks"]}


def _lag(sink: dict[str, Any]) -> tuple[int, bool, bool]:
    return sink["lag_events"], sink["is_estimate"], sink["sums_wait"]


async def test_what_is_delivered_is_not_owed(station: Station, receiver: Receiver) -> None:
    session = station.session()
    settings = settings_for(station, receiver)
    exporter = station.exporter(settings)
    for first in range(0, len(DEMO), 7):  # of many of these parts no span is finished
        session.append(*DEMO[first : first + 7])
        await until(lambda: set(logged(receiver)) == set(session.durable_ids()))
    await exporter.idle()
    await exporter.stop()

    asleep = await _asleep(settings)

    assert {signal: _lag(asleep[signal]) for signal in _SIGNALS} == dict.fromkeys(_SIGNALS, (0, False, False))
    assert {sink["lag_bytes"] for sink in asleep.values()} == {0}


async def test_a_directory_that_is_no_session_is_not_owed(station: Station, receiver: Receiver) -> None:
    demo_session(station)
    settings = settings_for(station, receiver)
    await (await delivered(station, settings)).stop()
    demo_session(station, "s.backup")

    asleep = await _asleep(settings)

    assert {signal: _lag(asleep[signal]) for signal in _SIGNALS} == dict.fromkeys(_SIGNALS, (0, False, False))


async def test_what_came_since_is_counted_without_what_is_ephemeral(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    settings = settings_for(station, receiver)
    await (await delivered(station, settings)).stop()
    session.add(5, size=9_000)
    session.append(
        b'{"type":"x","data":{},"id":"e","timestamp":"2026-11-18T10:00:00Z","parentId":null,"ephemeral":true}'
    )

    asleep = await _asleep(settings)

    assert {signal: _lag(asleep[signal]) for signal in _SIGNALS} == dict.fromkeys(_SIGNALS, (5, False, False))


async def test_before_the_first_start_the_events_are_counted(station: Station, receiver: Receiver) -> None:
    demo_session(station)

    asleep = await _asleep(settings_for(station, receiver))

    assert {_lag(sink) for sink in asleep.values()} == {(len(DEMO), False, False)}
    assert {sink["state"] for sink in asleep.values()} == {"never used"}


async def test_a_large_backlog_is_an_estimate(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    settings = settings_for(station, receiver)
    await (await delivered(station, settings)).stop()
    session.add(300, size=5_000)

    asleep = await _asleep(settings)

    for sink in asleep.values():
        assert sink["is_estimate"]
        assert 300 <= sink["lag_events"] <= 900


async def test_a_file_that_was_put_in_the_place_of_another_is_an_estimate(station: Station, receiver: Receiver) -> None:
    session = demo_session(station)
    settings = settings_for(station, receiver)
    await (await delivered(station, settings)).stop()
    session.replace(*DEMO[:20])

    asleep = await _asleep(settings)

    assert {_lag(sink) for sink in asleep.values()} == {(20, True, False)}


async def test_sums_that_were_not_taken_wait(station: Station, receiver: Receiver, fast_clock: float) -> None:
    demo_session(station)
    settings = settings_for(station, receiver, signals=("metrics",), give_up_seconds=60.0)
    receiver.plan(then=Reply(503))
    exporter = station.exporter(settings)
    await exporter.idle()
    running = await exporter.sink_status("otel:metrics")
    await exporter.stop()

    asleep = await _asleep(settings)

    assert (_lag(running), running["state"]) == ((0, False, True), "waiting")
    assert _lag(asleep["metrics"]) == (0, False, True)
    receiver.plan(then=Reply())
    await (await delivered(station, settings)).stop()
    assert _lag((await _asleep(settings))["metrics"]) == (0, False, False)


async def test_what_was_confirmed_is_said_when_nothing_runs(station: Station, full: Peer, floor: Peer) -> None:
    station.session().add(2)
    sinks = {name: MissionControl(url=peer.url) for name, peer in (("full", full), ("floor", floor))}
    settings = station.settings(sinks)
    exporter = station.exporter(settings)
    await exporter.idle()
    await exporter.stop()

    answer = await ask(settings, {"do": "status"}, lambda _: None)

    told = {sink["name"]: sink for sink in answer["sinks"]}
    assert [told[f"mission_control.{name}"]["unconfirmed"] for name in sinks] == [0, 1]
    assert told["mission_control.full"]["confirmed_at"] is not None
    assert told["mission_control.floor"]["confirmed_at"] is None
