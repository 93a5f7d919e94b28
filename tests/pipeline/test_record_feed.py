"""The feed of one OTLP signal: records of the events, made once for all the signals of an endpoint."""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from exporter.core.delivery.position import START, Mark, Position
from exporter.core.delivery.reconcile import Reconciliation, Walk
from exporter.core.delivery.segment import Segment
from exporter.pipeline.metric_sender import MetricSender
from exporter.pipeline.record_feed import Mapper, Place, RecordCache, RecordFeed, SegmentRecords
from exporter.sources.files.session_file import SessionFile
from otel.bridge import Bridge, SignalOptions
from otel.machines.metrics.measurements import pack
from otel.model import Measurement
from tests.daemon import clock
from tests.daemon.telemetry import DEMO
from tests.pipeline.parts import LIMITS, Parts

pytestmark = pytest.mark.anyio
_OPEN = 22
"""So many events of the demo's session leave an interaction, a turn and a tool open."""


def _pack(measured: Sequence[list[Measurement]]) -> bytes:
    return pack([one for some in measured for one in some])


def _mapper(parts: Parts) -> Mapper:
    return Mapper(parts.reader, lambda file: Bridge(file.session, SignalOptions()))


async def test_signals_share_one_reading(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)
    mapper = _mapper(parts)
    traces, logs = RecordFeed(mapper, "traces"), RecordFeed(mapper, "logs", repeats=False)

    spans = await traces.next(file, Walk(file.generation), None, LIMITS)
    records = await logs.next(file, Walk(file.generation), None, LIMITS)

    assert spans is not None and records is not None
    assert len(records.ids) == len(DEMO) > len(spans.ids) > 0
    assert parts.reader.events_read == len(DEMO)
    assert traces.reads_with is logs.reads_with is mapper
    assert await traces.next(file, Walk(file.generation), spans, LIMITS) is None


async def test_what_was_sent_is_left_out_and_seen(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)
    feed = RecordFeed(_mapper(parts), "traces")
    whole = await feed.next(file, Walk(file.generation), None, LIMITS)
    assert whole is not None
    compared = Reconciliation(dict.fromkeys(whole.ids[:2], b""), ())

    rest = await feed.next(file, Walk(file.generation, skip=compared.skip), None, LIMITS)

    assert rest is not None
    assert (rest.ids, rest.seen) == (whole.ids[2:], set(whole.ids))


async def test_what_it_means_to_the_sink(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)
    mapper = _mapper(parts)
    traces, logs = RecordFeed(mapper, "traces"), RecordFeed(mapper, "logs", repeats=False)
    segment = await traces.next(file, Walk(file.generation), None, LIMITS)
    assert segment is not None

    # The mark counts events, however many records they have led to.
    assert traces.taken(segment, []) == (len(DEMO), segment.last_id)
    assert not traces.holds_events
    assert traces.known({"a": b"x"}) == {"a": b"x"}
    assert (traces.skip(lambda: {"a"}), logs.skip(lambda: {"a"})) == ({"a"}, None)
    assert traces.stream("s", Mark(remote_id="r")) == "r"


async def test_metrics_are_packed_to_be_counted(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO)
    file.refresh(parts.files)

    def no_sums(_: str, __: bytes | None) -> None:
        raise AssertionError("nothing is summed up here")

    sender = MetricSender(no_sums, 5.0)  # type: ignore[arg-type]
    feed = RecordFeed(_mapper(parts), "metrics", pack=_pack, sums=sender)
    segment = await feed.next(file, Walk(file.generation), None, LIMITS)
    assert segment is not None

    assert [bool(line) for line in segment.lines] == [True] + [False] * (len(segment.ids) - 1)
    assert feed.sums.counts
    assert feed.sums.of(segment) == segment.lines[:1]
    assert feed.stream("run-1", None) == "run-1"


def _rest_for_an_hour(file: SessionFile, parts: Parts) -> None:
    """Let a file look as if nobody had written to it for an hour."""
    long_ago = time.time() - 3_600
    os.utime(file.path, (long_ago, long_ago))
    file.refresh(parts.files)


async def test_a_session_that_was_left_open_has_an_ending_once(parts: Parts) -> None:
    written, file = parts.session()
    written.append(*DEMO[:_OPEN])
    file.refresh(parts.files)
    feed = RecordFeed(_mapper(parts), "traces")
    walk = Walk(file.generation)
    segment = await feed.next(file, walk, None, LIMITS)
    assert segment is not None
    walk.advance(segment)
    assert await feed.ending(file, walk) is None  # it was written just now
    assert not feed.is_left_open(file)

    _rest_for_an_hour(file, parts)

    assert feed.is_left_open(file)
    ending = await feed.ending(file, walk)
    assert ending is not None and ending.ids
    assert await feed.ending(file, walk) is None
    feed.forget(file)


