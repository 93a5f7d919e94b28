"""`verify`: what differs between a file and a receiver is named, and repaired when asked to."""

import json
import time
from datetime import datetime
from typing import Any

import httpx
import pytest

from exporter.errors import Exit
from exporter.missioncontrol.ingest import write_jobs
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor, Full
from tests.daemon.sessions import event
from tests.daemon.station import Exporter, Station, until
from tests.daemon.telemetry import delivered, demo_session, settings_for
from tests.otel.receiver import Receiver

pytestmark = pytest.mark.anyio


async def _post(peer: Peer, events: list[bytes], rewound: list[str] | None = None, session: str = "s") -> None:
    """Tamper with what a receiver holds, over its own wire."""
    body = b'{"events":[' + b",".join(events) + b'],"rewound":' + json.dumps(rewound or []).encode() + b"}"
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{peer.url}/sessions/{session}/events", content=body, headers={"Session-Exporter": "test"}
        )
    assert answer.status_code == 200


async def _verify(exporter: Exporter, **options: Any) -> tuple[int, dict[str, Any]]:
    result = await exporter.ask("verify", all=True, **options)
    [row] = result["sessions"]
    return result["exit"], row


async def _delivered(station: Station, peer: Peer, count: int = 20) -> Exporter:
    station.session().add(count)
    exporter = station.exporter(peer)
    await exporter.idle()
    return exporter


async def test_what_was_delivered_is_equal(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)

    ended, row = await _verify(exporter)

    assert ended == Exit.DONE
    assert row["equal"]
    assert (row["file"], row["delivered"], row["receiver"], row["quarantined"]) == (20, 20, 20, 0)
    assert (row["missing"], row["extra"], row["different"]) == ([], [], [])


