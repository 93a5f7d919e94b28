"""One session on its way to one sink: what its next turn does.

A lane follows (reads on from its position) or reconciles (the file's past changed, or what the sink has is only
known by asking it: the file is read from its first event, what the sink has is skipped, what it lacks is sent,
and what it has but the file lacks is reported as rewound). `core/delivery/session_state.py` decides which.
"""

import asyncio
import sqlite3
import time
import traceback
from dataclasses import replace
from pathlib import Path
from random import random
from typing import Final

from exporter.core.delivery.gathering import Gathering
from exporter.core.delivery.position import Identity, Mark, Position
from exporter.core.delivery.segment import BYTES_MAX, Segment, Unsendable
from exporter.core.delivery.session_state import Agreement, SessionEvent
from exporter.core.events.envelope import Envelope, decode
from exporter.core.notice import Level, NoticeName
from exporter.pipeline.sink_session import STORE_RETRY_SECONDS, Delivered, SinkSession
from exporter.pipeline.sink_state import UNWRITABLE, LaneProgress, SinkState
from exporter.sources.files.session_file import SessionFile, open_inside
from exporter.sources.journals import rewound_of
from exporter.state.marks import StoreDamagedError, StoreUnwritableError
from exporter.state.quarantine import QuarantineFullError

EMPTY_SECONDS: Final = 1.0
ROUND_SECONDS: Final = 3_000.0
"""How long a confirmation is left alone at most. With the time until its turn comes, that is within an hour."""
_LAST_LINE_BYTES_MAX: Final = 64 << 10
_END: Final = "session.shutdown"


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
        self._turning = asyncio.Lock()
        self._session = SinkSession(file, sink_state, mark, self.progress)
        self._state = self._session.state
        self._gather = Gather(file, sink_state.sink.gathering)
        self._checks = Checks()

    # ---- state and requests ---------------------------------------------------------------------------------

    @property
    def mark(self) -> Mark:
        """The mark as it is remembered."""
        return self._state.mark

    @property
    def position(self) -> Position:
        """The place in the file that is reached."""
        return self._session.walk.position

    @property
    def stopped(self) -> bool:
        """See `SessionState.stopped`."""
        return self._state.stopped and SessionEvent.START_OVER not in self._session.requests

    @property
    def stopped_by(self) -> SessionEvent | None:
        """What stopped the session at this sink; None while it is not stopped."""
        return self._state.stopped_by if self.stopped else None

    def rest_seconds(self) -> float:
        """Return for how long the session needs no turn, unless one is requested."""
        return max(self._session.rest_until, self._gather.until) - time.monotonic()

    @property
    def gathers(self) -> bool:
        """Whether the lane waits only for events to gather."""
        return not self.settled and self._gather.until > time.monotonic()

    def hurry(self) -> bool:
        """Send gathered events up to the end of the file; return whether the lane needs a turn for that."""
        return self._gather.hurry()

    def show(self, live: list[bytes]) -> bool:
        """Show redacted ephemeral events that are in no file, if the last ones are through; tell whether they were."""
        return not self.stopped and self._session.show(live)

    def reached(self, generation: int, offset: int) -> bool:
        """Tell whether the sink has what stood before an offset of a generation of the file."""
        if self.settled:
            return True
        follows = self._state.follows and not self._session.requests
        is_same = self._session.walk.generation == self.file.generation == generation
        return follows and is_same and self.position.offset >= offset

    def lag_bytes(self) -> int:
        """Return the bytes of whole lines that the sink does not have yet, as far as is known."""
        if self.stopped or self.file.identity is None:
            return 0
        position = self.position if self._session.walk.generation == self.file.generation else self.mark.position
        if position.offset > self.file.size:
            return self.file.size
        return max(0, self.file.size - position.offset - self.sink_state.reader.held_bytes(self.file, position))

    def start_over(self) -> None:
        """Forget what this sink has of the session and send it again from its first event."""
        self._session.requests.append(SessionEvent.START_OVER)
        if not self._turning.locked():  # else it is taken in at the end of the turn that is under way
            self._session.take_requests()

    @property
    def in_doubt(self) -> bool:
        """Whether the sink is still to be asked if it has the session."""
        session = self._session
        asked = self._state.in_doubt or session.is_void or SessionEvent.DOUBT in session.requests
        return asked and not self.stopped and not self._gone()

    @property
    def is_void(self) -> bool:
        """Whether the sink is to be asked soon, and is not yet."""
        return self._session.is_void and self.settled and not self.stopped

    def void(self) -> None:
        """Note that the sink may have lost something, so that it is to be asked about the session."""
        if self.mark.remote_id is not None and not self.stopped:
            self._session.void()

    @property
    def answered(self) -> bool:
        """Whether everything that was sent has its answer."""
        return self._state.agreement is not Agreement.UNANSWERED

    def is_due(self, spread_seconds: float) -> bool:
        """Tell whether the sink is to be asked now what it holds of a session that rests."""
        rests = self.settled and not self.busy and not self.stopped and self.mark.remote_id is not None
        return rests and self._checks.is_due(self.mark, spread_seconds)

    def doubt(self) -> bool:
        """Ask the sink at the next turn whether it still has the session; return False if that is out of question."""
        if self.stopped or self.mark.remote_id is None or self.file.identity is None or self._gone():
            return False
        self._session.requests.append(SessionEvent.DOUBT)  # taken at the next turn: of many, none may fail here
        return True

    async def send_one(self, event: Unsendable) -> str | None:
        """Send one event out of quarantine; return why the sink has it not, None when it has."""
        async with self._turning:
            self._session.take_requests()
            return await self._session.send_event(event)

    def read_whole(self) -> None:
        """Send what the sink lacks of the session from its first event on, at the next turn."""
        self._session.requests.append(SessionEvent.REPAIR)

    async def repair(self, different: list[str]) -> None:
        """Make the receiver hold what the file holds: ask what it has, hide what it has otherwise, send the rest."""
        async with self._turning:
            self._session.take_requests()
            if different:
                await self._session.rewound(different)
            self._session.take(SessionEvent.REPAIR)

    def failed(self, error: Exception) -> None:
        """Note a defect of ours; the text of the error may hold content and is not repeated."""
        name, place = type(error).__name__, _place_of(error)
        self._session.troubled("defect", "a defect stopped this session; it is tried again", error=name, at=place)

    # ---- a turn ---------------------------------------------------------------------------------------------

    async def turn(self) -> bool:
        """Do the next step; return whether there is more to do at once. Errors of the sink wait at its gate."""
        async with self._turning:
            self.settled = False
            try:
                self._session.take_requests()
                if self.stopped or self.file.identity is None or self._gone():
                    return self._settle()
                if self._session.rest_until > time.monotonic():
                    return False
                more = await self._step()
                self._session.take_requests()
                return self._settle() if self.stopped else more
            except StoreDamagedError as error:
                message = "the store is damaged and set aside; the receiver is asked"
                self._session.say(NoticeName.DATABASE_SET_ASIDE, Level.ERROR, message, aside=str(error.path))
                return True
            except QuarantineFullError:
                self._session.troubled("quarantine_full", "the quarantine is full; the session waits for room")
                return False
            except (StoreUnwritableError, sqlite3.Error) as error:
                self._session.troubled(UNWRITABLE, "the state directory cannot be written; waiting", why=str(error))
                await asyncio.sleep(STORE_RETRY_SECONDS)
                return True

    async def _step(self) -> bool:
        session = self._session
        if not await session.ready(sending=False):
            return True
        if session.walk.generation != self.file.generation and not self._place():
            return True
        walk = session.walk
        if walk.reconciliation is None and self._gather.waits(walk.position.offset):
            self.sink_state.reader.files.descriptor(self.file)  # open, so that it can still be read once it is deleted
            return False
        await session.gather()
        segment = walk.take_ahead() or await self._next(None)
        if walk.generation != self.file.generation:
            return True
        if segment is None:
            segment = await self.sink_state.feed.ending(self.file, walk)
        if segment is None:
            return await self._at_end()
        if segment.ids and not await session.ready(sending=True):
            return True
        return await self._deliver(segment)

    def _place(self) -> bool:
        """Believe the mark if the file is still the one it was set in; else reconcile. False: ask the sink first."""
        session, state, file = self._session, self._state, self.file
        if state.agreement is Agreement.UNANSWERED and self.sink_state.sink.capabilities.digest:
            session.take(SessionEvent.CHANGED_UNANSWERED)
            return False
        mark, reader = state.mark, self.sink_state.reader
        if not state.is_recorded or (mark.identity == file.identity and reader.check(file, mark.position)):
            session.take(SessionEvent.MARK_HOLDS)
        elif state.agreement is Agreement.UNREGISTERED and mark.remote_id and self.sink_state.sink.capabilities.digest:
            session.take(SessionEvent.DOUBT)  # what was sent before the start may have had no answer
            return False
        else:
            session.take(SessionEvent.MARK_BROKEN, session.delivered())
        return True

    async def _next(self, after: Segment | None) -> Segment | None:
        limits = self.sink_state.sink.limits()
        if self.sink_state.busy > 1 and self.sink_state.feed.holds_events:  # together they take as much as one alone
            limits = replace(limits, bytes_max=min(limits.bytes_max, BYTES_MAX))
        return await self.sink_state.feed.next(self.file, self._session.walk, after, limits)

    async def _deliver(self, segment: Segment) -> bool:
        """Carry out the order of effects that `core/delivery/batches.py` states, for one segment."""
        if segment.unsendable:
            self.sink_state.put_in_quarantine(self.file.session, segment.unsendable, for_all_sinks=True)
        self._session.show(segment.live)
        delivered: Delivered | None = Delivered()
        if segment.ids and not self.sink_state.feed.sums.counts:
            delivered = await self._session.deliver(segment, lambda: self._meanwhile(segment))
        if delivered is not None:
            await self._commit(segment, delivered)
        return True

    async def _meanwhile(self, segment: Segment) -> None:
        segment.hashes(for_digest=self.sink_state.sink.capabilities.digest)
        # While other sessions are sent at the same time there is no need to have more in memory.
        alone = self.sink_state.busy <= 1 and self.sink_state.sink.gathering is None
        if alone and self.file.size > segment.end.offset and self._identity() is not None:
            self._session.walk.ahead = await self._next(segment)

    def _identity(self) -> Identity | None:
        """Return which file is read, None when its past has changed since the walk through it began."""
        return self.file.identity if self._session.walk.generation == self.file.generation else None

    async def _commit(self, segment: Segment, delivered: Delivered) -> None:
        feed, refused = self.sink_state.feed, delivered.refused
        ids, hashes = segment.without(refused, for_digest=self.sink_state.sink.capabilities.digest)
        counted, (events, last_id) = feed.sums.of(segment), feed.taken(segment, ids)
        moves = segment.is_passed or ids or events or segment.unsendable or refused
        if moves:  # what is ephemeral alone moves no mark
            mark = self._state.mark_after(segment.end, last_id, self._identity())
            what = ids, hashes, segment.masked, counted, delivered.count
            await self._session.commit(mark, *what, is_live=self.live)
        if counted:
            feed.sums.counted()
        self._session.relieved()
        self.progress.add(segment, events)
        self._session.walk.advance(segment)

    async def _at_end(self) -> bool:
        """Settle; a reconciliation first tells the sink what is gone and then sets the mark."""
        session, walk = self._session, self._session.walk
        if not self.sink_state.reader.check(self.file, walk.position):
            return True
        if walk.reconciliation is None:
            session.relieved()
            return self._settle()
        if self.file.size == 0 and 0 <= time.time() - self.file.modified < EMPTY_SECONDS:
            session.rest(EMPTY_SECONDS)  # it is being rewritten
            return False
        if self.sink_state.reader.files.descriptor(self.file) is None:
            # A file that cannot be opened does not say that its events are gone.
            if self.file.unopened:
                session.troubled("unreadable_file", "the session file cannot be opened", why=self.file.unopened)
            session.rest(EMPTY_SECONDS)
            return False
        gone = walk.reconciliation.gone()
        if gone and self.file.is_journal:  # what is not in a journal may also be cut off, or still to be written
            rewound = rewound_of(self.file.directory)
            gone = [one for one in gone if one in rewound]
        if gone and not await session.rewound(gone):
            return True
        identity = self._identity()
        await session.commit_end(self._state.mark_at_end(walk, gone, identity), gone)
        if identity is not None:
            session.take(SessionEvent.RECONCILED)
            if not self._state.mark.delivered and self.sink_state.sink.capabilities.digest:
                self.doubt()  # no answer has said a number that would show what the sink has besides
        return True

    def _gone(self) -> bool:
        """Tell whether the file left before this sink had all of it; what is open is drained first."""
        if not self.file.gone or self.sink_state.reader.files.holds(self.file):
            return False
        missed = self.lag_bytes()
        if missed and self.progress.bytes_gone != missed:
            self.progress.bytes_gone = missed
            text = "the file is gone before delivery"
            self._session.say(NoticeName.SESSION_FILE_GONE, Level.ERROR, text, bytes=missed)
        return True

    def _settle(self) -> bool:
        """Note that there is nothing to do, except for what was requested during this turn."""
        self.settled = not self._session.requests
        self._gather.settled()
        self.behind_since = None
        return not self.settled


