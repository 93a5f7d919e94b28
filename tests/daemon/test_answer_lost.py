"""Answers that are lost, late, cut off or not true: everything is stored once in the end."""

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from config.settings import MissionControl
from tests.daemon.exchange import Reply, Request
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.station import Station, never, until
from tests.queued import Stopwatch

pytestmark = pytest.mark.anyio


def _one_refused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("body", [b"", b"{}", b'{"ack":null}', b'{"ack":{"count":"many"}}'])
async def test_a_200_without_a_sound_acknowledgement_is_checked(station: Station, full: Peer, body: bytes) -> None:
    session = station.session()
    session.add(30)
    full.next_replies.append(Reply(200, heard=False, body=body))
    exporter = station.exporter(full)

    await exporter.idle()

    assert full.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_a_200_with_a_page_is_sent_again_after_a_minute(station: Station, full: Peer, fast_clock: float) -> None:
    session = station.session()
    session.add(30)
    full.next_replies.append(Reply(200, heard=False, body=b"<html>all is well</html>"))
    exporter = station.exporter(full, timeout_seconds=600.0)  # the clock runs fast: no request is to be given up

    await until(lambda: full.ids() == session.durable_ids())

    first, second = full.event_requests()
    assert second.at - first.answered_at >= 59.0
    assert await exporter.differences() == []


async def test_a_200_without_a_body_is_enough_at_the_floor(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(30)
    exporter = station.exporter(floor)

    await exporter.idle()

    assert len(floor.event_requests()) == 1
    assert floor.ids() == session.durable_ids()


def _lie(request: Request) -> Reply:
    count = len(request.ids())
    ack = {
        "count": count,
        "digest": "0" * 64,
        "last_event_id": None,
        "accepted": count,
        "duplicates": 0,
        "rejected": [],
    }
    return Reply(200, heard=False, body=json.dumps({"ack": ack}).encode())


async def test_a_batch_that_was_acknowledged_and_dropped_is_found_when_more_follows(
    station: Station, full: Peer
) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(full)
    await exporter.idle()
    lies = [True]
    full.script = lambda request: _lie(request) if request.is_events and lies and lies.pop() else None
    session.add(5)
    await until(lambda: len(full.event_requests()) == 2)

    session.add(5)
    await until(lambda: set(full.ids()) == set(session.durable_ids()), 10.0)

    await exporter.idle()
    assert await exporter.differences() == []


async def test_a_batch_that_was_acknowledged_and_dropped_is_found_after_a_restart(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    full.script = lambda request: _lie(request) if request.is_events else None
    first = station.exporter(full)
    await first.idle()
    await first.stop()
    full.script = lambda request: None
    session.add(1)

    exporter = station.exporter(full)
    await exporter.idle()

    assert full.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_an_acknowledgement_lost_after_the_receiver_stored_makes_no_duplicate(
    station: Station, full: Peer
) -> None:
    session = station.session()
    session.add(300)
    full.next_replies.append(Reply(heard=True, lost=True))
    exporter = station.exporter(full)

    await exporter.idle()

    assert full.ids() == session.durable_ids()
    assert [request.ids() for request in full.event_requests()] == [session.durable_ids()] * 2
    assert await exporter.differences() == []


async def test_a_body_that_is_reset_in_the_middle_is_sent_again(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(300, size=1000)
    floor.resets = 2
    exporter = station.exporter(floor)

    await exporter.idle()

    assert floor.ids() == session.durable_ids()
    assert (await exporter.sink_status())["retries"] == 2


async def test_no_answer_is_given_up_in_time_and_the_same_is_sent_again_alone(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(20)
    floor.next_replies.append(Reply(heard=True, hang=True))
    exporter = station.exporter(floor, timeout_seconds=0.5)

    await exporter.idle()

    first, second = floor.event_requests()
    assert first.ids() == second.ids()
    assert 0.9 <= second.at - first.at <= 3.0
    assert floor.open_requests_max["remote-s"] == 1 or second.at - first.at >= 0.5
    assert floor.ids() == session.durable_ids()


async def test_a_registration_without_an_answer_is_repeated_as_it_was(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(5)
    lost = [Reply(heard=True, lost=True)]
    floor.script = lambda request: lost.pop() if lost and request.path.endswith("/sessions") else None
    exporter = station.exporter(floor)

    await exporter.idle()

    registrations = [request.json() for request in floor.requests if request.path.endswith("/sessions")]
    assert registrations == [{"id": "s", "agent_task_id": "s"}] * 2
    assert floor.ids() == session.durable_ids()


async def test_a_registration_answered_with_something_else_is_waited_out(
    station: Station, floor: Peer, fast_clock: float
) -> None:
    session = station.session()
    session.add(5)
    wrong = [Reply(200, heard=False, body=b"<html>")]
    floor.script = lambda request: wrong.pop() if wrong else None
    exporter = station.exporter(floor)

    await until(lambda: floor.ids() == session.durable_ids())

    assert len(exporter.alarms()) == 1


async def test_a_receiver_that_is_not_there_yet_gets_everything_later(station: Station) -> None:
    session = station.session()
    session.add(10)
    peer = Peer(Floor())
    peer.port = _one_refused_port()
    exporter = station.exporter(peer)
    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries > 0)

    with peer:
        await until(lambda: peer.ids() == session.durable_ids())

        assert await exporter.quarantined() == []
        await exporter.stop()


async def test_tls_that_fails_is_waited_out_and_nothing_is_given_up(station: Station) -> None:
    async def no_tls(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(no_tls, "127.0.0.1", 0)
    session = station.session()
    session.add(10)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/agents"
    exporter = station.exporter(station.settings({"default": MissionControl(url=url)}))

    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries > 0)

    status = await exporter.sink_status()
    assert (status["state"], status["lag_events"]) == ("waiting", 10)
    assert "ConnectError" in status["last_error"]
    assert await exporter.quarantined() == []
    server.close()


async def test_a_name_that_does_not_resolve_is_looked_up_again(
    station: Station, floor: Peer, fast_clock: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = station.session()
    session.add(10)
    original: Callable[..., Any] = socket.getaddrinfo
    known = [False]

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "mission-control.test":
            return original(host, *args, **kwargs)
        if not known[0]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return original("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    url = f"http://mission-control.test:{floor.port}/agents"
    exporter = station.exporter(station.settings({"default": MissionControl(url=url, allow_http=True)}))
    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries > 1)
    assert floor.requests == []
    known[0] = True

    await until(lambda: floor.ids() == session.durable_ids())


async def test_a_slow_reader_is_waited_for_and_little_is_held(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3000, size=1000)
    floor.slow_seconds = 0.02
    exporter = station.exporter(floor)

    await exporter.idle()

    assert floor.ids() == session.durable_ids()
    assert floor.open_max == 1


async def test_a_stop_while_the_sink_is_down_takes_less_than_two_seconds(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(10)
    floor.next_replies.append(Reply(heard=True, hang=True))
    exporter = station.exporter(floor)
    await until(lambda: bool(floor.event_requests()))
    watch = Stopwatch()

    await exporter.stop()

    assert watch.seconds() <= 2.5
    again = station.exporter(floor)
    await again.idle()
    assert floor.ids() == session.durable_ids()
    await never(lambda: len(floor.event_requests()) > 2, 0.1)
