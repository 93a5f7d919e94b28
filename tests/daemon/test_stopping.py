"""Coming to a stop: on request while something is under way, and by itself where nothing may be dropped."""

import asyncio

import pytest

from config.settings import Limits, MissionControl
from exporter.errors import Exit
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.station import Exporter, Station, until
from tests.queued import Stopwatch

pytestmark = pytest.mark.anyio

MIB = 1 << 20


async def test_a_stop_waits_for_the_answer_that_is_under_way_and_repeats_nothing(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(500)
    full.next_replies.append(Reply(delay=0.5))
    first = station.exporter(full)
    await until(lambda: bool(full.event_requests()))

    await first.stop()
    second = station.exporter(full)
    await second.idle()

    assert len(full.event_requests()) == 1
    assert full.ids() == session.durable_ids()


async def test_a_stop_in_the_middle_of_a_backlog_repeats_nothing(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(12_000)
    full.script = lambda request: Reply(delay=0.05) if request.is_events else None
    first = station.exporter(full)
    await until(lambda: len(full.event_requests()) >= 2)

    await first.stop()
    assert len(full.ids()) < 12_000
    second = station.exporter(full)
    await second.idle()

    sent = [identity for request in full.event_requests() for identity in request.ids()]
    assert len(sent) == len(set(sent))
    assert full.ids() == session.durable_ids()


async def test_a_stop_while_waiting_for_a_sink_takes_no_time(station: Station, floor: Peer) -> None:
    station.session().add(5)
    floor.script = lambda request: Reply(503, {"Retry-After": "60"})
    exporter = station.exporter(floor)
    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries > 0)
    watch = Stopwatch()

    await exporter.stop()

    assert watch.seconds() < 1.0


async def test_a_stop_of_an_idle_exporter_takes_no_time(station: Station, floor: Peer) -> None:
    station.session().add(5)
    exporter = station.exporter(floor)
    await exporter.idle()
    watch = Stopwatch()

    await exporter.stop()

    assert watch.seconds() < 1.0


def _small_quarantine(station: Station, peer: Peer) -> Exporter:
    limits = Limits(poll_seconds=0.1, quarantine_bytes=MIB)
    return station.exporter(station.settings({"default": MissionControl(url=peer.url)}, limits=limits))


async def test_a_full_quarantine_stops_its_session_loudly_and_no_other(
    station: Station, full: Peer, fast_clock: float
) -> None:
    session, other = station.session(), station.session("other")
    session.add(3)
    exporter = _small_quarantine(station, full)
    await exporter.idle()
    session.append(b"rubbish" * 80_000, b"garbage" * 100_000)
    session.add(3)
    await until(lambda: any("quarantine is full" in notice.message for notice in exporter.alarms()))

    other.add(5)
    await until(lambda: full.ids("other") == other.durable_ids())

    assert full.ids() == ["e0", "e1", "e2"]
    assert (await exporter.sink_status())["state"] == "stopped"
    assert len([notice for notice in exporter.alarms() if "quarantine is full" in notice.message]) == 1


async def test_a_session_goes_on_when_the_quarantine_has_room_again(
    station: Station, full: Peer, fast_clock: float
) -> None:
    session = station.session()
    session.append(b"rubbish" * 120_000)
    exporter = _small_quarantine(station, full)
    await until(lambda: exporter.running.daemon.quarantine.count() == 1)
    session.append(b"garbage" * 120_000)
    session.add(3)
    await until(lambda: any("quarantine is full" in notice.message for notice in exporter.alarms()))
    [entry] = await exporter.quarantined()

    await exporter.ask("quarantine_drop", numbers=[entry["n"]])

    await until(lambda: full.ids() == session.durable_ids())
    assert await exporter.idle() == Exit.PARTIAL
    assert len(await exporter.quarantined()) == 1


async def test_a_session_written_while_the_exporter_stops_is_complete_after_the_next_start(
    station: Station, full: Peer
) -> None:
    session = station.session()
    exporter = station.exporter(full)

    async def write() -> None:
        for _ in range(300):
            session.add(1)
            await asyncio.sleep(0.001)

    writing = asyncio.create_task(write())
    for _ in range(4):
        await asyncio.sleep(0.05)
        await exporter.stop()
        exporter = station.exporter(full)
    await writing

    await until(lambda: full.ids() == session.durable_ids())
    sent = [identity for request in full.event_requests() for identity in request.ids()]
    assert len(sent) == len(set(sent))
