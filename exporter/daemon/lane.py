"""One session on its way to one sink: where it stands, and what its next turn does.

A lane follows (reads on from its position) or reconciles (the file's past changed, or what the sink has is only
known by asking it: the file is read from its first event, what the sink has is passed over, what it lacks is sent,
and what it has but the file lacks is reported as rewound). While it reconciles the mark does not move; the delivered
ids do, so that a crash in the middle repeats nothing.
"""

import asyncio
import hashlib
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, assert_never

from exporter.core.delivery import Again, Delivery, Done, Leave, Quarantine, Send, Settled
from exporter.core.gate import Gate
from exporter.core.notice import Level, Notice
from exporter.core.position import START, Position
from exporter.core.segment import Segment, Unsendable
from exporter.core.verdict import (
    Accepted,
    Conflict,
    Deleted,
    Later,
    LessCompression,
    Missing,
    Smaller,
    Suspect,
    Unauthorized,
    Verdict,
)
from exporter.daemon.road import Road
from exporter.sinks.mission_control import MissionControl, Registered, Sent, retry_delay_seconds
from exporter.sources.session_file import SessionFile
from exporter.store.marks import DELETED_THERE, FOLLOWING, Mark, Store, StoreDamagedError, StoreUnwritableError
from exporter.store.quarantine import Quarantine as QuarantineStore
from exporter.store.quarantine import QuarantineFullError

STORE_RETRY_SECONDS: Final = 1.0
GATHER_SECONDS: Final = 0.005


@dataclass(slots=True)
class Progress:
    """What one lane has done since the daemon started, and what troubles it."""

    events: int = 0
    bytes: int = 0
    masked: int = 0
    retries: int = 0
    chain_breaks: int = 0
    gone_before_delivery: int = 0
    last_error: str | None = None
    problem: str | None = None


@dataclass(slots=True)
class _Reconciling:
    known: dict[str, bytes]
    skip: set[str]
    seen: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Outlet:
    """What all lanes of one sink share."""

    sink: MissionControl
    sink_id: int
    gate: Gate
    store: Store
    quarantine: QuarantineStore
    road: Road
    notice: Callable[[Notice], None]
    shared: bool = False
    keep_live: bool = False
    last_success: float | None = None
    last_error: str | None = None
    retries: int = 0


