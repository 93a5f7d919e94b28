"""The second half of a sink that is sent sums: what its lanes counted is added up, and the sums are sent.

Order of effects: what was counted is in the store with the mark it belongs to; here it moves into the sums, durably;
the next points are made of the sums and sent; after a 2xx the sums that know it are written. A crash repeats the very
same points.
"""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Final, Protocol, assert_never

from exporter.core.delivery.batches import Again, Delivery, Done, Leave, Outcome, QuarantineEvent, Send, Settled
from exporter.core.delivery.segment import Segment
from exporter.core.delivery.verdict import Later, Unauthorized, Unsupported
from exporter.pipeline.feed import FeedSums
from exporter.pipeline.sink_state import SinkState
from exporter.state.marks import StoreDamagedError, StoreUnwritableError
from exporter.state.quarantine import QuarantineFullError

_SEGMENTS_MAX: Final = 32
_POLL_SECONDS: Final = 0.1
_RETRY_SECONDS: Final = 1.0
_OLD_SECONDS: Final = 60.0


class PendingSums(Protocol):
    """The sums of one stream. `points` says what is to be sent next until `accepted` says that it was.

    It leaves out what is not over by `until_ns`, if that is given; then `waits` is still true. With `repeats` it
    repeats what was accepted before, when it is time to; `repeated` says that the last points are such.
    """

    @property
    def waits(self) -> bool: ...

    def add(self, bodies: list[bytes]) -> None: ...

    @property
    def repeated(self) -> bool: ...

    @property
    def was_accepted(self) -> bool: ...

    def points(self, until_ns: int | None, *, repeats: bool) -> list[bytes]: ...

    def accepted(self) -> None: ...

    def state(self) -> bytes: ...


