"""Answers that mean "later": nothing is lost, nothing is hurried, and nothing waits longer than it must."""

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest

from config.settings import MissionControl
from exporter.errors import Exit
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.station import Station, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_a_passing_trouble_is_waited_out(station: Station, floor: Peer, fast_clock: float, status: int) -> None:
    session = station.session()
    session.add(20)
    floor.next_replies += [Reply(status), Reply(status)]
    exporter = station.exporter(floor)

    ended = await exporter.idle()

    assert ended == Exit.DONE
    assert floor.ids() == session.durable_ids()
    assert [request.status for request in floor.event_requests()] == [status, status, 200]
    assert (await exporter.sink_status())["retries"] == 2


async def test_five_times_503_is_over_within_six_seconds(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(2000, size=500)
    floor.next_replies += [Reply(503)] * 5
    exporter = station.exporter(floor)

    await exporter.idle()

    requests = floor.event_requests()
    first_accepted = next(request for request in requests if request.status == 200)
    assert floor.ids() == session.durable_ids()
    assert first_accepted.at - requests[0].at <= 6.0


async def test_a_named_number_of_seconds_is_waited(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(10)
    floor.next_replies += [Reply(429, {"Retry-After": "3"})]
    exporter = station.exporter(floor)

    await exporter.idle()

    requests = floor.event_requests()
    waits = [after.at - before.answered_at for before, after in pairwise(requests)]
    assert len(waits) == 1
    assert all(3.0 <= wait <= 4.0 for wait in waits), waits
    assert floor.ids() == session.durable_ids()


def _date(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("header", ["0", "-5", "0.001", "Thu, 01 Jan 1970 00:00:00 GMT"])
async def test_a_receiver_cannot_make_us_ask_more_often(
    station: Station, floor: Peer, fast_clock: float, header: str
) -> None:
    """In ten seconds 2,000 to 12,500 requests came; without the header it is at most one each half second."""
    for number in range(20):
        station.session(f"s{number}").add(1)
    floor.script = lambda request: Reply(503, {"Retry-After": header})
    station.exporter(floor)
    await until(lambda: floor.requests)
    first = floor.requests[0].at

    await until(lambda: time.monotonic() - first > 10.0)

    assert 2 <= len([request for request in list(floor.requests) if request.at - first <= 10.0]) <= 22


async def test_every_form_of_retry_after_is_read_and_clamped(station: Station) -> None:
    session = station.session()
    session.add(10)
    forms = {
        "date": (_date(3), 1.5, 4.5),
        "past": (_date(-3600), 0.4, 2.5),
        "negative": ("-7", 0.4, 2.5),
        "garbage": ("soon", 0.4, 2.5),
        "empty": ("", 0.4, 2.5),
    }
    peers = {name: Peer(Floor()) for name in forms}
    for name, (header, _, _) in forms.items():
        peers[name].__enter__()
        peers[name].next_replies.append(Reply(503, {"Retry-After": header}))
    try:
        exporter = station.exporter(
            station.settings({name: MissionControl(url=peer.url) for name, peer in peers.items()})
        )

        await exporter.idle()

        for name, (_, least, most) in forms.items():
            first, second = peers[name].event_requests()
            assert least <= second.at - first.answered_at <= most, name
            assert peers[name].ids() == session.durable_ids()
    finally:
        for peer in peers.values():
            peer.__exit__(None, None, None)


async def test_a_billion_seconds_are_not_waited(station: Station, floor: Peer, fast_clock: float) -> None:
    session = station.session()
    session.add(10)
    floor.next_replies.append(Reply(503, {"Retry-After": "1000000000"}))
    exporter = station.exporter(floor)

    await until(lambda: len(floor.event_requests()) == 2, 25.0)

    first, second = floor.event_requests()
    assert 60.0 <= second.at - first.answered_at <= 400.0
    await until(lambda: floor.ids() == session.durable_ids())
    assert not await exporter.quarantined()


@pytest.mark.alone
@pytest.mark.parametrize("status", [501, 505])
async def test_a_server_that_cannot_raises_an_alarm_and_is_asked_again_at_the_ceiling(
    station: Station, floor: Peer, fast_clock: float, status: int
) -> None:
    session = station.session()
    session.add(10)
    floor.next_replies.append(Reply(status))
    exporter = station.exporter(floor)

    await until(lambda: floor.ids() == session.durable_ids())

    first, second = floor.event_requests()
    assert 50.0 <= second.at - first.answered_at <= 70.0
    assert [notice.fields for notice in exporter.alarms()] == [{"why": f"answered {status}"}]
    assert not await exporter.quarantined()


async def test_while_a_sink_fails_many_sessions_knock_one_at_a_time(station: Station, floor: Peer) -> None:
    sessions = [station.session(f"s{number}") for number in range(50)]
    for session in sessions:
        session.add(5)
    down = [True]
    floor.script = lambda request: Reply(503, delay=0.1) if down[0] else None
    exporter = station.exporter(floor, connections=4)

    await until(lambda: len(floor.requests) >= 6 and not floor.busy(), 20.0)
    knocks = list(floor.requests)[4:]
    down[0] = False

    assert all(after.at >= before.answered_at for before, after in pairwise(knocks))
    assert await exporter.idle() == Exit.DONE
    assert all(floor.ids(session.name) == session.durable_ids() for session in sessions)


async def test_a_sink_that_stays_down_ends_until_idle_and_keeps_the_data(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(5)
    floor.script = lambda request: Reply(503)
    settings = station.settings({"default": MissionControl(url=floor.url)}, give_up_seconds=1.0)
    exporter = station.exporter(settings)

    assert await exporter.idle() == Exit.UNREACHABLE
    await exporter.stop()
    floor.script = lambda request: None

    assert await station.exporter(floor).idle() == Exit.DONE
    assert floor.ids() == session.durable_ids()


async def test_a_jump_of_the_wall_clock_changes_no_wait_and_ends_nothing(
    station: Station, floor: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = station.session()
    session.add(5)
    exporter = station.exporter(floor)
    await until(lambda: floor.ids() == session.durable_ids())
    floor.next_replies += [Reply(503, {"Retry-After": "1"}), Reply(503, {"Retry-After": "1"})]
    session.add(5)
    await until(lambda: len(floor.event_requests()) == 2)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400)

    waiting = await exporter.idle()

    assert waiting == Exit.DONE
    requests = floor.event_requests()
    waits = [after.at - before.answered_at for before, after in pairwise(requests[1:])]
    assert all(0.9 <= wait <= 60.0 for wait in waits), waits  # none of a day, and none of no time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    session.add(5)
    await until(lambda: floor.ids() == session.durable_ids())
