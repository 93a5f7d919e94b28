"""One sink at work: its lanes take turns on a few workers, behind one gate."""

import asyncio
import contextlib
import sqlite3
import time
from typing import Final

from exporter.core.delivery.schedule import Schedule
from exporter.core.delivery.segment import BYTES_MAX
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_state import SinkState
from exporter.sources.files.session_file import SessionFile
from exporter.state.marks import StoreDamagedError, StoreUnwritableError

TOKEN_POLL_SECONDS: Final = 1.0
TROUBLE_SECONDS: Final = 5.0
_CHECK_LOOK_SECONDS: Final = 2.0
_SPREAD_SECONDS_EACH: Final = 0.1
_PROBE_LOOK_SECONDS: Final = 0.5
"""How often a worker looks whether a probe has ended: that of the sums, beside the workers, wakes none."""
_READ_BYTES_MAX: Final = 1 << 20
"""How much of their files the sessions at work may have in memory, where there are more than `Sink.lanes_always`."""


class SinkWorkers:
    """Runs the lanes of one sink: one request in flight per session, several sessions at once."""

    def __init__(self, sink_state: SinkState, connections: int) -> None:
        self.sink_state = sink_state
        self.name = sink_state.sink.name
        self.lanes: dict[str, Lane] = {}
        self.past: dict[str, SessionFile] = {}
        """Sessions that are history already and wait for a lane."""
        self._connections = connections
        self._schedule: Schedule[Lane] = Schedule()
        self._work = asyncio.Event()
        self._gate_moved = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []
        self._later: dict[Lane, asyncio.TimerHandle] = {}
        self._reads: dict[Lane, int] = {}
        self._sums_up = False
        self._stopping = self._sees_all = False
        self._checking: asyncio.Task[None] | None = None
        sink_state.on_doubt = self._void_all

    @property
    def waiting(self) -> int:
        """How many sessions wait for their turn."""
        return len(self._schedule)

    def start(self, *, sum_up: bool, lives: bool = False) -> None:
        """Start the workers; without `sum_up` another process sums up what is counted. A daemon `lives`."""
        self._sums_up = sum_up
        self.sink_state.feed.sums.lives = lives
        if sum_up:
            self._sending_sums = asyncio.create_task(self.sink_state.feed.sums.run(self.sink_state, self._quiet))
        self._workers = [asyncio.create_task(self._worker()) for _ in range(self._connections)]

    def ask(self, lane: Lane) -> None:
        """Give a lane a turn, now or as soon as its turn comes."""
        lane.asked = True
        lane.settled = False
        if lane.behind_since is None:
            lane.behind_since = time.monotonic()
        if not lane.busy:
            self._schedule.add(lane, live=lane.live)
            self._work.set()

    def check_one_session(self, *, sees_all: bool) -> None:
        """Ask about one session, where we know which store the receiver had: another one answers for all of them.

        From then on every session is asked about once in a while.
        `sees_all` says that every session with a mark has a lane.
        """
        self._sees_all = sees_all
        self._checking = self._checking or asyncio.create_task(self._check_all_the_time())
        if self.sink_state.feed.holds_events and self.sink_state.known_store() is not None:
            for lane in self.lanes.values():
                if lane.doubt():
                    self.ask(lane)
                    return

    def hurry_checks(self) -> None:
        """Ask now about every session that would be asked about soon."""
        for lane in self.lanes.values():
            if lane.is_void and lane.doubt():
                self.ask(lane)

    def _void_all(self) -> None:
        for lane in self.lanes.values():
            lane.void()

    async def _check_all_the_time(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_LOOK_SECONDS)
            spread = max(self.sink_state.sink.spread_seconds_min, len(self.lanes) * _SPREAD_SECONDS_EACH)
            for lane in list(self.lanes.values()) if self.sink_state.sink.capabilities.digest else ():
                if lane.is_due(spread) and lane.doubt():
                    self.ask(lane)

    def idle(self) -> bool:
        """Tell whether there is nothing left to do, or nothing that the sink takes."""
        return self.sink_state.off is not None or (self._quiet() and self.summed_up)

    def _quiet(self) -> bool:
        lanes = self.lanes.values()
        return not len(self._schedule) and all((one.settled or one.gathers) and not one.busy for one in lanes)

    @property
    def summed_up(self) -> bool:
        """Tell whether what the lanes counted has been sent, where that is apart from what they do."""
        return not self._sums_up or self.sink_state.feed.sums.settled

    def check_endings(self) -> None:
        """Give a turn to the lanes of sessions that have something open while their process has ended."""
        for lane in () if self._stopping else self.lanes.values():
            if lane.settled and self.sink_state.feed.is_left_open(lane.file):
                self.ask(lane)

    async def stop(self, drain_seconds: float) -> None:
        """Finish the requests that are under way, for so long at most. The rest is sent again after a start."""
        self._stopping = True
        self._work.set()
        self._gate_moved.set()
        if self._checking is not None:
            self._checking.cancel()
        if self._sums_up:
            self._sending_sums.cancel()
        if self._workers:
            _, pending = await asyncio.wait(self._workers, timeout=drain_seconds)
            for task in pending:
                task.cancel()
            if pending:
                await asyncio.wait(pending, timeout=0.2)
        with contextlib.suppress(OSError):
            await self.sink_state.sink.close()

    def remember(self) -> None:
        """Keep how it ended; raises the errors of the store."""
        self.sink_state.remember(answered=all(lane.answered for lane in self.lanes.values()))

    async def _worker(self) -> None:
        while await self._may_send():
            lane = self._schedule.next()
            if lane is None or not self._has_room(lane):
                self.sink_state.gate.unused()
                self._gate_moved.set()
                self._work.clear()
                if self._stopping:
                    return
                await self._work.wait()
                continue
            await self._turn(lane)

    def _has_room(self, lane: Lane) -> bool:
        """Tell whether there is memory for what a lane reads next; if not, its turn comes when another has ended."""
        size, always = min(lane.lag_bytes(), BYTES_MAX), self.sink_state.sink.lanes_always
        if always is None or len(self._reads) < always or sum(self._reads.values()) + size <= _READ_BYTES_MAX:
            self._reads[lane] = size
            return True
        self._schedule.put_back(lane, live=lane.live)
        return False

    async def _turn(self, lane: Lane) -> None:
        lane.busy, lane.asked = True, False
        self.sink_state.busy += 1
        more = False
        try:
            more = await lane.turn()
        except Exception as error:  # a task's edge: a defect stops this session for a while, and nothing else
            lane.failed(error)
        finally:
            lane.busy = False
            del self._reads[lane]
            if len(self._schedule):
                self._work.set()
            self.sink_state.busy -= 1
            self.sink_state.gate.unused()
            self._gate_moved.set()
        with contextlib.suppress(sqlite3.Error, StoreDamagedError, StoreUnwritableError):
            if (
                self.sink_state.is_news
                and self.sink_state.check_store()
                and not any(one.in_doubt for one in self.lanes.values())
            ):
                self.sink_state.store_checked(everywhere=self._sees_all)
        if more or lane.asked:
            self._schedule.add(lane, live=lane.live)
            self._work.set()
        elif not lane.settled:
            rest = lane.rest_seconds()
            if (before := self._later.get(lane)) is not None:
                before.cancel()
            loop = asyncio.get_running_loop()
            self._later[lane] = loop.call_later(rest if rest > 0 else TROUBLE_SECONDS, self.ask, lane)

    async def _may_send(self) -> bool:
        """Wait until the gate lets a request through; return False when it is time to stop."""
        gate = self.sink_state.gate
        while not self._stopping:
            if not len(self._schedule) and gate.failures == 0 and not gate.closed:
                return True
            until = gate.ready(time.monotonic())
            if gate.closed:
                await self._wait_for_gate(TOKEN_POLL_SECONDS)
                gate.token_is(self.sink_state.sink.token())
            elif until is None:
                return True
            else:
                await self._wait_for_gate(until - time.monotonic())
        return False

    async def _wait_for_gate(self, seconds: float) -> None:
        self._gate_moved.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PROBE_LOOK_SECONDS if seconds == float("inf") else max(0.0, seconds)):
                await self._gate_moved.wait()