class MetricSender(FeedSums):
    """Sends the sums of one sink, every `interval_seconds` or as soon as a command waits for them.

    While it `lives`, as a daemon does, it asks every `repeat_seconds` for what is to be repeated; 0: never.
    """

    counts = True

    def __init__(
        self,
        make: Callable[[str, bytes | None], PendingSums],
        interval_seconds: float,
        repeat_seconds: float = 0.0,
    ) -> None:
        self.hurried = False
        self._repeat_seconds = repeat_seconds or None
        self._make = make
        self._interval_seconds = interval_seconds
        self._sums: dict[str, PendingSums] = {}
        self._epoch: int | None = None
        self._sending = False
        self._counted = asyncio.Event()
        self._counted.set()  # what an earlier daemon left

    @property
    def settled(self) -> bool:
        """Tell whether everything that was counted has been sent."""
        return not self._sending and not self._counted.is_set()

    @property
    def streams(self) -> Sequence[str]:
        """The streams that something was counted for."""
        return list(self._sums)

    def of(self, segment: Segment) -> Sequence[bytes]:
        """Return what the feed packed."""
        return [line for line in segment.lines if line]

    def was_accepted(self, state: bytes) -> bool:
        """See `FeedSums`."""
        return self._make("", state).was_accepted

    def counted(self) -> None:
        """Note that something was counted."""
        self._counted.set()

    async def run(self, sink_state: SinkState, quiet: Callable[[], bool]) -> None:
        """Send until cancelled. While sessions are still being read, as `quiet` tells, sums wait: they go by time."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._repeat_seconds if self.lives else None):
                    await self._counted.wait()
            hurried = await self._gather(quiet) if self._counted.is_set() else False
            self._sending = True
            try:
                all_went = await self._send_all(sink_state, None if hurried else time.time_ns())
            except (StoreUnwritableError, StoreDamagedError, QuarantineFullError, sqlite3.Error) as error:
                all_went = False
                self._sums.clear()
                self._counted.set()
                full = isinstance(error, QuarantineFullError)
                sink_state.last_error = "the quarantine is full" if full else f"the sums cannot be written: {error}"
            finally:
                self._sending = False
            if not all_went:
                await asyncio.sleep(_RETRY_SECONDS)

    async def _gather(self, quiet: Callable[[], bool]) -> bool:
        """Wait for more to be counted; return whether a command waits for all of it to be sent."""
        begun = time.monotonic()
        while time.monotonic() - begun < self._interval_seconds and not (self.hurried and quiet()):  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)
        hurried, self.hurried = self.hurried, False
        return hurried

    async def _send_all(self, sink_state: SinkState, until_ns: int | None) -> bool:
        """Add up what was counted and send what is over by then; return whether all of that went."""
        self._counted.clear()
        self._lost_store(sink_state)
        while self._add_up(sink_state):  # all of it before anything is sent: points go by their time
            self._counted.set()
            await asyncio.sleep(0)
            self._lost_store(sink_state)
        for stream, sums in list(self._sums.items()):
            while points := sums.points(until_ns, repeats=self.lives):
                if not sums.repeated:
                    # Before anything is added, and before it is sent: a crash repeats exactly these points.
                    sink_state.store.sum_up(sink_state.sink_id, stream, sums.state(), 0)
                if not await self._send(sink_state, stream, points) or self._lost_store(sink_state):
                    self._counted.set()
                    return False
                sums.accepted()
                sink_state.store.sum_up(sink_state.sink_id, stream, sums.state(), 0)
            if sums.waits:
                self._counted.set()
        return True

    def _lost_store(self, sink_state: SinkState) -> bool:
        """Forget the sums if the store was begun anew: everything is counted again, and would be in them twice."""
        before, self._epoch = self._epoch, sink_state.store.epoch
        if before in (None, self._epoch):
            return False
        self._sums.clear()
        return True

    def _add_up(self, sink_state: SinkState) -> bool:
        """Add up some of what was counted, not all at once for the memory's sake; return whether there was any."""
        some = False
        for one in sink_state.store.pending_metrics(sink_state.sink_id, _SEGMENTS_MAX):
            sums = self._sums.get(one.stream)
            if sums is None:
                sums = self._sums[one.stream] = self._make(one.stream, one.state)
            if one.bodies:
                some = True
                sums.add(one.bodies)
                sink_state.store.sum_up(sink_state.sink_id, one.stream, sums.state(), one.until)
        return some

    async def _send(self, sink_state: SinkState, stream: str, points: list[bytes]) -> bool:
        """Send points, in halves when they are refused; return False when the sink cannot take them now."""
        delivery = Delivery(list(map(len, points)))
        while True:
            step: Send | Done | Outcome = delivery.ready(sink_state.sink.limits())
            if isinstance(step, Send):
                if await _open_gate(sink_state) > _OLD_SECONDS:  # a collection has the time at which it is made
                    sink_state.gate.unused()
                    return False
                ids, some = [str(number) for number in range(step.first, step.end)], points[step.first : step.end]
                try:
                    sent = await sink_state.send(stream, ids, some)
                finally:
                    sink_state.gate.unused()  # a refusal of these points says nothing of the sink, and more may follow
                step = delivery.answered(sent.verdict)
            match step:
                case Done():
                    return True
                case QuarantineEvent(index, reason):
                    sink_state.refuse(stream, None, 0, points[index], reason)
                case Settled():
                    sink_state.succeeded()
                    sink_state.note_remarks(stream, 0, some, sent)
                    for number in sent.rejected:
                        sink_state.refuse(stream, None, 0, points[int(number)], sent.refusal, sent.told)
                case Again():
                    sink_state.retries += 1
                case Leave(verdict):
                    about_sink = isinstance(verdict, Later | Unauthorized | Unsupported)
                    sink_state.note(verdict if about_sink else Later(type(verdict).__name__.lower()), stream)
                    return False
                case unknown:
                    assert_never(unknown)


async def _open_gate(sink_state: SinkState) -> float:
    """Wait until the sink may be sent to; return for how long, in seconds."""
    begun = time.monotonic()
    while (until := sink_state.gate.ready(time.monotonic())) is not None:
        if sink_state.gate.closed:
            await asyncio.sleep(_RETRY_SECONDS)
            sink_state.gate.token_is(sink_state.sink.token())
        else:
            await asyncio.sleep(min(_RETRY_SECONDS, max(0.05, until - time.monotonic())))
    return time.monotonic() - begun
