"""The lanes of one sink take turns on a few workers, behind one gate."""

import asyncio

import pytest

from exporter.pipeline.sink_workers import SinkWorkers
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.receivers import Floor
from tests.daemon.station import never, until
from tests.pipeline.parts import Parts

pytestmark = pytest.mark.anyio


def _workers(parts: Parts, sessions: int, *, connections: int = 2, events: int = 3) -> SinkWorkers:
    workers = SinkWorkers(parts.sink_state, connections)
    for number in range(sessions):
        _, file = parts.session(f"s{number}", events)
        workers.lanes[file.session] = parts.lane(file)
    return workers


async def test_every_session_is_delivered_with_one_request_at_a_time(floor_parts: Parts, floor: Peer) -> None:
    floor.script = lambda one: Reply(delay=0.02) if one.is_events else None
    workers = _workers(floor_parts, 5, connections=2)
    for lane in workers.lanes.values():
        workers.ask(lane)
    assert (workers.waiting, workers.idle(), workers.name) == (5, False, "mission_control")

    workers.start(sum_up=True)
    await until(workers.idle)
    await workers.stop(1.0)

    assert [floor.ids(f"s{number}") for number in range(5)] == [["e0", "e1", "e2"]] * 5
    assert max(count for name, count in floor.open_requests_max.items() if name) == 1
    assert floor.open_max <= 2
    assert workers.summed_up


@pytest.mark.parametrize(("size", "at_once"), [(10, 4), (400_000, 2)])
async def test_many_sessions_are_sent_at_a_time_only_while_they_have_little(
    floor_parts: Parts, floor: Peer, size: int, at_once: int
) -> None:
    floor_parts.sink.lanes_always = 2
    floor.script = lambda one: Reply(delay=0.1) if one.is_events else None
    workers = SinkWorkers(floor_parts.sink_state, 4)
    for number in range(12):
        written, file = floor_parts.session(f"s{number}")
        written.add(2, size=size)
        file.refresh(floor_parts.files)
        workers.lanes[file.session] = floor_parts.lane(file)
        workers.ask(workers.lanes[file.session])

    workers.start(sum_up=False)
    await until(workers.idle, 30.0)
    await workers.stop(1.0)

    assert [floor.ids(f"s{number}") for number in range(12)] == [["e0", "e1"]] * 12
    assert floor.open_max == at_once


async def test_a_failing_sink_is_probed_by_one_request_at_a_time(floor_parts: Parts, floor: Peer) -> None:
    floor.script = lambda one: Reply(503)
    workers = _workers(floor_parts, 4, connections=4)
    workers.start(sum_up=False)
    for lane in workers.lanes.values():
        workers.ask(lane)

    await until(lambda: floor_parts.sink_state.gate.failures >= 1)
    asked = len(floor.requests)
    floor.script = lambda one: None
    await until(workers.idle)
    await workers.stop(1.0)

    assert asked <= 4  # those that were under way when it failed first
    assert [len(floor.ids(f"s{number}")) for number in range(4)] == [3] * 4


async def test_sessions_that_register_at_a_sink_that_fails_let_the_wait_grow(floor_parts: Parts, floor: Peer) -> None:
    floor.script = lambda one: Reply(503) if one.is_events else None
    workers = _workers(floor_parts, 6, connections=1)
    workers.start(sum_up=False)
    for lane in workers.lanes.values():
        workers.ask(lane)

    await until(lambda: len(floor.event_requests()) >= 3)
    failures = floor_parts.sink_state.gate.failures
    floor.script = lambda one: None
    await until(workers.idle)
    await workers.stop(1.0)

    assert len({request.session for request in floor.event_requests()[:3]}) == 3
    assert failures >= 2
    assert floor_parts.sink_state.gate.failures == 0
    assert "delivering again" in floor_parts.said()


async def test_a_refused_token_is_tried_again_when_it_changes(floor_parts: Parts, floor: Peer) -> None:
    floor.script = lambda one: Reply(401) if "first" in one.headers["authorization"] else None
    workers = _workers(floor_parts, 1)
    workers.start(sum_up=False)
    workers.ask(workers.lanes["s0"])

    await until(lambda: floor_parts.sink_state.gate.closed)
    await never(lambda: len(floor.requests) > 1, 0.3)
    floor_parts.token = "second"
    await until(workers.idle)
    await workers.stop(1.0)

    assert floor.ids("s0") == ["e0", "e1", "e2"]


async def test_a_defect_stops_one_session_for_a_while(floor_parts: Parts, floor: Peer) -> None:
    """Something breaks in one session (here its directory is none); the others go on, and so does it."""
    workers = _workers(floor_parts, 2)
    broken = workers.lanes["s0"]
    whole, broken.file.path = broken.file.path, None  # type: ignore[assignment]
    workers.start(sum_up=False)
    for lane in workers.lanes.values():
        workers.ask(lane)

    await until(lambda: broken.progress.problem == "defect" and workers.lanes["s1"].settled)
    broken.file.path = whole
    workers.ask(broken)
    await until(workers.idle)
    await workers.stop(1.0)

    assert [floor.ids("s0"), floor.ids("s1")] == [["e0", "e1", "e2"]] * 2


async def test_one_session_answers_for_all_when_the_receiver_has_another_store(parts: Parts, full: Peer) -> None:
    workers = _workers(parts, 3)
    workers.start(sum_up=False)
    for lane in workers.lanes.values():
        workers.ask(lane)
    await until(workers.idle)
    parts.sink_state.store_checked(everywhere=True)
    assert parts.sink_state.known_store() is not None
    before = len(full.requests)

    workers.check_one_session(sees_all=True)
    await until(workers.idle)
    assert len(full.requests) == before + 1

    parts.store.remember(f"store of sink {parts.sink_state.sink_id}", "another one")
    parts.sink.store = None
    workers.check_one_session(sees_all=True)

    def looked_for() -> bool:
        workers.hurry_checks()  # else they are spread over a minute
        return workers.idle() and parts.sink_state.new_store is None

    await until(looked_for)
    await workers.stop(1.0)

    assert len(full.requests) == before + 1 + 3  # the one that noticed is not asked twice


async def test_stopping_finishes_the_request_that_is_under_way(floor_parts: Parts, floor: Peer) -> None:
    floor.script = lambda one: Reply(delay=0.2) if one.is_events else None
    workers = _workers(floor_parts, 2, connections=1)
    workers.start(sum_up=False)
    for lane in workers.lanes.values():
        workers.ask(lane)

    await until(lambda: floor.open_requests.get("remote-s0", 0) == 1)
    await asyncio.wait_for(workers.stop(2.0), 3.0)

    assert isinstance(floor.behind, Floor)
    assert [floor.ids("s0"), floor.ids("s1")] == [["e0", "e1", "e2"], []]
    assert floor_parts.delivered("s0") == ["e0", "e1", "e2"]