async def test_equality_is_proved_with_one_request_per_session(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    before = len(full.requests)

    await _verify(exporter)

    assert [(one.method, one.path) for one in full.requests[before:]] == [("GET", "/agents/sessions/s")]


async def test_events_missing_there_are_named(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    await _post(full, [], rewound=["e3", "e17"])

    ended, row = await _verify(exporter)

    assert ended == Exit.FINDINGS
    assert (row["missing"], row["extra"], row["different"]) == (["e17", "e3"], [], [])
    assert row["receiver"] == 18


async def test_events_missing_there_are_sent_by_a_repair(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    await _post(full, [], rewound=["e3", "e17"])
    before = len(full.event_requests())

    ended, row = await _verify(exporter, repair=True)

    assert (ended, row["equal"]) == (Exit.DONE, True)
    assert [request.ids() for request in full.event_requests()[before:]] == [["e3", "e17"]]


async def test_events_too_many_there_are_named_and_hidden_by_a_repair(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    await _post(full, [event("stranger")])

    ended, row = await _verify(exporter)
    repaired, after = await _verify(exporter, repair=True)

    assert (ended, row["extra"]) == (Exit.FINDINGS, ["stranger"])
    assert (repaired, after["equal"]) == (Exit.DONE, True)
    assert "stranger" not in full.ids()


async def test_events_with_other_bytes_there_are_named_and_replaced_by_a_repair(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    await _post(full, [], rewound=["e5"])
    await _post(full, [event("e5", text="forged")])

    ended, row = await _verify(exporter)
    repaired, after = await _verify(exporter, repair=True)

    assert (ended, row["missing"], row["extra"], row["different"]) == (Exit.FINDINGS, [], [], ["e5"])
    assert row["detail"] == "same ids, other bytes"
    assert (repaired, after["equal"]) == (Exit.DONE, True)
    assert not any(b"forged" in body for _, body in full.behind.held("s"))


async def test_all_kinds_at_once_are_told_apart_and_repaired(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    await _post(full, [event("stranger")], rewound=["e5", "e6"])
    await _post(full, [event("e5", text="forged")])

    _, row = await _verify(exporter)
    repaired, after = await _verify(exporter, repair=True)

    assert (row["missing"], row["extra"], row["different"]) == (["e6"], ["stranger"], ["e5"])
    assert (repaired, after["equal"]) == (Exit.DONE, True)
    assert sorted(full.ids()) == sorted(f"e{number}" for number in range(20))


def _lose(peer: Peer) -> None:
    """Let the receiver come back with an empty store."""
    if isinstance(peer.behind, Floor):
        peer.behind.forget("s")
        return
    assert isinstance(peer.behind, Full)
    peer.behind.close()
    for file in peer.behind.path.parent.glob("receiver.db*"):
        file.unlink()
    peer.behind.open()


@pytest.mark.parametrize("peer", ["full", "floor"])
async def test_a_session_lost_there_is_sent_again_by_a_repair(
    station: Station, peer: str, request: pytest.FixtureRequest
) -> None:
    receiver: Peer = request.getfixturevalue(peer)
    exporter = await _delivered(station, receiver)
    _lose(receiver)

    ended, row = await _verify(exporter)
    repaired, after = await _verify(exporter, repair=True)

    assert (ended, row["verdict"], row["receiver"], len(row["missing"])) == (Exit.FINDINGS, "different", 0, 20)
    unasked = (Exit.PARTIAL, "unknown")
    assert (repaired, after["verdict"]) == ((Exit.DONE, "equal") if peer == "full" else unasked)
    assert receiver.ids() == [f"e{number}" for number in range(20)]


@pytest.mark.parametrize("peer", ["full", "floor"])
async def test_a_session_lost_there_is_sent_again_by_a_backfill(
    station: Station, peer: str, request: pytest.FixtureRequest
) -> None:
    receiver: Peer = request.getfixturevalue(peer)
    exporter = await _delivered(station, receiver)
    _lose(receiver)

    result = await exporter.ask("backfill", all=True)

    assert (result["exit"], result["sessions"][0]["events"]) == (Exit.DONE, 20)
    assert receiver.ids() == [f"e{number}" for number in range(20)]
    assert await exporter.differences() == []


async def test_a_receiver_that_is_down_is_called_not_reachable(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    full.script = lambda request: Reply(503)

    ended, row = await _verify(exporter, repair=True)

    assert (ended, row["equal"], row["verdict"]) == (Exit.UNREACHABLE, False, "not reachable")
    assert (row["missing"], row["detail"]) == ([], "answered 503")


async def test_a_receiver_that_is_down_from_the_first_is_not_reachable_either(station: Station, full: Peer) -> None:
    full.script = lambda request: Reply(503)
    station.session().add(5)
    exporter = station.exporter(full)

    ended, row = await _verify(exporter)

    assert (ended, row["verdict"], row["missing"]) == (Exit.UNREACHABLE, "not reachable", [])


async def test_a_receiver_that_is_down_is_asked_once_for_all_sessions(station: Station, full: Peer) -> None:
    for name in ("one", "two", "three"):
        station.session(name).add(5)
    exporter = station.exporter(full)
    await exporter.idle()
    full.script = lambda request: Reply(503)
    before = len(full.requests)

    answer = await exporter.ask("verify", all=True)

    assert [row["verdict"] for row in answer["sessions"]] == ["not reachable"] * 3
    assert (answer["exit"], len(full.requests) - before) == (Exit.UNREACHABLE, 1)


async def test_a_receiver_that_refuses_the_token_says_nothing_of_what_it_holds(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    full.script = lambda request: Reply(401)

    ended, row = await _verify(exporter)

    assert (ended, row["verdict"], row["missing"]) == (Exit.REFUSED, "refused", [])


async def test_410_that_nobody_declared_says_nothing_of_what_is_held(station: Station, floor: Peer) -> None:
    exporter = await _delivered(station, floor)
    floor.script = lambda request: Reply(410)

    ended, row = await _verify(exporter)

    assert (ended, row["verdict"], row["missing"]) == (Exit.PARTIAL, "unknown", [])
    assert "410" in row["detail"]


async def test_a_session_deleted_there_is_no_difference(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    assert isinstance(full.behind, Full)
    full.behind.store.do(lambda database: write_jobs.forget_session(database, "s", "2026-11-18T10:00:00.000Z"))

    first = await _verify(exporter)
    again = await _verify(exporter, repair=True)
    backfilled = await exporter.ask("backfill", all=True)
    [listed] = (await exporter.ask("sessions"))["sessions"]

    for ended, row in (first, again):
        assert (ended, row["equal"], row["verdict"], row["missing"]) == (Exit.DONE, False, "deleted there", [])
    assert (backfilled["exit"], backfilled["sessions"][0]["state"].split(";")[0]) == (Exit.DONE, "deleted there")
    assert listed["sinks"] == [
        {
            "name": "mission_control", "delivered": 20, "lag_events": 0, "unconfirmed": 0, "confirmed_at": None,
            "state": "deleted there",
        }
    ]  # fmt: skip
    assert full.ids() == []
    assert (await exporter.ask("verify", sessions=["s"]))["exit"] == Exit.PARTIAL


async def test_a_run_that_names_a_session_that_was_deleted_there_ends_in_part(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    assert isinstance(full.behind, Full)
    full.behind.store.do(lambda database: write_jobs.forget_session(database, "s", "2026-11-18T10:00:00.000Z"))
    await _verify(exporter)
    everything = await exporter.idle()
    await exporter.stop()

    named = await station.exporter(full, session_ids=("s",)).idle()

    assert (everything, named) == (Exit.DONE, Exit.PARTIAL)


async def test_lines_that_no_sink_gets_are_counted_as_in_quarantine(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(5)
    session.append(b"rubbish", b"\xff\xfe")
    exporter = station.exporter(full)
    await exporter.idle()

    ended, row = await _verify(exporter)

    assert (ended, row["equal"], row["quarantined"], row["detail"]) == (Exit.DONE, True, 2, "2 in quarantine")


async def test_lines_that_repeat_an_id_leave_nothing_behind(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(5)
    session.append(event("e1"), event("e1"), event("e3"))
    session.add(2)
    exporter = station.exporter(full)
    await exporter.idle()

    ended, row = await _verify(exporter)
    [listed] = (await exporter.ask("sessions"))["sessions"]

    assert (ended, row["equal"], row["file"], row["duplicates"]) == (Exit.DONE, True, 7, 3)
    assert (listed["events"], listed["duplicates"], listed["sinks"][0]["lag_events"]) == (7, 3, 0)
    assert (await exporter.sink_status())["lag_events"] == 0


async def test_what_was_written_and_not_delivered_is_missing(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(5)
    exporter = station.exporter(full)
    await exporter.idle()
    full.script = lambda request: Reply(503) if request.is_events else None
    session.add(2)
    await until(lambda: exporter.running.daemon.runs[0].sink_state.retries > 0)

    ended, row = await _verify(exporter)

    assert (ended, row["missing"]) == (Exit.FINDINGS, ["e5", "e6"])


async def test_a_session_that_was_never_delivered_is_missing_as_a_whole(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(3)
    session.age(days=30)
    exporter = station.exporter(full)
    await exporter.idle()

    ended, row = await _verify(exporter)

    assert (ended, row["missing"], row["detail"]) == (Exit.FINDINGS, ["e0", "e1", "e2"], "never delivered")


async def test_what_is_in_quarantine_is_counted_and_not_missing(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(5)
    full.script = lambda request: Reply(400) if request.is_events and b'"id":"e2"' in request.body else None
    exporter = station.exporter(full)
    await exporter.idle()

    ended, row = await _verify(exporter)

    assert (ended, row["equal"], row["quarantined"], row["receiver"]) == (Exit.DONE, True, 1, 4)


async def test_of_a_receiver_at_the_floor_nobody_says_that_it_is_equal(station: Station, floor: Peer) -> None:
    exporter = await _delivered(station, floor)

    ended, row = await _verify(exporter)

    assert (ended, row["equal"], row["verdict"], row["receiver"]) == (Exit.PARTIAL, False, "unknown", None)
    accepted, when = row["detail"].split("; its last accepting answer came at ")
    assert accepted == "this receiver cannot be asked; it accepted 20 of 20 events"
    assert abs(datetime.fromisoformat(when).timestamp() - time.time()) < 60


async def test_sinks_that_cannot_be_asked_end_verify_with_partial(station: Station) -> None:
    with Receiver() as receiver:
        demo_session(station)
        exporter = await delivered(station, settings_for(station, receiver))

        answer = await exporter.ask("verify", all=True)

    assert (answer["exit"], answer["sessions"]) == (Exit.PARTIAL, [])


async def test_a_receiver_at_the_floor_that_lost_the_session_is_not_equal(station: Station, floor: Peer) -> None:
    exporter = await _delivered(station, floor)
    assert isinstance(floor.behind, Floor)
    floor.behind.forget("s")

    ended, row = await _verify(exporter)

    assert (ended, row["equal"]) == (Exit.FINDINGS, False)


async def test_an_unfinished_last_line_is_nobodys_difference(station: Station, full: Peer) -> None:
    session = station.session()
    session.add(5)
    session.append_raw(event("torn")[:-5])
    exporter = station.exporter(full)
    await exporter.idle()

    ended, row = await _verify(exporter)

    assert (ended, row["equal"], row["file"]) == (Exit.DONE, True, 5)


async def test_verify_moves_nothing_and_sends_nothing(station: Station, full: Peer) -> None:
    exporter = await _delivered(station, full)
    await _post(full, [], rewound=["e3"])
    before = len(full.event_requests())
    file = (station.copilot / "session-state" / "s" / "events.jsonl").read_bytes()

    await _verify(exporter)
    await _verify(exporter)

    assert len(full.event_requests()) == before
    assert (station.copilot / "session-state" / "s" / "events.jsonl").read_bytes() == file