class Lane:
    """See the module. `turn` does one step and says whether there is more to do at once."""

    def __init__(self, file: SessionFile, outlet: Outlet, *, live: bool, mark: Mark | None) -> None:
        self.file = file
        self.live = live
        self.busy = False
        self.asked = False
        self.settled = False
        self.behind_since: float | None = None
        self.progress = Progress()
        self.outlet = outlet
        self.mark = mark
        self.position: Position = START
        self._epoch = outlet.store.epoch
        self._generation: int | None = None
        self._last_id: str | None = None
        self._reconciling: _Reconciling | None = None
        self._registered = False
        self._ahead: Segment | None = None
        self._last_sent = 0.0
        self._ask_again = False
        self._setbacks = 0
        self._showing: asyncio.Task[None] | None = None

    # ---- what others may know -------------------------------------------------------------------------------

    @property
    def stopped(self) -> bool:
        """Tell whether nothing will be sent until a person asks for it."""
        return self.mark is not None and self.mark.state != FOLLOWING

    def lag_bytes(self) -> int:
        """Return the bytes of whole lines that the sink does not have yet, as far as is known."""
        if self.stopped or self.file.identity is None:
            return 0
        position = self.position if self._generation == self.file.generation else self._mark_position()
        if position.offset > self.file.size:
            return self.file.size
        return max(0, self.file.size - position.offset - self.outlet.road.held_bytes(self.file, position.offset))

    def _mark_position(self) -> Position:
        return START if self.mark is None else self.mark.position

    def start_over(self) -> None:
        """Forget what this sink has of the session and send it again from its first event."""
        self._begin_again({})

    async def count_ahead(self, *, from_start: bool) -> tuple[int, int, int]:
        """Return how many events and bytes would be sent now, and how many secrets would be masked."""
        events = size = masked = 0
        if not from_start:
            self._take_position()
        while (segment := await self._read(self.position, None)) is not None:
            events += len(segment.ids)
            size += segment.size
            masked += sum(segment.masked.values())
            self.position = segment.end
        return events, size, masked

    async def send_one(self, event: Unsendable) -> str | None:
        """Send one event out of quarantine; return why the sink has it not, None when it has."""
        assert event.id is not None
        if not self._registered and not await self._register():
            return self.progress.last_error or "the sink does not take it now"
        assert self.mark is not None and self.mark.remote_id is not None
        sent = await self.outlet.sink.send(self.mark.remote_id, [event.id], [event.raw])
        if not isinstance(sent.verdict, Accepted) or sent.rejected:
            return f"the sink refuses it: {type(sent.verdict).__name__.lower()}"
        known = self.outlet.store.delivered(self.file.session, self.outlet.sink_id)
        if event.id not in known:
            digest = hashlib.sha256(event.raw).digest()
            self.mark = self._commit_once(self.mark, [event.id], [digest], {})
        return None

    async def repair(self, different: list[str]) -> None:
        """Make the receiver hold what the file holds: ask what it has, hide what it has otherwise, send the rest."""
        if different and self.mark is not None and self.mark.remote_id is not None:
            await self.outlet.sink.send(self.mark.remote_id, [], [], different)
        self.ask_receiver_again()

    def ask_receiver_again(self) -> None:
        """Take nothing for granted: ask the receiver what it has before the next batch."""
        self._registered = False
        self._ask_again = True

    # ---- one turn -------------------------------------------------------------------------------------------

    async def turn(self) -> bool:
        """Do the next step; return whether there is more to do at once. Errors of the sink wait at its gate."""
        self.settled = False
        if self.outlet.store.epoch != self._epoch:
            self._forget_store()
        if self.stopped or self.file.identity is None or self._gone():
            self._settle()
            return False
        try:
            return await self._step()
        except StoreDamagedError as error:
            self._say(Level.ERROR, "store damaged and set aside; asking the receiver", aside=str(error.path))
            return True
        except QuarantineFullError:
            self._trouble("quarantine_full", "the quarantine is full; the session waits for room")
            return False
        except (StoreUnwritableError, sqlite3.Error) as error:
            self._trouble("store_unwritable", "the state directory cannot be written; waiting", why=str(error))
            await asyncio.sleep(STORE_RETRY_SECONDS)
            return True

    def failed(self, error: Exception) -> None:
        """Note a defect of ours; the text of the error may hold content and is not repeated."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        self._ahead = None
        self._trouble("defect", "a defect stopped this session; it is tried again", error=type(error).__name__, at=place)

    async def _step(self) -> bool:
        if self._ask_again and not (await self._register() and await self._resync()):
            return not self.stopped
        if self._generation != self.file.generation:
            self._take_position()
        await self._gather()
        segment, self._ahead = self._ahead, None
        if segment is None or segment.start != self.position:
            segment = await self._read(self.position, self._last_id)
        if self._generation != self.file.generation:
            return True
        if segment is None:
            return await self._at_end()
        needs_sink = bool(segment.ids)
        if needs_sink and not self._registered and not await self._register():
            return not self.stopped
        if self._generation != self.file.generation or segment.start != self.position:
            return True
        return await self._deliver(segment)

    def _take_position(self) -> None:
        """Believe the mark if the file is still the one it was set in; else reconcile."""
        self._generation = self.file.generation
        self._ahead = None
        mark = self.mark
        if mark is None:
            self.position, self._last_id = START, None
            return
        same_file = mark.identity == self.file.identity and mark.position.offset <= self.file.size
        if same_file and self.outlet.road.check(self.file, mark.position):
            self.position, self._last_id, self._reconciling = mark.position, mark.last_id, None
            return
        self._generation = self.file.generation
        known = self.outlet.store.delivered(self.file.session, self.outlet.sink_id)
        self._reconcile(known)

    def _reconcile(self, known: dict[str, bytes]) -> None:
        quarantined = self.outlet.quarantine.ids(self.file.session, self.outlet.sink.name)
        self._reconciling = _Reconciling(known, set(known) | quarantined)
        self.position, self._last_id, self._ahead = START, None, None
        self._say(Level.INFO, "reading the session again from its first event", delivered=len(known))

    async def _gather(self) -> None:
        """Above 200 requests a second let events gather for some milliseconds; never delay the first after a pause."""
        wait = self._last_sent + GATHER_SECONDS - time.monotonic()
        if wait > 0 and self.file.size - self.position.offset < 65_536:
            await asyncio.sleep(wait)

    async def _read(self, position: Position, last_id: str | None) -> Segment | None:
        reconciling = self._reconciling
        return await self.outlet.road.segment(
            self.file,
            position,
            last_id,
            shared=self.outlet.shared and reconciling is None,
            keep_live=self.outlet.keep_live,
            skip=reconciling.skip if reconciling else frozenset(),
            seen=reconciling.seen if reconciling else None,
        )

    async def _at_end(self) -> bool:
        reconciling = self._reconciling
        if reconciling is None or self.file.size == 0:
            self._settle()
            return False
        gone = [identity for identity in reconciling.known if identity not in reconciling.seen]
        if gone and not await self._rewound(gone):
            return True
        delivered = self.outlet.store.delivered(self.file.session, self.outlet.sink_id)
        mark = replace(
            self.mark or Mark(), position=self.position, identity=self.file.identity, last_id=self._last_delivered(gone)
        )
        if gone:
            for identity in gone:
                delivered.pop(identity, None)
            self.mark = self.outlet.store.replace_delivered(self.file.session, self.outlet.sink_id, mark, delivered)
            self._say(Level.WARNING, "events were rewound", events=len(gone))
        else:
            self.mark = self.outlet.store.commit(self.file.session, self.outlet.sink_id, mark, [], [], {})
        self._reconciling = None
        return True

    def _last_delivered(self, gone: list[str]) -> str | None:
        last = self._last_id or (self.mark.last_id if self.mark else None)
        return None if last in gone else last

    async def _rewound(self, gone: list[str]) -> bool:
        if not self._registered and not await self._register():
            return False
        if self._reconciling is None or self.mark is None or self.mark.remote_id is None:
            return False
        if not self.outlet.sink.capabilities.rewound:
            return True
        sent = await self.outlet.sink.send(self.mark.remote_id, [], [], gone)
        if isinstance(sent.verdict, Accepted):
            self._succeeded()
            return True
        return self._leave(sent.verdict)

    # ---- delivering -----------------------------------------------------------------------------------------

    async def _deliver(self, segment: Segment) -> bool:
        """Carry out the order of effects that `core/delivery.py` states, for one segment."""
        if segment.unsendable:
            self._put_in_quarantine(None, segment.unsendable)
        if segment.live and self.mark is not None and self.mark.remote_id is not None:
            if self._showing is None or self._showing.done():  # dropped when slow
                self._showing = asyncio.create_task(self.outlet.sink.live(self.mark.remote_id, segment.live))
        delivery = Delivery([len(line) for line in segment.lines])
        generation = self._generation
        while True:
            match delivery.ready(self.outlet.sink.limits()):
                case Done():
                    break
                case Quarantine(index, reason):
                    self._refuse(segment, index, reason)
                case Send(first, end):
                    sent = await self._send(segment, first, end)
                    if sent.rejected:
                        rejected = set(sent.rejected)
                        for index in range(first, end):
                            if segment.ids[index] in rejected:
                                delivery.refused.add(index)
                                self._refuse(segment, index, "rejected_by_receiver")
                    outcome = delivery.answered(sent.verdict)
                    if isinstance(sent.verdict, LessCompression):
                        continue
                    if delivery.batch_bytes_refused is not None:
                        self.outlet.sink.body_refused(delivery.batch_bytes_refused)
                        delivery.batch_bytes_refused = None
                    match outcome:
                        case Settled():
                            self._setbacks = 0
                            self._succeeded()
                        case Again():
                            self.outlet.retries += 1
                        case Quarantine(index, reason):
                            self._refuse(segment, index, reason)
                        case Leave(verdict):
                            self._ahead = None
                            self._leave(verdict)
                            return not self.stopped
                        case _:
                            assert_never(outcome)
                    if not sent.trusted:
                        self._setback("the receiver acknowledged something else")
                        self._ask_again = True
                        return True
        await self._commit(segment, delivery.refused, still_here=generation == self.file.generation)
        return True

    async def _send(self, segment: Segment, first: int, end: int) -> Sent:
        assert self.mark is not None and self.mark.remote_id is not None
        whole = end - first == len(segment.ids)
        ids = segment.ids if whole else segment.ids[first:end]
        lines = segment.lines if whole else segment.lines[first:end]
        self._last_sent = time.monotonic()
        sending = asyncio.ensure_future(self.outlet.sink.send(self.mark.remote_id, ids, lines))
        try:
            await asyncio.sleep(0)  # the request is on its way before the next segment is read
            segment.hashes()
            if end == len(segment.ids) and self._ahead is None and self._may_read_ahead():
                self._ahead = await self._read(segment.end, segment.ids[-1])
            return await sending
        except asyncio.CancelledError:
            sending.cancel()
            raise

    def _may_read_ahead(self) -> bool:
        return self.file.size > self.position.offset and self._generation == self.file.generation

    async def _commit(self, segment: Segment, refused: set[int], *, still_here: bool) -> None:
        ids, hashes = segment.ids, segment.hashes()
        if refused:
            ids = [identity for index, identity in enumerate(ids) if index not in refused]
            hashes = [one for index, one in enumerate(hashes) if index not in refused]
        mark = self.mark or Mark()
        if still_here and self._reconciling is None:
            last = ids[-1] if ids else mark.last_id
            mark = replace(mark, position=segment.end, identity=self.file.identity, last_id=last)
        if ids or segment.unsendable or refused:
            day = segment.last_timestamp[:10]
            masked = {(day, rule): count for rule, count in segment.masked.items()}
            self.mark = await self._insist(lambda: self._commit_once(mark, ids, hashes, masked))
        self.progress.events += len(ids)
        self.progress.bytes += segment.size
        self.progress.masked += sum(segment.masked.values())
        self.progress.chain_breaks += segment.chain_breaks
        self.progress.problem = None
        self.position = segment.end
        if segment.ids:
            self._last_id = segment.ids[-1]

    def _commit_once(self, mark: Mark, ids: list[str], hashes: list[bytes], masked: dict[tuple[str, str], int]) -> Mark:
        return self.outlet.store.commit(self.file.session, self.outlet.sink_id, mark, ids, hashes, masked)

    async def _insist(self, commit: Callable[[], Mark]) -> Mark:
        """Write the mark or wait until it can be written: nothing more is sent on this lane before that."""
        while True:
            try:
                return commit()
            except StoreUnwritableError as error:
                self._trouble("store_unwritable", "the mark cannot be written; waiting", why=str(error))
                await asyncio.sleep(STORE_RETRY_SECONDS)

    # ---- what the sink says ---------------------------------------------------------------------------------

    async def _register(self) -> bool:
        """Make the session known to the sink; return whether the segment at hand can be sent now."""
        mark = self.mark or Mark()
        answer = await self.outlet.sink.register(self.file.session, mark.remote_id)
        if not isinstance(answer, Registered):
            if isinstance(answer, Missing) and mark.remote_id is None:
                answer = Later("no Mission Control at this address (404)", 60.0, alarm=True)
            return self._leave(answer)
        self._succeeded()
        self._registered = True
        if mark.remote_id != answer.remote_id:
            mark = replace(mark, remote_id=answer.remote_id)
            self.mark = self.outlet.store.commit(self.file.session, self.outlet.sink_id, mark, [], [], {})
        if answer.ack is not None and answer.ack.count != mark.delivered and not self._ask_again:
            await self._resync()
            return False
        return True

    async def _resync(self) -> bool:
        """Take what the receiver says it holds for what it has, and reconcile; return whether it could say."""
        assert self.mark is not None and self.mark.remote_id is not None
        if not self.outlet.sink.capabilities.digest:
            self.start_over()
            return True
        items = await self.outlet.sink.items(self.mark.remote_id)
        if not isinstance(items, dict):
            self._registered = False
            return self._leave(items)
        self._begin_again(items)
        return True

    def _begin_again(self, known: dict[str, bytes]) -> None:
        mark = Mark(remote_id=self.mark.remote_id if self.mark else None)
        self.mark = self.outlet.store.replace_delivered(self.file.session, self.outlet.sink_id, mark, known)
        self._generation = self.file.generation
        self._ask_again = False
        self._reconcile(known)

    def _setback(self, why: str) -> None:
        """Slow down when beginning again did not help: the second time in a row is a failure of the sink."""
        self._setbacks += 1
        if self._setbacks > 1:
            self._leave(Later(why, None, alarm=True))

    def _leave(self, verdict: Verdict) -> bool:
        """Follow a verdict on the sink or the session; return False, so that callers can pass it on."""
        outlet, gate = self.outlet, self.outlet.gate
        match verdict:
            case Later(reason, _, alarm):
                outlet.retries += 1
                outlet.last_error = self.progress.last_error = reason
                gate.failed(time.monotonic(), retry_delay_seconds(gate.failures + 1, verdict), alarm=alarm)
                if alarm:
                    self._say(Level.ERROR, "the sink needs a person", why=reason)
            case Unauthorized(status):
                outlet.last_error = self.progress.last_error = f"answered {status}"
                gate.unauthorized(outlet.sink.token())
                self._say(Level.ERROR, "the sink refuses the token; nothing is sent until it changes", status=status)
            case Missing():
                self._succeeded()
                self._say(Level.WARNING, "the session is not there any more; creating it again")
                self.mark = Mark()
                self._registered = False
                self._begin_again({})
                self._setback("the session is made and not found again")
            case Deleted():
                self._succeeded()
                self._say(Level.WARNING, "the session was deleted there; it is not sent again")
                mark = replace(self.mark or Mark(), state=DELETED_THERE)
                self.mark = outlet.store.commit(self.file.session, outlet.sink_id, mark, [], [], {})
            case Conflict():
                self._succeeded()
                self.ask_receiver_again()
                self._setback("the receiver says it holds something else")
            case Accepted() | Smaller() | Suspect() | LessCompression():
                # Not about a batch of events, so there is nothing to halve: as good as no answer.
                self._leave(Later(f"unexpected answer {type(verdict).__name__}", 60.0, alarm=True))
            case _:
                assert_never(verdict)
        return False

    def _succeeded(self) -> None:
        self.outlet.gate.succeeded()
        self.outlet.last_success = time.time()
        self.outlet.last_error = self.progress.last_error = None

    # ---- small things ---------------------------------------------------------------------------------------

    def _forget_store(self) -> None:
        self._epoch = self.outlet.store.epoch
        self.outlet.sink_id = self.outlet.store.sink_id(self.outlet.sink.name, self.outlet.sink.url)
        self.mark = self.outlet.store.mark(self.file.session, self.outlet.sink_id)
        self._registered = False
        self._generation = None
        self._reconciling = None

    def _gone(self) -> bool:
        """Tell whether the file left before this sink had all of it; what is open is drained first."""
        if not self.file.gone or self.outlet.road.files.holds(self.file):
            return False
        missed = self.lag_bytes()
        if missed and self.progress.gone_before_delivery != missed:
            self.progress.gone_before_delivery = missed
            self._say(Level.ERROR, "the file is gone before delivery", bytes=missed)
        return True

    def _settle(self) -> None:
        self.settled = True
        self.behind_since = None

    def _refuse(self, segment: Segment, index: int, reason: str) -> None:
        line = segment.lines[index]
        what = Unsendable(segment.offsets[index], line, len(line), reason, segment.ids[index])
        self._put_in_quarantine(self.outlet.sink.name, [what])

    def _put_in_quarantine(self, sink: str | None, what: list[Unsendable]) -> None:
        if self.outlet.quarantine.add(self.file.session, sink, what):
            for reason, count in Counter(one.reason for one in what).items():
                self._say(Level.WARNING, "put in quarantine", reason=reason, events=count)

    def _trouble(self, problem: str, message: str, **fields: object) -> None:
        if self.progress.problem != problem:
            self._say(Level.ERROR, message, **fields)
        self.progress.problem = problem

    def _say(self, level: Level, message: str, **fields: object) -> None:
        self.outlet.notice(Notice(level, message, self.file.session, self.outlet.sink.name, fields))
