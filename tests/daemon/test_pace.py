"""How requests follow each other: one at a time per session, several sessions at once, gathering meanwhile."""

import asyncio
import time

import pytest

from exporter.errors import Exit
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.sessions import event
from tests.daemon.station import Station, until

pytestmark = pytest.mark.anyio


async def test_a_session_has_one_request_under_way_and_several_sessions_have_one_each(
    station: Station, floor: Peer
) -> None:
    sessions = [station.session(f"s{number}") for number in range(6)]
    for session in sessions:
        session.add(1600)
    floor.script = lambda request: Reply(delay=0.05) if request.is_events else None
    exporter = station.exporter(floor, connections=3)

    await exporter.idle()

    assert all(floor.open_requests_max[f"remote-{one.name}"] == 1 for one in sessions)
    assert 1 < floor.open_max <= 3
    assert all(floor.ids(one.name) == one.durable_ids() for one in sessions)


async def test_what_is_written_while_a_request_is_under_way_goes_out_together(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(1)
    floor.next_replies.append(Reply(delay=0.5))
    exporter = station.exporter(floor)
    await until(lambda: bool(floor.event_requests()))

    for _ in range(50):
        session.add(1)
        await asyncio.sleep(0.002)
    await exporter.idle()

    sizes = [len(request.ids()) for request in floor.event_requests()]
    assert sum(sizes) == 51
    assert len(sizes) <= 3
    assert floor.ids() == session.durable_ids()


async def test_an_event_after_a_pause_is_sent_at_once(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(1)
    exporter = station.exporter(floor)
    await exporter.idle()
    delays = []

    for _ in range(10):
        before = time.monotonic()
        session.add(1)
        await until(lambda: floor.ids() == session.durable_ids())
        delays.append(floor.event_requests()[-1].at - before)
        await exporter.idle()

    assert sorted(delays)[5] <= 0.05, delays


async def test_a_stream_of_small_events_is_at_most_200_requests_a_second(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(1)
    exporter = station.exporter(floor)
    await exporter.idle()
    begin = time.monotonic()

    while time.monotonic() - begin < 1.0:
        session.add(1)
        await asyncio.sleep(0.0005)
    await exporter.idle()

    times = [request.at for request in floor.event_requests()][1:]
    assert floor.ids() == session.durable_ids()
    assert len(times) / (times[-1] - times[0]) <= 215


async def test_a_huge_session_does_not_starve_a_small_one(station: Station, floor: Peer) -> None:
    huge = station.session("huge")
    huge.add(8000, size=1500)
    floor.script = lambda request: Reply(delay=0.03) if request.is_events else None
    exporter = station.exporter(floor, connections=1)
    await until(lambda: len(floor.event_requests()) >= 2)

    small = station.session("small")
    small.add(3)
    await until(lambda: floor.ids("small") == small.durable_ids())

    assert len(floor.ids("huge")) < 8000
    assert await exporter.idle() == Exit.DONE
    assert floor.ids("huge") == huge.durable_ids()


async def test_a_hundred_sessions_that_start_at_once_all_arrive(station: Station, floor: Peer) -> None:
    exporter = station.exporter(floor)
    sessions = [station.session(f"s{number}") for number in range(100)]
    for session in sessions:
        session.append(event("first"), event("second"))

    await until(lambda: all(len(floor.ids(one.name)) == 2 for one in sessions))

    assert await exporter.idle() == Exit.DONE


async def test_a_session_moved_away_and_back_is_sent_once(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(floor)
    await exporter.idle()
    away = station.copilot / "away"
    session.directory.rename(away)
    await until(lambda: exporter.running.daemon.source.sessions["s"].gone)
    away.rename(session.directory)
    session.add(5)

    await until(lambda: floor.ids() == session.durable_ids())
    await exporter.idle()

    assert sum(len(request.ids()) for request in floor.event_requests()) == 15


async def test_a_file_deleted_while_the_sink_is_down_is_drained(
    station: Station, floor: Peer, fast_clock: float
) -> None:
    session = station.session()
    session.add(600)
    ids = session.durable_ids()
    floor.next_replies += [Reply(503)] * 3
    exporter = station.exporter(floor)
    await until(lambda: bool(floor.event_requests()))

    session.path.unlink()
    session.directory.rmdir()

    await until(lambda: floor.ids() == ids)
    assert await exporter.idle() == Exit.DONE


async def test_an_old_session_is_left_for_backfill(station: Station, floor: Peer) -> None:
    old, recent = station.session("old"), station.session("recent")
    old.add(3)
    old.age(days=8)
    recent.add(3)
    exporter = station.exporter(floor)

    await exporter.idle()

    assert floor.ids("recent") == recent.durable_ids()
    assert floor.ids("old") == []
    assert (await exporter.ask("backfill", sessions=["old"]))["exit"] == Exit.DONE
    assert floor.ids("old") == old.durable_ids()


async def test_an_old_session_that_goes_on_is_sent_from_its_first_event(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3)
    session.age(days=8)
    exporter = station.exporter(floor)
    await exporter.idle()
    assert floor.ids() == []

    session.add(1)

    await until(lambda: floor.ids() == session.durable_ids())