@pytest.mark.parametrize("events", [_OPEN, len(DEMO)], ids=["open", "finished"])
async def test_what_an_exporter_before_this_one_left_open_has_an_ending_too(parts: Parts, events: int) -> None:
    """The file is at rest when it is met, and nothing of it was read since the start."""
    written, file = parts.session()
    written.append(*DEMO[:events])
    file.refresh(parts.files)
    walk = Walk(file.generation)
    segment = await RecordFeed(_mapper(parts), "traces").next(file, walk, None, LIMITS)
    assert segment is not None
    walk.advance(segment)
    feed = RecordFeed(_mapper(parts), "traces")
    assert await feed.ending(file, walk) is None  # it was written just now
    assert not feed.is_left_open(file)

    _rest_for_an_hour(file, parts)

    assert feed.is_left_open(file)
    ending = await feed.ending(file, walk)
    assert bool(ending is not None and ending.ids) is (events == _OPEN)
    assert not feed.is_left_open(file)


_SIGNALS: Final = ("traces", "metrics", "logs")
_ROOM: Final = 12 << 20
_PATIENCE_SECONDS: Final = 2.0
_SIZES: Final = st.sampled_from((0, 10, 300_000, 2_500_000, 9_000_000))


class KeptMachine(RuleBasedStateMachine):
    """Each signal goes through the same segments in order, at its own pace; what is not kept is made again."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(time, "monotonic", clock.fast_monotonic)
        self.runner = asyncio.Runner(loop_factory=clock.fast_loop)
        self.kept = RecordCache()
        self.file = SessionFile("s", Path("/nowhere/s"))
        self.sizes: list[int] = []
        self.put: dict[Place, SegmentRecords] = {}
        self.stands = dict.fromkeys(_SIGNALS, 0)
        self.got: dict[str, list[str]] = {signal: [] for signal in _SIGNALS}
        for signal in _SIGNALS:
            self.kept.join(signal)

    def place(self, number: int) -> Place:
        return self.file, self.file.generation, number

    @rule(size=_SIZES)
    def more_is_written(self, size: int) -> None:
        self.sizes.append(size)

    @rule(signal=st.sampled_from(_SIGNALS), steps=st.integers(1, 4))
    def a_signal_goes_on(self, signal: str, steps: int) -> None:
        for _ in range(steps):
            if self.stands[signal] < len(self.sizes):
                self.runner.run(self._step(signal))

    @rule()
    def the_file_is_written_anew(self) -> None:
        self.file.generation += 1
        self.sizes, self.stands = [], dict.fromkeys(_SIGNALS, 0)
        self.got = {signal: [] for signal in _SIGNALS}

    async def _step(self, signal: str) -> None:
        number = self.stands[signal]
        place = self.place(number)
        if not self.kept.holds(place):
            await self._wait(signal)
        mapped = self.kept.get(place, signal)
        if mapped is None:
            self.kept.put(place, self._made(number))
            mapped = self.kept.get(place, signal)
        assert mapped is not None
        segment = mapped.segment(signal, (), None)
        self.got[signal] += segment.ids
        self.stands[signal] += 1

    async def _wait(self, signal: str) -> None:
        """Wait twice: the first time may try the patience, after it those that do not move are left behind."""
        await asyncio.wait_for(self.kept.wait(signal), _PATIENCE_SECONDS * 2)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await self.kept.wait(signal)
        assert loop.time() - begun < _PATIENCE_SECONDS / 2

    def _made(self, number: int) -> SegmentRecords:
        start, end = Position(number, START.tail), Position(number + 1, START.tail)
        mapped = SegmentRecords(Segment(start, end, offsets=[number]))
        for signal in _SIGNALS:
            mapped.add({signal: [(0, f"{number}", b"x" * (self.sizes[number] // 3))]})
        self.put[self.place(number)] = mapped
        return mapped

    @invariant()
    def memory_is_bounded(self) -> None:
        held = [one.size for place, one in self.put.items() if self.kept.holds(place)]
        assert sum(held) <= _ROOM + max(held, default=0)
        assert len(held) <= 1 or sum(held) <= _ROOM

    @invariant()
    def every_signal_got_every_record_once_and_in_order(self) -> None:
        for signal in _SIGNALS:
            assert self.got[signal] == [str(number) for number in range(self.stands[signal])]

    def teardown(self) -> None:
        self.runner.close()
        self.patch.undo()


TestKept = KeptMachine.TestCase
TestKept.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
