"""The floor of the wire: what is sent to a receiver that offers nothing, to the letter."""

import json

import pytest

from exporter.errors import Exit
from tests.daemon.peer import Peer
from tests.daemon.sessions import event
from tests.daemon.station import Station, until

pytestmark = pytest.mark.anyio

MIB = 1 << 20


async def test_a_session_is_registered_by_its_id_and_nothing_else(station: Station, floor: Peer) -> None:
    station.session().add(1)
    exporter = station.exporter(floor)

    await exporter.idle()

    first = floor.requests[0]
    assert (first.method, first.path) == ("POST", "/agents/sessions")
    assert first.json() == {"id": "s", "agent_task_id": "s"}


async def test_owner_and_repository_are_named_when_they_are_set(station: Station, floor: Peer) -> None:
    station.session().add(1)
    exporter = station.exporter(floor, owner_id="12", repo_id="34")

    await exporter.idle()

    assert floor.requests[0].json() == {"id": "s", "agent_task_id": "s", "owner_id": 12, "repo_id": 34}


async def test_events_go_to_the_id_that_was_answered(station: Station, floor: Peer) -> None:
    station.session().add(1)
    exporter = station.exporter(floor)

    await exporter.idle()

    assert [request.path for request in floor.event_requests()] == ["/agents/sessions/remote-s/events"]


async def test_the_answered_id_outlives_the_exporter(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(1)
    first = station.exporter(floor)
    await first.idle()
    await first.crash(floor)
    session.add(1)
    before = len(floor.requests)

    exporter = station.exporter(floor)
    await exporter.idle()

    asked = [(request.method, request.path) for request in floor.requests[before:]]
    assert asked == [("GET", "/agents/sessions/remote-s"), ("POST", "/agents/sessions/remote-s/events")]
    assert floor.ids() == session.durable_ids()


async def test_a_body_holds_500_events_at_most(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(1700)
    exporter = station.exporter(floor)

    await exporter.idle()

    sizes = [len(request.ids()) for request in floor.event_requests()]
    assert max(sizes) == 500
    assert sum(sizes) == 1700
    assert floor.ids() == session.durable_ids()


async def test_a_body_holds_about_a_megabyte_at_most(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(400, size=10_000)
    exporter = station.exporter(floor)

    await exporter.idle()

    assert max(len(request.body) for request in floor.event_requests()) <= 1_004_096
    assert len(floor.event_requests()) <= 5
    assert floor.ids() == session.durable_ids()


async def test_a_larger_event_travels_alone(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3)
    session.append(event("large", size=3 * MIB))
    session.add(3)
    exporter = station.exporter(floor)

    await exporter.idle()

    assert ["large"] in [request.ids() for request in floor.event_requests()]
    assert floor.ids() == session.durable_ids()


async def test_an_event_above_eight_megabytes_goes_to_quarantine(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3)
    session.append(event("giant", size=8 * MIB + 100))
    session.add(3)
    exporter = station.exporter(floor)

    ended = await exporter.idle()

    assert ended == Exit.PARTIAL
    assert [(one["event"], one["reason"]) for one in await exporter.quarantined()] == [("giant", "event_too_large")]
    assert floor.ids() == [one for one in session.durable_ids() if one != "giant"]


async def test_nothing_above_the_floor_is_used_unless_offered(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(50, size=500)
    exporter = station.exporter(floor, token="the-token", compress=False)
    await exporter.idle()
    session.replace(*session.lines()[:20])
    session.append(event("shown", ephemeral=True), event("last"))
    await until(lambda: "last" in floor.ids())
    await exporter.idle()

    for request in floor.requests:
        assert "content-encoding" not in request.headers
        assert "idempotency-key" not in request.headers
        assert request.headers["authorization"] == "Bearer the-token"
    assert {tuple(request.json()) for request in floor.event_requests()} == {("events",)}
    assert {request.method for request in floor.requests} == {"POST"}


async def test_compression_is_not_used_where_it_was_not_offered(station: Station, floor: Peer) -> None:
    station.session().add(50, size=500)
    exporter = station.exporter(floor, compress=True)

    await exporter.idle()

    assert all("content-encoding" not in request.headers for request in floor.requests)


async def test_without_a_token_no_authorization_is_sent(station: Station, floor: Peer) -> None:
    station.session().add(1)
    exporter = station.exporter(floor)

    await exporter.idle()

    assert all("authorization" not in request.headers for request in floor.requests)


async def test_ephemeral_events_never_travel_with_durable_ones(station: Station, floor: Peer) -> None:
    session = station.session()
    for number in range(100):
        session.append(event(f"d{number}"), event(f"x{number}", ephemeral=True))
    session.append(event("only", ephemeral=True))
    exporter = station.exporter(floor)

    await exporter.idle()

    assert floor.ids() == [f"d{number}" for number in range(100)]
    assert not any(b"ephemeral" in request.body for request in floor.requests)
    assert await exporter.differences() == []


async def test_a_session_of_ephemeral_events_alone_is_not_registered(station: Station, floor: Peer) -> None:
    session = station.session()
    session.append(event("one", ephemeral=True), event("two", ephemeral=True))
    exporter = station.exporter(floor)

    await exporter.idle()

    assert floor.requests == []


async def test_an_event_is_sent_byte_for_byte(station: Station, floor: Peer) -> None:
    session = station.session()
    odd = [
        b'{ "type" : "x.unknown","id":"o1" , "n":9223372036854775809,"f":1e400,"data":{"a":1,"a":2} }',
        '{"id":"o2","type":"y","data":{"text":"\u2028\u2029 é 𝄞"},"extra":[null]}'.encode(),
        b'{"id":"o3","type":"z","data":{"lone":"\\ud800"},"parentId":null}',
    ]
    session.append(*odd)
    exporter = station.exporter(floor)

    await exporter.idle()

    [request] = floor.event_requests()
    assert request.body == b'{"events":[' + b",".join(odd) + b"]}"


async def test_a_torn_line_is_sent_once_it_is_whole(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(2)
    whole = event("torn", text="é")
    session.append_raw(whole[:-9])
    exporter = station.exporter(floor)
    await exporter.idle()
    assert floor.ids() == ["e0", "e1"]

    session.append_raw(whole[-9:] + b"\n")

    await until(lambda: floor.ids() == ["e0", "e1", "torn"])
    assert json.loads(floor.behind.held("s")[-1][1])["data"] == {"text": "é"}
