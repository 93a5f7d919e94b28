"""What signals share of a session: bounded in memory whoever lags, and nobody waits for one that is stuck for long."""

import asyncio
import time
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from exporter.core.delivery.position import START, Position
from exporter.core.delivery.segment import Segment
from exporter.pipeline.record_cache import Place, RecordCache, SegmentRecords
from exporter.sources.files.session_file import SessionFile
from tests.daemon import clock

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
