"""One session on its way to one sink: where it stands in the file, and what its next turn does.

A lane follows (reads on from its position) or reconciles (the file's past changed, or what the sink has is only
known by asking it: the file is read from its first event, what the sink has is passed over, what it lacks is sent,
and what it has but the file lacks is reported as rewound). While it reconciles the mark does not move; the delivered
ids do, so that a crash in the middle repeats nothing.
"""

import asyncio
import sqlite3
import time
from dataclasses import replace
from typing import Final

from exporter.core.delivery.position import START, Position
from exporter.core.delivery.reconcile import Reconciliation
from exporter.core.delivery.segment import Segment, Unsendable
from exporter.core.notice import Level
from exporter.pipeline.event_feed import Reading
from exporter.pipeline.gather import Gather
from exporter.pipeline.outcome import Delivered, Outcome, Resync
from exporter.pipeline.progress import UNWRITABLE, LaneProgress, place_of
from exporter.pipeline.single_event import send_one
from exporter.pipeline.sink_session import STORE_RETRY_SECONDS, SinkSession
from exporter.pipeline.sink_state import SinkState
from exporter.sources.files.session_file import SessionFile
from exporter.state.marks import Mark, StoreDamagedError, StoreUnwritableError
from exporter.state.quarantine import QuarantineFullError

EMPTY_SECONDS: Final = 1.0


