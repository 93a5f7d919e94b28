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
    await until(lambda: workers.idle() and parts.sink_state.new_store is None)
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
