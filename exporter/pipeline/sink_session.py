"""The requests to one sink about one session: register it, ask what the sink has, send, report what is gone.

`core/delivery/session_state.py` decides which request is due and what an answer changes; this module carries it out.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final, assert_never

import xxhash

from exporter.core.delivery.batches import Again, Delivery, Done, Leave, QuarantineEvent, Send, Settled
from exporter.core.delivery.position import START, Mark
from exporter.core.delivery.reconcile import Reconciliation, Walk
from exporter.core.delivery.segment import Segment, Unsendable
from exporter.core.delivery.session_state import (
    SETBACKS,
    STOPS,
    Agreement,
    Due,
    Effect,
    SessionEvent,
    SessionState,
    event_of,
)
from exporter.core.delivery.verdict import Accepted, Later, LessCompression, Verdict
from exporter.core.events.digest import total
from exporter.core.notice import Level, NoticeName
from exporter.pipeline.sink_state import UNWRITABLE, LaneProgress, SinkState
from exporter.sinks.retry import retry_delay_seconds
from exporter.sinks.sink import Items, Registered, Sent
from exporter.sources.files.session_file import SessionFile
from exporter.state.marks import StoreUnwritableError

STORE_RETRY_SECONDS: Final = 1.0
GATHER_SECONDS: Final = 0.005
"""How long events gather after a request, so that there are 200 requests a second at most."""
_MANY_EVENTS, _MANY_GATHER_SECONDS = 12, 0.016
"""After a request with so many events they gather for longer: a request costs as much as sixty events."""
_GATHER_BYTES_MAX: Final = 65_536
_SETBACKS_HEAD_START: Final = 4
DISAGREEMENT: Final = "disagreement"
"""The problem of a lane that begins again and again."""
_DIGEST_AT_ONCE_MAX: Final = 5_000
_REWOUND_MAX: Final = 10_000  # ids in one request; a receiver takes a limited number
_NO_IDS: Final[Mapping[str, bytes]] = {}
_ACCEPTED: Final = Accepted()


@dataclass(frozen=True, slots=True)
class Delivered:
    """The sink has a segment, except for the events at the indexes `refused`, which are in quarantine.

    `count` is how many events of the session it says it holds now.
    """

    refused: frozenset[int] = frozenset()
    count: int | None = None


class SinkSession:
    """The only one to change the mark and the state of one session at one sink.

    At most one request is under way. What concerns the sink as a whole is noted at its `sink_state`. `walk` is where
    the session is read, `rest_until` until when it is left alone, `requests` what others want of it, not taken in yet.
    `is_void` says that the sink is to be asked once more whether it holds what it accepted.
    """

    def __init__(self, file: SessionFile, sink_state: SinkState, mark: Mark | None, progress: LaneProgress) -> None:
        self.state = SessionState(mark)
        self.walk = Walk()
        self.rest_until = 0.0
        self.requests: list[SessionEvent] = []
        self._file = file
        self._session = file.session
        self._sink_state = sink_state
        self._progress = progress
        self.is_void = False
        self._others: set[str] | None = None
        self._epoch = sink_state.store.epoch
        self._setbacks = 0
        self._last_sent = 0.0
        self._sent_last = 0
        self._showing: asyncio.Task[None] | None = None

    def take(self, event: SessionEvent, known: Mapping[str, bytes] = _NO_IDS, verdict: Verdict = _ACCEPTED) -> None:
        """Carry out what an event leads to. `known` are the ids that the sink has, `verdict` is its answer."""
        transition = self.state.on(event)
        reads_from_start = Effect.READ_FROM_START in transition.effects
        # Read before the first effect: what is recorded must not stand without the walk that belongs to it.
        quarantined = self._sink_state.quarantined_ids(self._session) if reads_from_start else set[str]()
        for effect in transition.effects:
            self._carry_out(effect, event, known, verdict, quarantined)
        self.state.enter(transition)

    def take_requests(self) -> None:
        """Handle a store that was lost and created again, and then the requests."""
        sink_state = self._sink_state
        if (epoch := sink_state.store.epoch) != self._epoch:
            sink_state.sink_id = sink_state.store.sink_id(sink_state.sink.name, sink_state.sink.url)
            self.state.recorded(sink_state.store.mark(self._session, sink_state.sink_id))
            self.walk.generation = self._others = None
            self.take(SessionEvent.STORE_LOST)
            self._epoch = epoch
        while self.requests:
            event = self.requests[0]
            restores = event is SessionEvent.START_OVER and self.state.stopped
            self.take(SessionEvent.RESTORE if restores else event)
            del self.requests[0]

    def _carry_out(
        self,
        effect: Effect,
        event: SessionEvent,
        known: Mapping[str, bytes],
        verdict: Verdict,
        quarantined: AbstractSet[str],
    ) -> None:
        sink_state, mark = self._sink_state, self.state.mark
        match effect:
            case Effect.NOTE:
                sink_state.note(verdict, self._session)
            case Effect.STEADY:
                self._setbacks = 0
            case Effect.SET_BACK:
                self._set_back(SETBACKS[event])
            case Effect.SAY_MISSING:
                self._say_missing()
            case Effect.STOP:
                self._stop(event)
            case Effect.RECORD:
                told = event is SessionEvent.ITEMS and sink_state.sink.capabilities.digest
                begun = Mark(remote_id=mark.remote_id, confirmed_at=mark.confirmed_at)
                self._store_delivered(begun, known, confirmed_at=time.time() if told else None, recounts=not known)
            case Effect.RECORD_NOTHING:
                self.is_void = False
                self._store_delivered(Mark(), {}, recounts=True)
            case Effect.DISBELIEVE:  # a file that is rewritten twice may look unchanged to a position
                self._store_mark(replace(mark, identity=None))
            case Effect.READ_FROM_MARK:
                self._read_from_mark(mark)
            case Effect.READ_FROM_START:
                self._read_from_start(known, quarantined)
            case Effect.READ_ON:
                self.walk.reconciliation, self.walk.skip = None, sink_state.feed.skip(self.delivered)
            case _:
                assert_never(effect)

    def _stop(self, event: SessionEvent) -> None:
        state, why = STOPS[event]
        level = Level.WARNING if event is SessionEvent.DELETED else Level.ERROR
        self.say(NoticeName.SESSION_STOPPED, level, why.format(session=self._session))
        self._store_mark(replace(self.state.mark, state=state))
        self.state.stopped_by = event

    def _say_missing(self) -> None:
        if not self._sink_state.check_store():
            text = "the session is not there any more; it is made again"
            self.say(NoticeName.SESSION_RECREATED, Level.WARNING, text)

    def _read_from_mark(self, mark: Mark) -> None:
        skip = self._sink_state.feed.skip(self.delivered)
        if skip is None and mark.position == START:  # the marks may be lost, and the quarantine not
            skip = self._sink_state.quarantined_ids(self._session) or None
        self.walk = Walk(self._file.generation, mark.position, mark.last_id, skip=skip)

    def _read_from_start(self, known: Mapping[str, bytes], quarantined: AbstractSet[str]) -> None:
        compared = Reconciliation(known, quarantined, self.others())
        self.walk = Walk(self._file.generation, START, None, compared, compared.skip)
        if known:
            text = "reading the session again from its first event"
            self.say(NoticeName.SESSION_RESENT, Level.INFO, text, delivered=len(known))

    def _follow(self, verdict: Verdict) -> None:
        """Handle an answer that concerns the session, or the sink."""
        event, verdict = event_of(verdict, self.state.mark.remote_id)
        if event is SessionEvent.DELETED and self.state.agreement is Agreement.STARTING_OVER:
            event = SessionEvent.RESTORE  # once: what is deleted in spite of that stops
        self.take(event, verdict=verdict)

    def _set_back(self, why: str) -> None:
        """Slow this session down when beginning again did not help: from the second time in a row it rests longer."""
        self._setbacks += 1
        if self._setbacks > 1:
            self.rest(retry_delay_seconds(self._setbacks + _SETBACKS_HEAD_START, Later(why)))
            self.troubled(DISAGREEMENT, "the sink and this session do not agree; trying less often", why=why)

    # ---- pace -----------------------------------------------------------------------------------------------

    def rest(self, seconds: float) -> None:
        """Leave the session alone for so long."""
        self.rest_until = time.monotonic() + seconds

    async def gather(self) -> None:
        """Above 200 requests a second let events gather for some milliseconds; never delay the first after a pause."""
        gather = GATHER_SECONDS if self._sent_last < _MANY_EVENTS else _MANY_GATHER_SECONDS
        wait = self._last_sent + gather - time.monotonic()
        if wait > 0 and self._file.size - self.walk.position.offset < _GATHER_BYTES_MAX:
            await asyncio.sleep(wait)

    # ---- the mark and what was delivered --------------------------------------------------------------------

    def delivered(self) -> dict[str, bytes]:
        """Return what the sink has, as we remember it."""
        return self._sink_state.store.delivered(self._session, self._sink_state.sink_id)

    def others(self) -> set[str]:
        """Return the ids among `delivered` that another installation sent: they are not ours to take back."""
        if self._others is None:
            self._others = self._sink_state.store.others(self._session, self._sink_state.sink_id)
        return self._others

    def void(self) -> None:
        """Believe no longer that the sink holds what it accepted."""
        self.is_void = True
        self.state.recorded(replace(self.state.mark, confirmed=-1) if self.state.is_recorded else None)

    def _store_mark(self, mark: Mark) -> None:
        self.state.recorded(self._sink_state.store.commit(self._session, self._sink_state.sink_id, mark, [], [], {}))

    def _store_delivered(
        self,
        mark: Mark,
        delivered: Mapping[str, bytes],
        *,
        confirmed_at: float | None = None,
        recounts: bool = False,
    ) -> None:
        store, sink_id = self._sink_state.store, self._sink_state.sink_id
        self._others = self.others() & delivered.keys()
        what = mark, delivered, self._others, confirmed_at
        recounts = recounts and not self._file.is_journal  # what a journal holds was redacted and counted before
        self.state.recorded(store.replace_delivered(self._session, sink_id, *what, recounts=recounts))

    async def commit(
        self,
        mark: Mark,
        ids: list[str] | None = None,
        hashes: list[bytes] | None = None,
        masked: Mapping[tuple[str, str], int] | None = None,
        counted: Sequence[bytes] = (),
        count: int | None = None,
        confirms: bool = False,
        is_live: bool = False,
    ) -> None:
        """Step 3: remember the mark and what led to it, or wait until that can be written. Nothing is sent before.

        `count` is what the sink says it holds with these ids; `confirms` says that it holds what the mark says;
        `is_live` that the session goes on now.
        """
        # By its count alone an answer confirms only what follows on something that is confirmed.
        follows = mark.is_confirmed and bool(ids) and not self.is_void
        confirms = confirms or (follows and count == mark.delivered + len(ids or ()))
        sink_state, what = self._sink_state, (ids or [], hashes or [], masked or {}, counted)
        stream = sink_state.sink.stream_of_sums(self._session, mark.remote_id, is_live=is_live) if counted else None
        while True:
            if self.is_void:  # as it may have become while this waited
                mark, confirms = replace(mark, confirmed=-1), False
            confirmed_at = time.time() if confirms else None
            try:
                self.state.recorded(
                    sink_state.store.commit(self._session, sink_state.sink_id, mark, *what, confirmed_at, stream)
                )
            except StoreUnwritableError as error:
                self.troubled(UNWRITABLE, "the mark cannot be written; waiting", why=str(error))
                await asyncio.sleep(STORE_RETRY_SECONDS)
            else:
                self.relieved()
                # Fewer: something was acknowledged and is not there. More: something of an exporter that was killed
                # arrived after all, or another exporter sends this session as well.
                if ids and count is not None and count != self.state.mark.delivered:
                    self.take(SessionEvent.COUNT_DIFFERS)
                return

    async def commit_end(self, mark: Mark, gone: list[str]) -> None:
        """Remember where a reconciliation came to, and that the sink hides what is gone."""
        if not gone:
            await self.commit(mark)
            return
        hidden = set(gone)
        left = {identity: digest for identity, digest in self.delivered().items() if identity not in hidden}
        self._store_delivered(mark, left)
        self.say(NoticeName.SESSION_REWOUND, Level.WARNING, "events were rewound", events=len(gone))

    # ---- requests -------------------------------------------------------------------------------------------

    async def ready(self, *, sending: bool) -> bool:
        """Do what is due before the session is read, or something of it sent; return False when this turn ends here."""
        if self.state.due(sending=sending) is Due.REGISTER and not await self._register(sending=sending):
            return False
        if self.state.due(sending=sending) is Due.ASK:
            await self._ask()
            return False
        return not self.state.stopped

    async def _register(self, *, sending: bool) -> bool:
        """Make the session known to the sink, or find it again; return whether it is."""
        sink_state, state = self._sink_state, self.state
        answer = await sink_state.sink.register(self._session, state.mark.remote_id, restore=state.restores)
        if not isinstance(answer, Registered):
            self._follow(answer)
            return False
        if answer.asked:
            # A sink that fails at events may register sessions all the same; only an answer to events makes it well.
            if not (sending and sink_state.gate.failures):
                sink_state.succeeded()
            sink_state.check_store()
            sink_state.remember_capabilities()
        self.is_void = False  # a doubt that comes from here on is about another answer
        ack, confirms = answer.ack, False
        can_say = sink_state.sink.capabilities.digest
        agrees = ack.count == state.mark.delivered if ack is not None else not can_say
        if ack is not None and agrees and (state.in_doubt or not state.mark.is_confirmed):
            agrees = confirms = not ack.digest or ack.digest == await self._digest()
        confirms = confirms and not self.is_void
        if confirms or state.mark.remote_id != answer.remote_id:
            await self.commit(replace(state.mark, remote_id=answer.remote_id), confirms=confirms)
        self.take(SessionEvent.COUNT_AGREES if agrees else SessionEvent.COUNT_DIFFERS)
        # An answer of another store makes every session doubted; this one has its answer.
        self.requests = [event for event in self.requests if self.is_void or event is not SessionEvent.DOUBT]
        return True

    async def _digest(self) -> str:
        """Return the digest of what we remember as delivered."""
        delivered = self.delivered()
        if len(delivered) < _DIGEST_AT_ONCE_MAX:
            return total(delivered.items())
        return await asyncio.to_thread(total, delivered.items())

    async def _ask(self) -> None:
        """Ask the receiver what it has; the feed knows what one at the floor, which cannot say, is taken to have."""
        sink_state = self._sink_state
        if not sink_state.sink.capabilities.digest:
            self.take(SessionEvent.ITEMS, sink_state.feed.known(self.delivered()))
            return
        items = await sink_state.sink.items(self.remote_id)
        if isinstance(items, dict):
            sink_state.succeeded()
            if isinstance(items, Items):
                self._others = set(items.others) - (self.delivered().keys() - self.others())
            self.take(SessionEvent.ITEMS, items)
        else:
            self._follow(items)

    @property
    def remote_id(self) -> str:
        """The id of a session that is registered."""
        assert self.state.mark.remote_id is not None
        return self.state.mark.remote_id

    async def rewound(self, gone: list[str]) -> bool:
        """Tell the sink that these ids are gone from the file, if it can hide them; return whether they are hidden."""
        if not await self.ready(sending=True):
            return False
        sink = self._sink_state.sink
        if not sink.capabilities.rewound:
            return True
        self.take(SessionEvent.REWINDING)
        left = set(self.delivered())
        for first in range(0, len(gone), _REWOUND_MAX):
            told = gone[first : first + _REWOUND_MAX]
            sent = await sink.send(self.remote_id, [], [], told)
            if not isinstance(sent.verdict, Accepted):
                self._follow(sent.verdict)
                return False
            left.difference_update(told)
            if not sent.trusted or sent.count not in (None, len(left)):
                self.take(SessionEvent.MISTRUSTED if sink.capabilities.digest else SessionEvent.UNTOLD)
                return False
        self.take(SessionEvent.REWOUND)
        return True

    def show(self, live: list[bytes]) -> bool:
        """Show ephemeral events, if the last ones are through; else they are dropped, and False is returned."""
        remote_id = self.state.mark.remote_id
        if remote_id is None or not (self._showing is None or self._showing.done()):
            return False
        if live:
            self._showing = asyncio.create_task(self._sink_state.sink.live(remote_id, live))
        return True

    async def deliver(self, segment: Segment, meanwhile: Callable[[], Awaitable[None]]) -> Delivered | None:
        """Carry out steps 1 and 2 of the order of effects (`core/delivery/batches.py`) for one segment.

        `meanwhile` is awaited once while the first request is under way. None: the segment is given up for now.
        """
        self._last_sent, self._sent_last = time.monotonic(), len(segment.ids)
        delivery = Delivery(list(map(len, segment.lines)))
        is_first, count = True, None
        while True:
            match delivery.ready(self._sink_state.sink.limits()):
                case Done():
                    return Delivered(frozenset(delivery.refused), count)
                case QuarantineEvent(index, reason):
                    self._refuse(segment, index, reason)
                case Send(first, end):
                    ids, lines = segment.ids[first:end], segment.lines[first:end]
                    sending = asyncio.ensure_future(self._sink_state.send(self.remote_id, ids, lines))
                    try:
                        if is_first:
                            is_first = False
                            await asyncio.sleep(0)  # the request is on its way before anything else is done
                            await meanwhile()
                        sent = await sending
                    finally:
                        sending.cancel()
                    if not self._answered(segment, delivery, sent, first, end):
                        return None
                    count = sent.count if isinstance(sent.verdict, Accepted) else count

    def _answered(self, segment: Segment, delivery: Delivery, sent: Sent, first: int, end: int) -> bool:
        """Follow the answer to one batch; return whether to go on with the segment."""
        sink_state, rejected = self._sink_state, set(sent.rejected)
        for index in [one for one in range(first, end) if segment.ids[one] in rejected] if rejected else ():
            delivery.refused.add(index)
            self._refuse(segment, index, sent.refusal, sent.told)
        if sent.unnamed or sent.told:
            sink_state.note_remarks(self._session, segment.offsets[first], segment.lines[first:end], sent)
        if isinstance(sent.verdict, LessCompression):
            return True
        outcome = delivery.answered(sent.verdict)
        if delivery.batch_bytes_refused is not None:
            sink_state.sink.body_refused(delivery.batch_bytes_refused)
            delivery.batch_bytes_refused = None
        match outcome:
            case Settled():
                self.take(SessionEvent.ACKNOWLEDGED if sent.trusted else SessionEvent.MISTRUSTED)
                return sent.trusted
            case Again():
                sink_state.retries += 1
            case QuarantineEvent(index, reason):
                self._refuse(segment, index, reason)
            case Leave(verdict):
                self._follow(verdict)
                return False
            case _:
                assert_never(outcome)
        return True

    async def send_event(self, event: Unsendable) -> str | None:
        """Send one event out of quarantine by itself; return why the sink has it not, None when it has."""
        assert event.id is not None
        if not await self.ready(sending=True):
            return self._sink_state.last_error or "the sink does not take it now"
        sent = await self._sink_state.send(self.remote_id, [event.id], [event.raw])
        why = refusal(sent)
        if why is None and event.id not in self.delivered():
            proves = self._sink_state.sink.capabilities.digest
            digest = hashlib.sha256(event.raw).digest() if proves else xxhash.xxh3_128_digest(event.raw)
            await self.commit(self.state.mark, [event.id], [digest])
        return why

    def _refuse(self, segment: Segment, index: int, reason: str, detail: str = "") -> None:
        event, offset = segment.ids[index], segment.offsets[index]
        self._sink_state.refuse(self._session, event, offset, segment.lines[index], reason, detail)

    def troubled(self, problem: str, message: str, **fields: object) -> None:
        """Note what keeps the session from the sink that is no fault of the sink; it is reported once."""
        progress = self._progress
        if progress.problem != problem:
            progress.troubled_since = time.monotonic()
            self.say(NoticeName.SESSION_DELAYED, Level.ERROR, message, **fields)
        progress.problem = problem
        progress.why = ": ".join([message, *map(str, fields.values())])

    def relieved(self) -> None:
        """Note that nothing keeps the session from the sink any more."""
        progress = self._progress
        if progress.problem is not None:
            self.say(NoticeName.SESSION_RESUMED, Level.INFO, "the session goes on", after=progress.problem)
        progress.problem = progress.why = progress.troubled_since = None

    def say(self, name: NoticeName, level: Level, message: str, **fields: object) -> None:
        """Report something about the session and the sink."""
        self._sink_state.say(name, level, message, self._session, **fields)


def refusal(sent: Sent) -> str | None:
    """Return why a sink has not all that it was sent, None when it has."""
    verdict = sent.verdict
    if isinstance(verdict, Later):
        return f"the sink does not take it now: {verdict.reason}"
    if not isinstance(verdict, Accepted):
        return f"the sink refuses it: {type(verdict).__name__.lower()}"
    if not sent.rejected and not sent.unnamed:
        return None
    some = f"{sent.unnamed} of it" if sent.unnamed else "it"
    return f"the sink rejects {some}{': ' if sent.told else ''}{sent.told}"
