"""Sums beside the lanes: what is counted is in them once, whatever becomes of the store."""

import asyncio
import sqlite3

import pytest

from exporter.core.delivery.position import Mark
from exporter.pipeline.feed import EventFeed
from exporter.pipeline.metric_sender import MetricSender
from exporter.pipeline.segment_reader import SegmentReader
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.state.marks import StoreDamagedError
from tests.daemon.exchange import Reply
from tests.daemon.peer import Peer
from tests.daemon.sessions import SessionFile
from tests.daemon.station import until
from tests.pipeline.parts import Parts

pytestmark = pytest.mark.anyio


class _Total:
    """Sums that are one number."""

    def __init__(self, state: bytes | None) -> None:
        self.value = int(state or 0)
        self.known = self.value

    repeated = was_accepted = False

    @property
    def waits(self) -> bool:
        return False

    def add(self, bodies: list[bytes]) -> None:
        self.value += sum(map(int, bodies))

    def points(self, until_ns: int | None, *, repeats: bool = False) -> list[bytes]:
        return [b'{"id":"%d","type":"x","data":{}}' % self.value] if self.value != self.known else []

    def accepted(self) -> None:
        self.known = self.value

    def state(self) -> bytes:
        return b"%d" % self.value


def _count(parts: Parts, sender: MetricSender) -> None:
    parts.store.commit("s", parts.sink_state.sink_id, Mark(), [], [], {}, [b"5"])
    sender.counted()


async def test_what_is_counted_again_in_a_new_store_is_in_the_sums_once(parts: Parts, full: Peer) -> None:
    made: list[_Total] = []

    def make(_: str, state: bytes | None) -> _Total:
        made.append(_Total(state))
        return made[-1]

    await parts.sink.register("s", None)
    sender = MetricSender(make, 0.01)
    running = asyncio.create_task(sender.run(parts.sink_state, lambda: True))
    try:
        _count(parts, sender)
        await until(lambda: made and made[-1].known == 5)
        other = sqlite3.connect(parts.marks_path, isolation_level=None)
        other.execute("DROP TABLE facts")
        other.close()
        with pytest.raises(StoreDamagedError):
            parts.store.fact("one")

        _count(parts, sender)  # the lane reads its session again from the first event
        await until(lambda: sender.settled)

        assert (made[-1].known, made[-1].value) == (5, 5)
    finally:
        running.cancel()


class _Lines:
    """Sums that are the lines that were counted; `_Total` would not know them."""

    waits = False

    repeated = was_accepted = False

    def __init__(self, state: bytes | None) -> None:
        self.counted = 0 if state is None else int(state)
        self.sent = self.counted

    def add(self, bodies: list[bytes]) -> None:
        self.counted += len(bodies)

    def points(self, until_ns: int | None, *, repeats: bool = False) -> list[bytes]:
        return [b'{"id":"p%d","type":"x","data":{}}' % self.counted] if self.counted != self.sent else []

    def accepted(self) -> None:
        self.sent = self.counted

    def state(self) -> bytes:
        return b"%d" % self.counted


class _Counting(EventFeed):
    """A feed whose events are counted, and sent as sums."""

    def __init__(self, reader: SegmentReader) -> None:
        super().__init__(reader, keep_live=False)
        self.sums = MetricSender(lambda _, state: _Lines(state), 0.01)


async def _counting(parts: Parts) -> tuple[SinkWorkers, SessionFile]:
    parts.sink_state.feed = _Counting(parts.reader)
    await parts.sink.register("s", None)
    workers = SinkWorkers(parts.sink_state, 2)
    written, file = parts.session("s", 1)
    workers.lanes["s"] = parts.lane(file)
    workers.start(sum_up=True)
    return workers, written


async def test_lanes_go_on_after_sums_that_were_sent_as_a_probe(floor_parts: Parts, floor: Peer) -> None:
    """A worker that has to wait while sums probe a failing sink takes its turn when the probe has its answer."""
    workers, written = await _counting(floor_parts)
    answers = [Reply(503), Reply(delay=0.5)]
    floor.script = lambda one: answers.pop(0) if one.is_events and answers else None
    lane = workers.lanes["s"]
    try:
        workers.ask(lane)
        await until(lambda: lane.settled and not answers)
        written.add(1)
        lane.file.refresh(floor_parts.files)
        workers.ask(lane)

        await until(workers.idle)
    finally:
        await workers.stop(1.0)


async def test_sums_are_halved_while_their_sink_is_probed(floor_parts: Parts, floor: Peer) -> None:
    """A refusal of the sums themselves ends the probe, so that the next request is not waited for for good."""
    workers, _ = await _counting(floor_parts)
    answers = [Reply(503), Reply(400), Reply(400)]
    floor.script = lambda one: answers.pop(0) if one.is_events and answers else None
    try:
        workers.ask(workers.lanes["s"])

        await until(lambda: workers.idle() and not answers)
    finally:
        await workers.stop(1.0)
    assert floor_parts.quarantine.count(sink=floor_parts.sink.name) == 1


@pytest.mark.parametrize("steps", range(5))
async def test_a_sender_that_is_stopped_as_something_is_counted_ends(parts: Parts, steps: int) -> None:
    sender = MetricSender(lambda _, state: _Total(state), 0.01, repeat_seconds=60.0)
    sender.lives = True
    running = asyncio.create_task(sender.run(parts.sink_state, lambda: True))
    await until(lambda: sender.settled)
    sender.counted()
    for _ in range(steps):
        await asyncio.sleep(0)
    running.cancel()

    assert await asyncio.wait([running], timeout=5) == ({running}, set())
