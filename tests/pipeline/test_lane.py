"""One session on its way to one sink, turn by turn."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exporter.core.delivery.position import DELETED_THERE
from exporter.core.delivery.segment import Unsendable
from exporter.pipeline import sink_session
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_session import DISAGREEMENT
from exporter.state.marks import StoreDamagedError, StoreUnwritableError
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor, Full
from tests.daemon.sessions import event
from tests.pipeline.parts import Parts, settle

pytestmark = pytest.mark.anyio


async def test_the_mark_follows_what_the_sink_took(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=5)
    lane = parts.lane(file)
    assert lane.lag_bytes() == file.size

    await settle(lane)

    mark = parts.store.mark("s", parts.sink_state.sink_id)
    assert full.ids() == [f"e{number}" for number in range(5)] == parts.delivered()
    assert mark is not None and mark == lane.mark
    assert (mark.position.offset, mark.identity, mark.last_id) == (file.size, file.identity, "e4")
    assert (lane.lag_bytes(), lane.stopped, lane.in_doubt) == (0, False, False)
    assert lane.reached(file.generation, file.size)

    written.add(2)
    await settle(lane)
    assert full.ids() == [f"e{number}" for number in range(7)]
    assert lane.progress.events == 7


async def test_a_rewind_is_told_and_the_rest_is_sent(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=4)
    lane = parts.lane(file)
    await settle(lane)

    written.replace(*written.lines()[:2], event("new"))
    await settle(lane)

    assert full.ids() == ["e0", "e1", "new"]
    assert parts.delivered() == ["e0", "e1", "new"]
    assert "events were rewound" in parts.said()


async def test_a_rewind_whose_answer_says_nothing_is_told_again(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=4)
    lane = parts.lane(file)
    await settle(lane)
    full.next_replies.append(Reply(200, body=b"{}"))

    written.replace(*written.lines()[:2])
    await settle(lane)

    assert full.ids() == ["e0", "e1"] == parts.delivered()


async def test_what_had_no_answer_before_a_start_is_hidden_when_a_rewind_took_it(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=3)
    await settle(parts.lane(file))
    await parts.sink.send("s", ["last"], [event("last")])  # killed before the answer

    written.replace(*written.lines()[:3])
    await settle(parts.lane(file))

    assert full.ids() == ["e0", "e1", "e2"]


async def test_another_lane_goes_on_at_the_mark(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=3)
    await settle(parts.lane(file))
    written.add(1)

    await settle(parts.lane(file))

    assert [request.ids() for request in full.event_requests()] == [["e0", "e1", "e2"], ["e3"]]


async def test_an_answer_that_is_lost_is_asked_for_when_the_file_changes(parts: Parts, full: Peer) -> None:
    """The sink may have what was sent; the events are gone from the file before that was known."""
    written, file = parts.session(count=2)
    lane = parts.lane(file)
    full.next_replies.append(Reply(heard=True, lost=True))
    await lane.turn()
    assert full.ids() == ["e0", "e1"]
    assert parts.delivered() == []

    written.replace(event("other"))
    await settle(lane)

    assert full.ids() == ["other"]


async def test_a_session_that_is_gone_there_is_made_again(floor_parts: Parts, floor: Peer) -> None:
    written, file = floor_parts.session(count=3)
    lane = floor_parts.lane(file)
    await settle(lane)
    assert isinstance(floor.behind, Floor)
    floor.behind.forget("s")

    written.add(1)
    await settle(lane)

    assert floor.ids() == ["e0", "e1", "e2", "e3"]
    assert floor_parts.said() == ["the session is not there any more; it is made again"]


async def test_a_doubt_finds_that_out_though_nothing_is_to_be_sent(floor_parts: Parts, floor: Peer) -> None:
    _, file = floor_parts.session(count=3)
    lane = floor_parts.lane(file)
    assert not lane.doubt()  # the sink never had it
    await settle(lane)
    assert isinstance(floor.behind, Floor)
    floor.behind.forget("s")

    assert lane.doubt() and lane.in_doubt
    assert not lane.reached(file.generation, file.size) or lane.settled
    await settle(lane)

    assert floor.ids() == ["e0", "e1", "e2"]
    assert not lane.in_doubt


async def _delete(lane: Lane, peer: Peer) -> None:
    peer.next_replies.append(Reply(410))
    await settle(lane)


async def test_a_session_that_was_deleted_there_is_left_alone_until_a_person_asks(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=2)
    lane = parts.lane(file)
    await settle(lane)
    written.add(1)
    await _delete(lane, full)
    requests = len(full.requests)

    written.add(1)
    await settle(lane)
    await lane.repair(["e0"])
    why = await lane.send_one(Unsendable(0, event("q"), 10, "x", "q"))

    assert (lane.stopped, lane.lag_bytes(), lane.doubt()) == (True, 0, False)
    assert lane.mark.state == DELETED_THERE
    assert why is not None
    assert len(full.requests) == requests

    lane.start_over()
    assert not lane.stopped
    await settle(lane)
    assert full.ids() == ["e0", "e1", "e2", "e3"]


async def test_starting_over_twice_restores_all_the_same(parts: Parts, full: Peer) -> None:
    """What a person asked for twice in a row is not asked for less."""
    written, file = parts.session(count=1)
    lane = parts.lane(file)
    await settle(lane)
    written.add(1)
    await _delete(lane, full)

    lane.start_over()
    lane.start_over()
    await settle(lane)

    registration = [one for one in full.requests if one.method == "POST" and not one.is_events][-1]
    assert registration.json()["restore"] is True
    assert full.ids() == ["e0", "e1"]


async def test_starting_over_while_a_request_is_under_way_skips_nothing(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=3)
    lane = parts.lane(file)
    await settle(lane)
    written.add(1)
    file.refresh(parts.files)
    full.next_replies.append(Reply(delay=0.2))

    turn = asyncio.create_task(lane.turn())
    await asyncio.sleep(0.1)
    lane.start_over()
    assert not lane.reached(file.generation, 0)
    await turn
    assert not lane.settled
    await settle(lane)

    assert full.event_requests()[-1].ids() == ["e0", "e1", "e2", "e3"]
    assert parts.delivered() == ["e0", "e1", "e2", "e3"]


async def test_a_request_is_durable_before_the_next_turn(parts: Parts) -> None:
    """A sink that is down may have no turn for hours, and the exporter may be started again meanwhile."""
    _, file = parts.session(count=2)
    lane = parts.lane(file)
    await settle(lane)

    lane.start_over()

    assert parts.delivered() == []


async def test_a_repair_sends_what_the_sink_lacks(parts: Parts, full: Peer) -> None:
    _, file = parts.session(count=3)
    lane = parts.lane(file)
    await settle(lane)

    await lane.repair(["e1"])  # hidden there, and sent again
    await settle(lane)

    assert sorted(full.ids()) == ["e0", "e1", "e2"]
    assert [one.ids() for one in full.event_requests()][-1] == ["e1"]


async def test_a_store_that_cannot_be_written_loses_nothing(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=2)
    lane = parts.lane(file)
    await settle(lane)
    written.replace(*written.lines()[:1])
    file.refresh(parts.files)

    with parts.locked_store():
        assert await lane.turn()
        assert lane.progress.problem == "store_unwritable"
    await settle(lane)

    assert full.ids() == ["e0"]
    assert lane.progress.problem is None


async def test_a_file_that_is_gone_is_not_owed(parts: Parts) -> None:
    written, file = parts.session(count=2)
    lane = parts.lane(file)
    await settle(lane)
    written.add(1)
    file.refresh(parts.files)
    parts.files.close_all()
    written.path.unlink()

    await settle(lane)

    assert lane.progress.bytes_gone > 0
    assert "the file is gone before delivery" in parts.said()


async def test_a_quarantine_that_is_lost_while_a_session_is_made_again_stops_nothing(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=3)
    lane = parts.lane(file)
    await settle(lane)
    other = sqlite3.connect(parts.marks_path.with_name("quarantine.db"), isolation_level=None)
    other.execute("DROP TABLE quarantine")
    other.close()
    full.next_replies.append(Reply(status=404))
    written.add(1)

    await settle(lane)

    assert full.ids() == ["e0", "e1", "e2", "e3"] == parts.delivered()


async def test_a_store_that_is_set_aside_while_a_request_is_under_way_stops_nothing(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=3)
    lane = parts.lane(file)
    await settle(lane)
    written.add(1)
    file.refresh(parts.files)
    full.next_replies.append(Reply(delay=0.3))
    turn = asyncio.create_task(lane.turn())
    await asyncio.sleep(0.1)
    _damage(parts)

    async with asyncio.timeout(5):
        await turn
    await settle(lane)

    assert full.ids() == ["e0", "e1", "e2", "e3"]


async def test_a_request_that_ends_in_a_new_store_is_noted_at_its_own_sink(parts: Parts, full: Peer) -> None:
    written, file = parts.session(count=3)
    lane = parts.lane(file)
    await settle(lane)
    written.add(1)
    file.refresh(parts.files)
    full.next_replies.append(Reply(delay=0.3))
    turn = asyncio.create_task(lane.turn())
    await asyncio.sleep(0.1)
    other = parts.store.sink_id("other", "http://127.0.0.1:1/agents")
    _damage(parts)
    assert parts.store.sink_id("other", "http://127.0.0.1:1/agents") == other

    async with asyncio.timeout(5):
        await turn

    assert parts.store.mark("s", other) is None
    assert parts.store.mark("s", parts.sink_state.sink_id) is not None


def _damage(parts: Parts) -> None:
    """Let the store be found damaged, by somebody else than the lane."""
    other = sqlite3.connect(parts.marks_path, isolation_level=None)
    other.execute("DROP TABLE facts")
    other.close()
    with pytest.raises(StoreDamagedError):
        parts.store.fact("one")


async def test_a_session_can_be_doubted_while_another_wish_cannot_be_written(parts: Parts) -> None:
    _, file = parts.session(count=1)
    lane = parts.lane(file)
    await settle(lane)

    with parts.locked_store():
        with pytest.raises(StoreUnwritableError):
            lane.start_over()
        assert lane.doubt()
    assert lane.in_doubt
    await settle(lane)

    assert not lane.in_doubt


async def test_what_kept_a_session_that_is_delivered_is_over_with_it(floor_parts: Parts, floor: Peer) -> None:
    """A session whose doubt was answered with 410, which the receiver has not declared, until it was well again."""
    _, file = floor_parts.session(count=2)
    lane = floor_parts.lane(file)
    await settle(lane)
    floor.script = lambda one: Reply(410)
    assert lane.doubt()
    for _ in range(2):
        await lane.turn()
    assert lane.progress.problem == DISAGREEMENT

    floor.script = lambda one: None
    lane._session.rest_until = 0.0
    await settle(lane)

    assert lane.progress.problem is None


async def test_a_doubt_that_comes_while_a_digest_is_made_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_session, "_DIGEST_AT_ONCE_MAX", 0)
    with Peer(Full(tmp_path / "receiver.db")) as peer:
        parts = Parts(tmp_path, peer)
        lane = parts.lane(parts.session("s", 10)[1])
        await settle(lane)
        in_thread, doubts = asyncio.to_thread, [True]

        async def doubted(function: Callable[..., Any], /, *values: Any) -> Any:
            made = await in_thread(function, *values)
            if doubts and doubts.pop():  # another session has an answer of a store that is older
                parts.store.void_confirmations(parts.sink_state.sink_id)
                lane.void()
            return made

        assert lane.doubt()
        monkeypatch.setattr(asyncio, "to_thread", doubted)
        await settle(lane)
        monkeypatch.setattr(asyncio, "to_thread", in_thread)

        assert (doubts, lane.in_doubt, lane.mark.is_confirmed) == ([], True, False)
        assert lane.doubt()
        await settle(lane)
        assert (lane.in_doubt, lane.mark.is_confirmed) == (False, True)
        await parts.close()
