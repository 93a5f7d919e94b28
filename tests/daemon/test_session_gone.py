"""Answers about a session as a whole: not there, deleted, or held otherwise than believed."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from config.settings import Limits, MissionControl
from exporter.errors import Exit
from exporter.missioncontrol.ingest import write_jobs
from tests.daemon.exchange import Reply, Request
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor, Full
from tests.daemon.station import Station, never, until

pytestmark = pytest.mark.anyio


def _registrations(peer: Peer) -> list[Request]:
    return [one for one in list(peer.requests) if one.method == "POST" and one.path == "/agents/sessions"]


async def test_a_session_that_is_lost_there_is_made_again_from_its_first_event(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(700)
    exporter = station.exporter(floor)
    await exporter.idle()
    assert isinstance(floor.behind, Floor)
    floor.behind.forget("s")

    session.add(5)
    await until(lambda: floor.ids() == session.durable_ids())

    assert len(_registrations(floor)) == 2
    assert await exporter.idle() == Exit.DONE
    assert await exporter.differences() == []


async def test_a_session_lost_while_the_exporter_was_off_is_made_again(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(20)
    first = station.exporter(floor)
    await first.idle()
    await first.stop()
    assert isinstance(floor.behind, Floor)
    floor.behind.forget("s")
    session.add(5)

    exporter = station.exporter(floor)
    await exporter.idle()

    assert floor.ids() == session.durable_ids()


async def test_an_address_without_a_mission_control_is_not_stormed(station: Station, floor: Peer) -> None:
    station.session().add(5)
    floor.script = lambda request: Reply(404)
    exporter = station.exporter(floor)

    await never(lambda: len(floor.requests) > 3, 2.0)

    assert exporter.alarms()
    assert await exporter.quarantined() == []


async def test_an_address_without_a_mission_control_loses_nothing(
    station: Station, floor: Peer, fast_clock: float
) -> None:
    session = station.session()
    session.add(5)
    absent = [True]
    floor.script = lambda request: Reply(404) if absent[0] else None
    exporter = station.exporter(floor)
    await until(lambda: bool(exporter.alarms()))
    absent[0] = False

    await until(lambda: floor.ids() == session.durable_ids())


async def test_a_session_that_is_never_found_is_not_stormed(station: Station, floor: Peer) -> None:
    station.session().add(5)
    floor.script = lambda request: Reply(404) if request.is_events else None
    exporter = station.exporter(floor)

    await never(lambda: len(floor.event_requests()) > 6, 2.0)

    assert exporter.alarms()


async def test_a_session_that_is_never_found_is_asked_for_less_and_less(
    station: Station, floor: Peer, fast_clock: float
) -> None:
    station.session().add(5)
    floor.script = lambda request: Reply(404) if request.is_events else None
    station.exporter(floor)

    await never(lambda: len(floor.event_requests()) > 45, 150.0 / fast_clock)


async def test_a_session_that_is_never_found_holds_back_no_other(station: Station, floor: Peer) -> None:
    station.session("lost").add(5)
    other = station.session("other")
    floor.script = lambda request: Reply(404) if request.session == "remote-lost" else None
    station.exporter(floor)
    await until(lambda: len(floor.event_requests("remote-lost")) >= 2)
    other.add(5)

    await until(lambda: floor.ids("other") == other.durable_ids(), 10.0)


def _delete(peer: Peer, name: str) -> None:
    assert isinstance(peer.behind, Full)
    peer.behind.store.do(lambda database: write_jobs.forget_session(database, name, "2026-11-18T10:00:00.000Z"))


def _keep(receiver: Full, path: Path) -> None:
    """Keep what a receiver holds now."""
    receiver.close()
    path.write_bytes(receiver.path.read_bytes())
    receiver.open()


def _set_back(receiver: Full, path: Path) -> None:
    """Restart a receiver with what it held earlier, as a restored backup does."""
    receiver.close()
    receiver.path.write_bytes(path.read_bytes())
    receiver.open()


async def test_a_session_deleted_there_is_left_alone(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(full)
    await exporter.idle()
    _delete(full, "s")
    session.add(1)
    await until(lambda: [one.message for one in exporter.notices if "deleted" in one.message])
    asked = len(full.requests)

    session.add(10)
    await never(lambda: len(full.requests) > asked, 0.5)

    assert await exporter.idle() == Exit.DONE


async def test_a_deleted_session_stays_left_alone_after_a_restart_and_a_backfill(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    first = station.exporter(full)
    await first.idle()
    _delete(full, "s")
    session.add(1)
    await until(lambda: any(request.status == 410 for request in full.requests))
    await first.idle()
    await first.stop()
    asked = len(full.event_requests())

    exporter = station.exporter(full)
    rows = await exporter.ask("backfill", sessions=["s"])

    assert len(full.event_requests()) == asked
    assert rows["sessions"][0]["events"] == 0
    assert rows["exit"] == Exit.PARTIAL
    assert (await exporter.ask("backfill", all=True))["exit"] == Exit.DONE
    assert (await exporter.sink_status())["deleted"] == 1
    described = await exporter.ask("session", session="s")
    assert [sink["state"] for sink in described["sinks"]] == ["deleted there"]


async def test_a_session_deleted_there_has_no_incomplete_line(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    limits = Limits(poll_seconds=0.1, incomplete_line_seconds=1.0)
    exporter = station.exporter(station.settings({"default": MissionControl(url=full.url)}, limits=limits))
    await exporter.idle()
    _delete(full, "s")
    session.add(2)
    await until(lambda: any(request.status == 410 for request in full.requests))
    await exporter.idle()
    file = exporter.running.daemon.files["s"]

    await until(lambda: time.time() - file.modified > 1.1)
    assert (await exporter.sink_status())["deleted"] == 1
    problems = [problem for source in (await exporter.ask("status"))["sources"] for problem in source["problems"]]

    assert problems == []


async def test_410_of_a_receiver_that_declared_nothing_ends_no_session(
    station: Station, floor: Peer, fast_clock: float
) -> None:
    """It waits, with an alarm, while others go on; when the receiver thinks better of it, everything arrives."""
    gone = [True]
    floor.script = lambda request: (
        Reply(410) if gone[0] and request.is_events and request.session == "remote-s" else None
    )
    session, other = station.session(), station.session("other")
    session.add(10)
    exporter = station.exporter(floor)
    await until(exporter.alarms)
    other.add(10)
    await until(lambda: floor.ids("other") == other.durable_ids())

    assert await exporter.idle() == Exit.PARTIAL
    status = await exporter.sink_status()
    assert (status["state"], status["deleted"]) == ("stopped", 0)
    assert "410" in status["last_error"]
    assert (await exporter.ask("backfill", all=True))["exit"] == Exit.PARTIAL
    gone[0] = False

    await until(lambda: floor.ids() == session.durable_ids())
    assert await exporter.idle() == Exit.DONE


async def test_only_a_backfill_from_the_start_sends_a_deleted_session_again(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(full)
    await exporter.idle()
    _delete(full, "s")
    session.add(1)
    await until(lambda: any(request.status == 410 for request in full.requests))
    await exporter.idle()

    result = await exporter.ask("backfill", sessions=["s"], from_start=True)

    assert result["exit"] == Exit.DONE
    assert full.ids() == session.durable_ids()
    assert await exporter.differences() == []
    session.add(3)
    await until(lambda: full.ids() == session.durable_ids())


async def test_a_conflict_while_both_agree_goes_on_where_it_was(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(full)
    await exporter.idle()
    full.next_replies.append(Reply(409))
    session.add(5)
    await until(lambda: full.ids() == session.durable_ids())
    await exporter.idle()

    sent = [request.ids() for request in full.event_requests()[1:]]
    assert all(set(ids) <= {f"e{n}" for n in range(10, 15)} for ids in sent), sent
    assert await exporter.differences() == []


async def test_a_conflict_with_a_receiver_that_is_behind_sends_what_it_lacks(
    station: Station, full: Peer, tmp_path: Path
) -> None:
    assert isinstance(full.behind, Full)
    session = station.session()
    session.add(5)
    exporter = station.exporter(full)
    await exporter.idle()
    _keep(full.behind, tmp_path / "earlier.db")
    session.add(5)
    await exporter.idle()
    _set_back(full.behind, tmp_path / "earlier.db")
    full.next_replies.append(Reply(409))

    session.add(5)
    await until(lambda: set(full.ids()) == set(session.durable_ids()))
    await exporter.idle()

    assert full.ids() == session.durable_ids()
    assert await exporter.differences() == []


async def test_a_conflict_at_the_floor_sends_the_session_from_its_first_event(station: Station, floor: Peer) -> None:
    session = station.session()
    session.add(10)
    exporter = station.exporter(floor)
    await exporter.idle()
    floor.next_replies.append(Reply(409))

    session.add(5)
    await until(lambda: floor.ids() == session.durable_ids())
    await exporter.idle()

    assert floor.event_requests()[-1].ids() == session.durable_ids()


@pytest.fixture
def always_in_conflict(full: Peer) -> Iterator[Peer]:
    full.script = lambda request: Reply(409) if request.is_events else None
    yield full


async def test_a_conflict_that_does_not_end_is_not_a_storm(station: Station, always_in_conflict: Peer) -> None:
    station.session().add(5)
    exporter = station.exporter(always_in_conflict)

    await never(lambda: len(always_in_conflict.event_requests()) > 6, 2.0)

    assert exporter.alarms()


async def test_a_receiver_set_back_while_the_exporter_was_off_is_found_out(
    station: Station, full: Peer, tmp_path: Path
) -> None:
    assert isinstance(full.behind, Full)
    session = station.session()
    session.add(5)
    first = station.exporter(full)
    await first.idle()
    _keep(full.behind, tmp_path / "earlier.db")
    session.add(5)
    await first.idle()
    await first.stop()
    _set_back(full.behind, tmp_path / "earlier.db")
    session.add(1)

    exporter = station.exporter(full)
    await exporter.idle()

    assert full.ids() == session.durable_ids()
    rows: list[dict[str, Any]] = await exporter.differences()
    assert rows == []
