"""The dealings with one sink about one session: registering it, sending segments, following the answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

from exporter.core.delivery.batches import Again, Delivery, Done, Leave, QuarantineEvent, Send, Settled
from exporter.core.delivery.segment import Segment
from exporter.core.delivery.verdict import (
    CEILING_SECONDS,
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
from exporter.core.notice import Level
from exporter.pipeline.outcome import Delivered, Outcome, Resync, Waiting
from exporter.pipeline.pace import Pace
from exporter.pipeline.progress import UNWRITABLE, LaneProgress
from exporter.pipeline.sink_state import SinkState
from exporter.sinks.sink import Registered, Sent
from exporter.state.marks import DELETED_THERE, FOLLOWING, Mark, StoreUnwritableError

STORE_RETRY_SECONDS: Final = 1.0
_REWOUND_MAX: Final = 10_000  # ids in one request; a receiver takes a limited number


class SinkSession:
    """Holds the mark of one session at one sink and is the only one to change it.

    At most one request is under way. What concerns the sink as a whole is noted at its sink_state.
    """

    def __init__(self, session: str, sink_state: SinkState, mark: Mark | None, progress: LaneProgress) -> None:
        self.session = session
        self.sink_state = sink_state
        self.mark = mark or Mark()
        self.known = mark is not None
        self.ask_again = self.in_doubt = False  # what the sink has, and whether it has the session at all
        self._progress = progress
        self._registered = False
        self._restore = False
        self.unsure = False  # what was sent last may be there, unanswered
        self.pace = Pace()
        self._all_again = False
        self._held_there: int | None = None
        self._showing: asyncio.Task[None] | None = None

    @property
    def stopped(self) -> bool:
        """Tell whether nothing will be sent until a person asks for it."""
        return self.mark.state != FOLLOWING

    def forget(self) -> None:
        """Read the mark again: the store was lost and begun anew."""
        sink_state = self.sink_state
        sink_state.sink_id = sink_state.store.sink_id(sink_state.sink.name, sink_state.sink.url)
        mark = sink_state.store.mark(self.session, sink_state.sink_id)
        self.mark, self.known, self._registered = mark or Mark(), mark is not None, False

    def delivered(self) -> dict[str, bytes]:
        """Return what the sink has, as we remember it."""
        return self.sink_state.store.delivered(self.session, self.sink_state.sink_id)

    async def prepare(self) -> Delivered | Waiting | Resync:
        """Make sure that the sink knows the session, and that we know what it has. `Delivered` means: go on."""
        if not self._registered:
            answer = await self.sink_state.sink.register(self.session, self.mark.remote_id, restore=self._restore)
            if not isinstance(answer, Registered):
                if isinstance(answer, Missing) and self.mark.remote_id is None:
                    answer = Later("no Mission Control at this address (404)", CEILING_SECONDS, alarm=True)
                return self.follow(answer)
            if answer.asked:
                self.sink_state.succeeded()
                self.sink_state.met()
            self._registered, self._restore, self.in_doubt = True, False, False
            if self.mark.remote_id != answer.remote_id:
                await self.commit(replace(self.mark, remote_id=answer.remote_id))
            differs = answer.ack is not None and answer.ack.count != self.mark.delivered
            self.ask_again = self.ask_again or (differs and not self._all_again)
            self._all_again = False
        return await self._ask() if self.ask_again else Delivered(frozenset())

    async def _ask(self) -> Waiting | Resync:
        """Ask the receiver what it has; one at the floor cannot say and is sent everything again, records never."""
        assert self.mark.remote_id is not None
        if not self.sink_state.sink.capabilities.digest:
            return Resync({} if self.sink_state.mapping is None else self.delivered())
        items = await self.sink_state.sink.items(self.mark.remote_id)
        if isinstance(items, dict):
            self.sink_state.succeeded()
            return Resync(items)
        self._registered = False
        return self.follow(items)

    def start_over(self) -> None:
        """Register the session anew before anything is sent, even if somebody deleted it there."""
        self._restore, self._all_again = self.stopped, True
        self._registered = False
        if self._restore:
            self.mark = Mark()

    def doubt(self) -> None:
        """Ask the sink, before anything else, whether it still has the session."""
        self._registered, self.in_doubt = False, True

    def disbelieve(self) -> None:
        """Note, durably, that the mark's position holds no more: a file rewritten twice may look unchanged to it."""
        mark = replace(self.mark, identity=None)
        self.mark = self.sink_state.store.commit(self.session, self.sink_state.sink_id, mark, [], [], {})

    def asks_because_unsure(self) -> bool:
        """Tell whether the receiver must be asked: the file has changed, and what it held before may be there."""
        if self.unsure and self.sink_state.sink.capabilities.digest:
            self.ask_again = True
        return self.ask_again

    def begin_again(self, known: dict[str, bytes]) -> None:
        """Take these ids for what the sink has, durably, and forget how far it was."""
        mark = Mark(remote_id=self.mark.remote_id)
        self.mark = self.sink_state.store.replace_delivered(self.session, self.sink_state.sink_id, mark, known)
        self.known, self.ask_again, self.unsure = True, False, False

    async def rewound(self, gone: list[str]) -> Outcome:
        """Tell the sink that these ids are gone from the file; one that cannot hide them is told nothing."""
        prepared = await self.prepare()
        if not isinstance(prepared, Delivered) or not self.sink_state.sink.capabilities.rewound:
            return prepared
        assert self.mark.remote_id is not None
        for first in range(0, len(gone), _REWOUND_MAX):
            sent = await self.sink_state.sink.send(self.mark.remote_id, [], [], gone[first : first + _REWOUND_MAX])
            if not isinstance(sent.verdict, Accepted):
                self.unsure = True
                return self.follow(sent.verdict)
        self.sink_state.succeeded()
        return prepared

    async def settle(self, mark: Mark, gone: list[str]) -> None:
        """Remember where a reconciliation came to, and that the sink hides what is gone."""
        if not gone:
            await self.commit(mark)
            return
        hidden = set(gone)
        left = {identity: digest for identity, digest in self.delivered().items() if identity not in hidden}
        self.mark = self.sink_state.store.replace_delivered(self.session, self.sink_state.sink_id, mark, left)
        self.sink_state.say(Level.WARNING, "events were rewound", self.session, events=len(gone))

    def show(self, live: list[bytes]) -> bool:
        """Show ephemeral events, if the last ones are through; else they are dropped, and False is returned."""
        if self.mark.remote_id is None or not (self._showing is None or self._showing.done()):
            return False
        if live:
            self._showing = asyncio.create_task(self.sink_state.sink.live(self.mark.remote_id, live))
        return True

    async def hand_over(self, segment: Segment, meanwhile: Callable[[], Awaitable[None]]) -> Outcome:
        """Carry out steps 1 and 2 of the order of effects (`core/delivery/batches.py`) for one segment.

        `meanwhile` is awaited once while the first request is under way.
        """
        delivery = Delivery(list(map(len, segment.lines)))
        first_request = True
        while True:
            match delivery.ready(self.sink_state.sink.limits()):
                case Done():
                    return Delivered(frozenset(delivery.refused))
                case QuarantineEvent(index, reason):
                    self._refuse(segment, index, reason)
                case Send(first, end):
                    sending = asyncio.ensure_future(self._send(segment, first, end))
                    try:
                        if first_request:
                            first_request = False
                            await asyncio.sleep(0)  # the request is on its way before anything else is done
                            await meanwhile()
                        sent = await sending
                    finally:
                        sending.cancel()
                    left = self._answered(segment, delivery, sent, first, end)
                    if left is not None:
                        return left

    async def _send(self, segment: Segment, first: int, end: int) -> Sent:
        assert self.mark.remote_id is not None
        whole = end - first == len(segment.ids)
        ids = segment.ids if whole else segment.ids[first:end]
        lines = segment.lines if whole else segment.lines[first:end]
        return await self.sink_state.sink.send(self.mark.remote_id, ids, lines)

    def _answered(
        self, segment: Segment, delivery: Delivery, sent: Sent, first: int, end: int
    ) -> Waiting | Resync | None:
        """Follow the answer to one batch; return None to go on with the segment."""
        rejected = set(sent.rejected)
        for index in [one for one in range(first, end) if segment.ids[one] in rejected] if rejected else ():
            delivery.refused.add(index)
            self._refuse(segment, index, sent.refusal, sent.told)
        if sent.unnamed or sent.told:
            self.sink_state.heard(self.session, segment.offsets[first], segment.lines[first:end], sent)
        if isinstance(sent.verdict, LessCompression):
            return None
        outcome = delivery.answered(sent.verdict)
        if delivery.batch_bytes_refused is not None:
            self.sink_state.sink.body_refused(delivery.batch_bytes_refused)
            delivery.batch_bytes_refused = None
        match outcome:
            case Settled():
                self.sink_state.succeeded()
                if not sent.trusted:
                    self.ask_again = True
                    return self._setback("the receiver acknowledged something else than was sent")
                self.pace.setbacks, self.unsure = 0, False
                self._held_there = sent.count
            case Again():
                self.sink_state.retries += 1
            case QuarantineEvent(index, reason):
                self._refuse(segment, index, reason)
            case Leave(verdict):
                self.unsure = self.unsure or isinstance(verdict, Later)
                return self.follow(verdict)
            case _:
                assert_never(outcome)
        return None

    async def commit(
        self,
        mark: Mark,
        ids: list[str] | None = None,
        hashes: list[bytes] | None = None,
        masked: Mapping[tuple[str, str], int] | None = None,
        counted: Sequence[bytes] = (),
    ) -> None:
        """Step 3: remember the mark and what led to it, or wait until that can be written. Nothing is sent before."""
        sink_state, what = self.sink_state, (ids or [], hashes or [], masked or {}, counted)
        while True:
            try:
                self.mark = sink_state.store.commit(self.session, sink_state.sink_id, mark, *what)
            except StoreUnwritableError as error:
                message = "the mark cannot be written; waiting"
                sink_state.troubled(self.session, self._progress, UNWRITABLE, message, why=str(error))
                await asyncio.sleep(STORE_RETRY_SECONDS)
            else:
                self.known = True
                sink_state.relieved(self.session, self._progress)
                # Fewer: something was acknowledged and is not there. More: something of an exporter that was killed
                # arrived after all, or somebody else sends this session as well.
                if ids and self._held_there is not None and self._held_there != self.mark.delivered:
                    self.ask_again = True
                self._held_there = None
                return

    def follow(self, verdict: Verdict) -> Waiting | Resync:
        """Do what a verdict on the sink or the session demands."""
        sink_state = self.sink_state
        match verdict:
            case Later():
                sink_state.failed(verdict, self.session)
            case Unauthorized(status):
                sink_state.refused(status, self.session)
            case Missing():
                sink_state.succeeded()
                if not sink_state.met():
                    sink_state.say(Level.WARNING, "the session is not there any more; it is made again", self.session)
                self.mark, self._registered = Mark(), False
                self._setback("the session is made and then not found")
                return Resync({})
            case Deleted():
                sink_state.succeeded()
                sink_state.say(Level.WARNING, "the session was deleted there; it is not sent again", self.session)
                mark = replace(self.mark, state=DELETED_THERE)
                self.mark = sink_state.store.commit(self.session, sink_state.sink_id, mark, [], [], {})
            case Conflict():
                sink_state.succeeded()
                self.ask_again = True
                return self._setback("the receiver says that it holds something else")
            case Accepted() | Smaller() | Suspect() | LessCompression():
                # Not about events, so there is nothing to halve or to doubt: as good as no answer.
                reason = f"unexpected answer: {type(verdict).__name__.lower()}"
                sink_state.failed(Later(reason, CEILING_SECONDS, alarm=True), self.session)
            case _:
                assert_never(verdict)
        return Waiting()

    def _setback(self, why: str) -> Waiting:
        """Slow this session down when beginning again did not help: from the second time in a row it rests longer."""
        if self.pace.set_back(why):
            message = "the sink and this session do not agree; trying less often"
            self.sink_state.say(Level.ERROR, message, self.session, why=why)
        return Waiting()

    def _refuse(self, segment: Segment, index: int, reason: str, detail: str = "") -> None:
        event, offset = segment.ids[index], segment.offsets[index]
        self.sink_state.refuse(self.session, event, offset, segment.lines[index], reason, detail)
