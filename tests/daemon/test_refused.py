"""Answers that refuse events, bodies or the token: only what is at fault is held back, and nothing is lost."""

import math
from pathlib import Path

import pytest

from exporter.core.delivery import verdict
from exporter.errors import Exit
from tests.daemon.exchange import Reply, Request
from tests.daemon.peer import Peer, Script
from tests.daemon.sessions import event
from tests.daemon.station import Station, never, until

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("poison", [0, 250, 499])
async def test_one_poisonous_event_among_500_is_found_by_halving(
    station: Station, floor: Peer, status: int, poison: int
) -> None:
    session = station.session()
    session.add(500)
    floor.script = lambda request: (
        Reply(status) if request.is_events and b'"id":"e%d"' % poison in request.body else None
    )
    exporter = station.exporter(floor)

    ended = await exporter.idle()

    assert ended == Exit.PARTIAL
    assert [one["event"] for one in await exporter.quarantined()] == [f"e{poison}"]
    assert [one["reason"] for one in await exporter.quarantined()] == [f"refused_{status}"]
    assert floor.ids() == [one for one in session.durable_ids() if one != f"e{poison}"]
    assert len(floor.event_requests()) <= 2 * math.log2(500) + 4


async def test_a_poisonous_event_is_not_tried_again_after_a_restart(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(20)
    floor.script = lambda request: Reply(400) if request.is_events and b'"id":"e7"' in request.body else None
    first = station.exporter(floor)
    await first.idle()
    await first.stop()
    before = len(floor.event_requests())
    session.add(5)

    exporter = station.exporter(floor)
    await exporter.idle()

    assert [request.ids() for request in floor.event_requests()[before:]] == [[f"e{n}" for n in range(20, 25)]]
    assert await exporter.differences() == []


async def test_a_file_whose_events_are_all_refused_is_done_with(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3)
    floor.script = lambda request: Reply(400) if request.is_events else None
    first = station.exporter(floor)
    assert await first.idle() == Exit.PARTIAL
    await first.stop()
    before = len(floor.event_requests())

    exporter = station.exporter(floor)
    await exporter.idle()

    assert len(floor.event_requests()) == before
    assert len(await exporter.quarantined()) == 3


async def test_a_single_400_costs_one_repetition_and_loses_nothing(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(500)
    floor.next_replies.append(Reply(400))
    exporter = station.exporter(floor)

    ended = await exporter.idle()

    assert ended == Exit.DONE
    assert floor.ids() == session.durable_ids()
    assert len(floor.event_requests()) == 2


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_token_stops_the_sink_until_it_changes(
    station: Station, floor: Peer, fast_clock: float, tmp_path: Path, status: int
) -> None:
    session = station.session()
    session.add(10)
    token = tmp_path / "token"
    token.write_text("old\n")
    floor.script = lambda request: None if request.headers.get("authorization") == "Bearer new" else Reply(status)
    exporter = station.exporter(floor, token_file=str(token))

    assert await exporter.idle() == Exit.REFUSED
    asked = len(floor.requests)
    await never(lambda: len(floor.requests) > asked, 0.5)
    assert (await exporter.sink_status())["state"] == "refused"
    assert len(exporter.alarms()) == 1
    token.write_text("new\n")

    await until(lambda: floor.ids() == session.durable_ids())
    assert await exporter.idle() == Exit.DONE
    assert (await exporter.sink_status())["state"] == "ok"


async def test_a_refused_token_of_one_sink_holds_back_no_session_for_good(
    station: Station, floor: Peer, fast_clock: float, tmp_path: Path
) -> None:
    sessions = [station.session(f"s{number}") for number in range(5)]
    token = tmp_path / "token"
    token.write_text("new")
    exporter = station.exporter(floor, token_file=str(token))
    for session in sessions:
        session.add(5)
    await until(lambda: all(floor.ids(one.name) == one.durable_ids() for one in sessions))
    floor.script = lambda request: None if request.headers["authorization"] == "Bearer newer" else Reply(401)
    for session in sessions:
        session.add(5)
    await until(lambda: bool(exporter.alarms()))
    token.write_text("newer")

    await until(lambda: all(floor.ids(one.name) == one.durable_ids() for one in sessions))


def _limited(most: int) -> Script:
    return lambda request: Reply(413) if request.is_events and len(request.body) > most else None


async def test_a_limit_of_200_kb_is_learnt_and_everything_arrives(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(4000, size=1000)
    floor.script = _limited(200_000)
    exporter = station.exporter(floor)

    ended = await exporter.idle()

    assert ended == Exit.DONE
    assert floor.ids() == session.durable_ids()
    assert len([request for request in floor.event_requests() if request.status == 413]) <= 4


async def test_an_event_that_is_too_large_by_itself_goes_to_quarantine_after_one_try(
    station: Station, floor: Peer
) -> None:
    session = station.session()
    session.add(10, size=500)
    session.append(event("huge", size=300_000))
    session.add(10, size=500)
    floor.script = _limited(200_000)
    exporter = station.exporter(floor)

    ended = await exporter.idle()

    assert ended == Exit.PARTIAL
    assert [(one["event"], one["reason"]) for one in await exporter.quarantined()] == [("huge", "refused_413")]
    assert floor.ids() == [one for one in session.durable_ids() if one != "huge"]
    assert [request.ids() for request in floor.event_requests()].count(["huge"]) == 1


async def test_what_is_in_quarantine_stays_there_when_the_marks_are_lost(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(3, size=500)
    session.append(event("huge", size=300_000))
    session.add(3, size=500)
    floor.script = _limited(200_000)
    exporter = station.exporter(floor)
    await exporter.idle()
    await exporter.stop()
    (station.state / "marks.db").unlink()
    requests = len(floor.event_requests())
    floor.script = lambda _: None

    exporter = station.exporter(floor)
    assert await exporter.idle() == Exit.PARTIAL

    assert len(floor.event_requests()) > requests
    assert [one["event"] for one in await exporter.quarantined()] == ["huge"]
    assert floor.ids() == [one for one in session.durable_ids() if one != "huge"]


async def test_415_goes_from_zstd_over_gzip_to_identity_and_stays_there(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(50, size=200)

    def plain_only(request: Request) -> Reply | None:
        return Reply(415) if request.is_events and "content-encoding" in request.headers else None

    full.script = plain_only
    exporter = station.exporter(full, compress=True)
    await exporter.idle()
    session.add(50, size=200)
    await exporter.idle()

    used = [request.headers.get("content-encoding") for request in full.event_requests()]
    assert used == ["zstd", "gzip", None, None]
    assert full.ids() == session.durable_ids()
    assert await exporter.quarantined() == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_never_followed_and_the_token_stays_here(
    station: Station, floor: Peer, full: Peer, status: int
) -> None:
    session = station.session()
    session.add(5)
    floor.script = lambda request: Reply(status, {"Location": full.url + "/sessions"})
    exporter = station.exporter(floor, token="the-token")

    await until(lambda: bool(exporter.alarms()))
    await never(lambda: full.connections > 0, 0.3)

    assert (await exporter.sink_status())["last_error"] == f"answered {status}"
    assert await exporter.quarantined() == []


async def test_a_redirect_of_events_elsewhere_is_waited_out(
    station: Station, floor: Peer, full: Peer, fast_clock: float
) -> None:
    session = station.session()
    session.add(5)
    floor.next_replies.append(Reply(302, {"Location": full.url}))
    exporter = station.exporter(floor)

    await until(lambda: floor.ids() == session.durable_ids())

    assert full.connections == 0
    assert len(exporter.alarms()) == 1


async def test_ids_that_the_receiver_rejects_go_to_quarantine_and_the_rest_is_taken(
    station: Station, full: Peer
) -> None:
    session = station.session()
    session.add(5)
    body = b'{"ack":{"count":0,"digest":"%064d","accepted":4,"duplicates":0,"rejected":["e2"]}}' % 0

    def rejecting(request: Request) -> Reply | None:
        if request.is_events and "e2" in request.ids():
            return Reply(200, body=body, heard=False)
        return None

    full.script = rejecting
    exporter = station.exporter(full)
    ended = await exporter.idle()

    assert ended == Exit.PARTIAL
    assert [(one["event"], one["reason"]) for one in await exporter.quarantined()] == [("e2", "rejected_by_receiver")]


async def test_a_quota_that_is_exceeded_stops_the_sink_and_is_asked_again(
    station: Station, floor: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(verdict._BY_KIND, (403, "quota_exceeded"), verdict.Unauthorized(403, 0.3))
    full = b'{"error":{"kind":"quota_exceeded","message":"no","hint":""}}'
    session = station.session()
    session.add(5)
    floor.script = lambda request: Reply(403, body=full) if request.is_events else None
    exporter = station.exporter(floor)
    assert await exporter.idle() == Exit.REFUSED

    floor.script = lambda _: None
    await until(lambda: floor.ids() == session.durable_ids())

    assert await exporter.idle() == Exit.DONE