class Lane:
    """See the module. `turn` does one step and says whether there is more to do at once."""

    def __init__(self, file: SessionFile, sink_state: SinkState, *, live: bool, mark: Mark | None) -> None:
        self.file = file
        self.live = live
        self.busy = False
        self.asked = False
        self.settled = False
        self.behind_since: float | None = None
        self.progress = LaneProgress()
        self.sink_state = sink_state
        self.position: Position = START
        self._turning = asyncio.Lock()
        self._handover = SinkSession(file.session, sink_state, mark, self.progress)
        self._reading = Reading(file, sink_state, self._handover.delivered)
        self._gather = Gather(file, sink_state.sink.gathering)
        self._epoch = sink_state.store.epoch
        self._generation: int | None = None
        self._last_id: str | None = None
        self._reconciling: Reconciliation | None = None
        self._ahead: Segment | None = None

    # ---- what others may know and ask -----------------------------------------------------------------------

    @property
    def mark(self) -> Mark:
        """The mark as it is remembered."""
        return self._handover.mark

    @property
    def stopped(self) -> bool:
        """See `SinkSession.stopped`."""
        return self._handover.stopped

    def rest_seconds(self) -> float:
        """Return for how long nothing is to be done for the session, unless somebody asks for it."""
        return max(self._handover.pace.rest_until, self._gather.until) - time.monotonic()

    @property
    def gathers(self) -> bool:
        """Whether nothing is left to do now but to let events gather."""
        return not self.settled and self._gather.until > time.monotonic()

    def hurry(self) -> bool:
        """Let events gather no longer, up to the end of the file; return whether there is something to do for it."""
        return self._gather.hurry()

    def show(self, live: list[bytes]) -> bool:
        """Show redacted ephemeral events that are in no file, if the last ones are through; tell whether they were."""
        return not self.stopped and self._handover.show(live)

    def reached(self, generation: int, offset: int) -> bool:
        """Tell whether the sink has what stood before an offset of a generation of the file."""
        if self.settled:
            return True
        follows = self._reconciling is None and not self._handover.ask_again and not self._handover.in_doubt
        return follows and self._generation == self.file.generation == generation and self.position.offset >= offset

    def lag_bytes(self) -> int:
        """Return the bytes of whole lines that the sink does not have yet, as far as is known."""
        if self.stopped or self.file.identity is None:
            return 0
        position = self.position if self._generation == self.file.generation else self.mark.position
        if position.offset > self.file.size:
            return self.file.size
        return max(0, self.file.size - position.offset - self.sink_state.reader.held_bytes(self.file, position.offset))

    def start_over(self) -> None:
        """Forget what this sink has of the session and send it again from its first event."""
        self._handover.start_over()
        self._begin_again({})

    @property
    def in_doubt(self) -> bool:
        """Whether the sink is still to be asked if it has the session."""
        return self._handover.in_doubt and not self.stopped and not self._gone()

    def doubt(self) -> bool:
        """Ask the sink at the next turn whether it still has the session; return False if that is out of question."""
        if self.stopped or self.mark.remote_id is None or self.file.identity is None or self._gone():
            return False
        self._handover.doubt()
        return True

    async def send_one(self, event: Unsendable) -> str | None:
        """Send one event out of quarantine; return why the sink has it not, None when it has."""
        async with self._turning:
            return await send_one(self._handover, event)

    async def repair(self, different: list[str]) -> None:
        """Make the receiver hold what the file holds: ask what it has, hide what it has otherwise, send the rest."""
        async with self._turning:
            if different:
                await self._handover.rewound(different)
            self._handover.ask_again = True

    async def turn(self) -> bool:
        """Do the next step; return whether there is more to do at once. Errors of the sink wait at its gate."""
        async with self._turning:
            return await self._turn()

    async def _turn(self) -> bool:
        self.settled = False
        if self.sink_state.store.epoch != self._epoch:
            self._epoch = self.sink_state.store.epoch
            self._handover.forget()
            self._generation = self._reconciling = None
        if self.stopped or self.file.identity is None or self._gone():
            return self._settle()
        if self._handover.pace.rest_until > time.monotonic():
            return False
        try:
            more = await self._step()
            return self._settle() if self.stopped else more
        except StoreDamagedError as error:
            self._say(Level.ERROR, "the store is damaged and set aside; the receiver is asked", aside=str(error.path))
            return True
        except QuarantineFullError:
            self._trouble("quarantine_full", "the quarantine is full; the session waits for room")
            return False
        except (StoreUnwritableError, sqlite3.Error) as error:
            self._trouble(UNWRITABLE, "the state directory cannot be written; waiting", why=str(error))
            await asyncio.sleep(STORE_RETRY_SECONDS)
            return True

    def failed(self, error: Exception) -> None:
        """Note a defect of ours; the text of the error may hold content and is not repeated."""
        self._ahead = None
        self._trouble(
            "defect", "a defect stopped this session; it is tried again", error=type(error).__name__, at=place_of(error)
        )

    async def _step(self) -> bool:
        if (self._handover.ask_again or self._handover.in_doubt) and not self._go_on(await self._handover.prepare()):
            return True
        if self._generation != self.file.generation:
            if self._handover.asks_because_unsure():
                return True
            self._take_position()
        if self._reconciling is None and self._gather.waits(self.position.offset):
            return False
        await self._handover.pace.gather(self.file.size - self.position.offset)
        segment, self._ahead = self._ahead, None
        if segment is None or segment.start != self.position:
            segment = await self._reading.next(self.position, self._last_id, self._reconciling)
        if self._generation != self.file.generation:
            return True
        if segment is None:
            segment = await self._reading.ending(self.position, self._reconciling)
        if segment is None:
            return await self._at_end()
        if segment.ids and not self._go_on(await self._handover.prepare()):
            return True
        return await self._deliver(segment)

    def _go_on(self, dealt: Outcome) -> bool:
        """Begin again if it came to that; return whether to go on with the segment at hand."""
        if isinstance(dealt, Resync):
            self._begin_again(dealt.known)
        return isinstance(dealt, Delivered)

    async def _deliver(self, segment: Segment) -> bool:
        """Carry out the order of effects that `core/delivery/batches.py` states, for one segment."""
        if segment.unsendable:
            self.sink_state.keep(self.file.session, segment.unsendable, for_all_sinks=True)
        self._handover.show(segment.live)
        generation = self._generation
        refused: frozenset[int] = frozenset()
        if segment.ids and self.sink_state.counting is None:
            self._handover.pace.sends()
            dealt = await self._handover.hand_over(segment, lambda: self._meanwhile(segment))
            if not self._go_on(dealt):
                self._ahead = None
                return True
            assert isinstance(dealt, Delivered)
            refused = dealt.refused
        await self._commit(segment, refused, still_here=generation == self.file.generation)
        return True

    async def _meanwhile(self, segment: Segment) -> None:
        segment.hashes(for_digest=self.sink_state.sink.capabilities.digest)
        # While other sessions are sent at the same time there is no need to have more in memory.
        alone = self.sink_state.busy <= 1 and self.sink_state.sink.gathering is None
        if alone and self.file.size > segment.end.offset and self._generation == self.file.generation:
            self._ahead = await self._reading.next(segment.end, segment.last_id, self._reconciling)

    async def _commit(self, segment: Segment, refused: frozenset[int], *, still_here: bool) -> None:
        ids, hashes = segment.without(refused, for_digest=self.sink_state.sink.capabilities.digest)
        mark = self.mark
        counted = [line for line in segment.lines if line] if self.sink_state.counting is not None else []
        if still_here and self._reconciling is None:
            last = ids[-1] if ids else mark.last_id
            if self.sink_state.mapping is not None:
                last = segment.last_id or mark.last_id
            mark = replace(mark, position=segment.end, identity=self.file.identity, last_id=last)
        elif not still_here:  # what was sent lies behind the mark, and may be in the file no more
            mark = replace(mark, identity=None)
        mapped = self.sink_state.mapping is not None and segment.events
        if ids or segment.unsendable or refused or mapped:  # what is ephemeral alone moves no mark
            await self._handover.commit(mark, ids, hashes, segment.masked, counted)
        if counted and self.sink_state.counting is not None:
            self.sink_state.counting.counted()
        self.sink_state.relieved(self.file.session, self.progress)
        self.progress.add(segment, len(ids) if self.sink_state.mapping is None else segment.events)
        self.position = segment.end
        self._last_id = segment.last_id or self._last_id
        if self._reconciling is not None:
            self._reconciling.settled(segment.seen)

    def _take_position(self) -> None:
        """Believe the mark if the file is still the one it was set in; else reconcile."""
        mark = self.mark
        if not self._handover.known:
            self._stand(START, None)
        elif mark.identity == self.file.identity and self.sink_state.reader.check(self.file, mark.position):
            self._stand(mark.position, mark.last_id)
        else:
            known = self._handover.delivered()
            self._handover.disbelieve()
            self._reconcile(known)

    def _stand(self, position: Position, last_id: str | None) -> None:
        self.position, self._last_id, self._ahead = position, last_id, None
        self._generation, self._reconciling = self.file.generation, None
        self._reading.forget()

    def _begin_again(self, known: dict[str, bytes]) -> None:
        self._handover.begin_again(known)
        self._reconcile(known)

    def _reconcile(self, known: dict[str, bytes]) -> None:
        self._stand(START, None)
        self._reconciling = Reconciliation(known, self.sink_state.withheld(self.file.session))
        if known:
            self._say(Level.INFO, "reading the session again from its first event", delivered=len(known))

    async def _at_end(self) -> bool:
        """Settle; a reconciliation first tells the sink what is gone and then sets the mark."""
        if not self.sink_state.reader.check(self.file, self.position):
            return True
        reconciling = self._reconciling
        if reconciling is None:
            return self._settle()
        if self.file.size == 0 and 0 <= time.time() - self.file.modified < EMPTY_SECONDS:
            self._handover.pace.rest(EMPTY_SECONDS)  # somebody is writing it anew
            return False
        gone = [] if self.file.is_journal else reconciling.gone()  # what is not in a journal may be cut off, or to come
        if gone and not self._go_on(await self._handover.rewound(gone)):
            return True
        # What the sink has hidden is hidden, even if the file has changed again meanwhile; the mark needs the file.
        last = self._last_id or self.mark.last_id
        mark = replace(self.mark, last_id=None if last in gone else last)
        if self._generation == self.file.generation:
            mark = replace(mark, position=self.position, identity=self.file.identity)
            self._reconciling = None
        await self._handover.settle(mark, gone)
        return True

    def _gone(self) -> bool:
        """Tell whether the file left before this sink had all of it; what is open is drained first."""
        if not self.file.gone or self.sink_state.reader.files.holds(self.file):
            return False
        missed = self.lag_bytes()
        if missed and self.progress.bytes_gone != missed:
            self.progress.bytes_gone = missed
            self._say(Level.ERROR, "the file is gone before delivery", bytes=missed)
        return True

    def _settle(self) -> bool:
        self.settled = True
        self._gather.settled()
        self.behind_since = None
        return False

    def _trouble(self, problem: str, message: str, **fields: object) -> None:
        self.sink_state.troubled(self.file.session, self.progress, problem, message, **fields)

    def _say(self, level: Level, message: str, **fields: object) -> None:
        self.sink_state.say(level, message, self.file.session, **fields)