class Checks:
    """When a sink is asked what it holds of one session: all the time, and sooner where that is not confirmed."""

    def __init__(self) -> None:
        self._planned: tuple[bool, float | None] | None = None
        self._at = 0.0
        self._unanswered = 0

    def is_due(self, mark: Mark, spread_seconds: float) -> bool:
        """Tell whether to ask now. Sessions that become due together are asked within `spread_seconds`, at random.

        Where an answer confirms nothing, the next question comes later each time.
        """
        now, state = time.monotonic(), (mark.is_confirmed, mark.confirmed_at)
        if state != self._planned:
            self._planned, self._unanswered = state, 0
            wait = spread_seconds * random()  # noqa: S311  no secret
            if mark.is_confirmed and mark.confirmed_at is not None:
                age = max(0.0, time.time() - mark.confirmed_at)
                wait = max(wait, ROUND_SECONDS * (1 + random()) / 2 - age)  # noqa: S311  no secret
            self._at = now + wait
        if now < self._at:
            return False
        self._unanswered += 1
        longest = min(ROUND_SECONDS, spread_seconds * 2**self._unanswered)
        self._at = now + longest * (1 + random()) / 2  # noqa: S311  no secret
        return True


class Gather:
    """Whether a session's events go to a sink now, or gather first, as the sink asks for (`policy`).

    It follows how the session's file grows, for one lane. Without a `policy` nothing is waited for.
    """

    def __init__(self, file: SessionFile, policy: Gathering | None) -> None:
        self.until = 0.0
        """When to look again, of the monotonic clock; in the past where nothing is waited for."""
        self._file = file
        self._policy = policy
        self._hurried = False
        self._seen: tuple[int, int] | None = None
        self._quiet_since = 0.0
        self._ended = False

    def waits(self, offset: int) -> bool:
        """Tell whether the events after the offset should gather further; `until` says how long."""
        self.until = 0.0
        pending = self._file.size - offset
        if self._policy is None or self._hurried or self._file.gone or pending <= 0:
            return False
        self._look()
        now = time.monotonic()
        wait = self._policy.wait_seconds(pending, now - self._quiet_since, ended=self._ended)
        self.until = now + wait if wait else 0.0
        return wait > 0

    def hurry(self) -> bool:
        """Stop waiting until the end of the file is reached; return whether it was waiting."""
        waited, self.until = self.until > time.monotonic(), 0.0
        self._hurried = self._policy is not None
        return waited

    def settled(self) -> None:
        """Note that the end of the file was reached: what comes now gathers again."""
        self.until, self._hurried = 0.0, False

    def _look(self) -> None:
        """Note when the file grew last: by the monotonic clock once it is watched, by the file's own time before."""
        seen = (self._file.generation, self._file.size)
        if seen == self._seen:
            return
        age = max(0.0, time.time() - self._file.modified)
        self._seen, self._quiet_since, self._ended = seen, time.monotonic() - age, self._last_type() == _END

    def _last_type(self) -> str:
        """Return the type of the last event, if the file ends with a whole line that is not very long."""
        try:
            with open(self._file.path, "rb", opener=open_inside) as file:
                file.seek(max(0, self._file.size - _LAST_LINE_BYTES_MAX))
                lines = file.read(_LAST_LINE_BYTES_MAX).split(b"\n")
        except OSError:
            return ""
        last = decode(lines[-2]) if len(lines) > 1 and not lines[-1] else None
        return last.type if isinstance(last, Envelope) else ""


def _place_of(error: Exception) -> str:
    """Return where in our code an error came from, without its text."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{Path(frame.f_code.co_filename).name}:{line}"
