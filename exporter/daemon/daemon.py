"""The daemon: it follows the sessions, gives every sink its turns, and ends on request or when all is delivered."""

import asyncio
import contextlib
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from exporter.core.delivery.session_state import SessionEvent
from exporter.core.names import LOCAL
from exporter.core.notice import Level, Notice, NoticeName
from exporter.errors import Exit, worst
from exporter.pipeline.lane import Lane
from exporter.pipeline.segment_reader import SegmentReader
from exporter.pipeline.sink_state import SinkState
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sources.files.cli_process import Holders
from exporter.sources.files.session_file import SessionFile
from exporter.sources.files.source import FileSource
from exporter.state.marks import MarkStore, StoreDamagedError, StoreUnwritableError
from exporter.state.quarantine import Quarantine

if TYPE_CHECKING:
    from exporter.daemon.remote_sources import RemoteSources

LIVE_SECONDS: Final = 600.0
_TICK_SECONDS: Final = 0.02
_LOOK_SECONDS: Final = 0.1
_HOUSEKEEPING_SECONDS: Final = 3_600.0
_RATE_SECONDS: Final = 2.0
_RATE_SECONDS_MIN: Final = 1.0
_RATE_NOTES: Final = 5
_DAY_SECONDS: Final = 86_400.0
_PAST_AGAIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class SessionScope:
    """Which sessions are delivered without a `backfill`."""

    history_days: float
    sessions: frozenset[str] = frozenset()

    def covers(self, file: SessionFile, now: float, sink_state: SinkState, *, known: bool) -> bool:
        """Tell whether a session is named or, where none is, was delivered before (`known`) or has changed lately.

        A sink that is sent nothing of what was before it was met is not sent sessions that have not changed since.
        """
        if self.sessions:
            return file.session in self.sessions
        history = max(self.history_days * _DAY_SECONDS, sink_state.sink.history_seconds or 0.0)
        return known or (file.identity is not None and file.modified >= max(sink_state.since, now - history))


_NOTHING: Final = SessionScope(0, frozenset(("",)))


Chosen: TypeAlias = tuple[SinkWorkers, SessionFile]
DeliverPast: TypeAlias = "Callable[[Daemon, Sequence[Chosen]], Awaitable[Sequence[Chosen]]]"
"""Delivers sessions that are history already; returns those that it did not begin."""


class Daemon:
    """Connects the sources, the sinks and the stores. Everything runs on one event loop; requests may use threads."""

    def __init__(
        self,
        *,
        make_source: "Callable[[Daemon], FileSource]",
        reader: SegmentReader,
        store: MarkStore,
        quarantine: Quarantine,
        sink_states: Sequence[tuple[SinkState, int]],
        scope: SessionScope,
        notice: Callable[[Notice], None],
        drain_seconds: float,
        give_up_seconds: float,
        incomplete_line_seconds: float,
        make_observing: "Callable[[Daemon], RemoteSources] | None" = None,
        holders: Holders | None = None,
        deliver_past: "DeliverPast | None" = None,
    ) -> None:
        self.holders = holders or Holders()
        self.started = time.time()
        self.store = store
        self.quarantine = quarantine
        self.reader = reader
        self.scope = scope
        self.notice = notice
        self.runs = [SinkWorkers(sink_state, connections) for sink_state, connections in sink_states]
        self.changed: set[str] = set()
        self.defects: Mapping[str, int] = {}
        """Internal errors that kept something from telemetry, counted by their place in the code."""
        self.ready = asyncio.Event()
        self.is_ending = False
        self._drain_seconds = drain_seconds
        self._give_up_seconds = give_up_seconds
        self._incomplete_seconds = incomplete_line_seconds
        self.source = make_source(self)
        self.observing = make_observing(self) if make_observing is not None else None
        self._housekeeping: asyncio.Task[None] | None = None
        self._deliver_past = deliver_past
        self._past_found = asyncio.Event()
        self._sending_past: asyncio.Task[None] | None = None
        self._events_noted = deque[tuple[float, dict[str, int]]]([(time.monotonic(), {})], maxlen=_RATE_NOTES)

    # ---- what the source reports ----------------------------------------------------------------------------

    def scan(self) -> None:
        """Look for every change of the files now, and do not wait until one is reported."""
        self.source.scan()

    @property
    def files(self) -> dict[str, SessionFile]:
        """Every session that is followed, by its file or by its journal."""
        if self.observing is None:
            return self.source.sessions
        journals = self.observing.files.sessions.items()
        return self.source.sessions | {name: file for name, file in journals if self.observing.has_journal(name)}

    def on_change(self, file: SessionFile) -> None:
        """Give the session a turn at every sink whose scope it is in."""
        if self.observing is not None and not file.is_journal:
            followed = self.observing.give_way(file)
            if followed is None:
                return
            file = followed
        self.changed.add(file.session)
        now = time.time()
        for run in self.runs:
            lane = run.lanes.get(file.session)
            if lane is None:
                mark = run.sink_state.store.mark(file.session, run.sink_state.sink_id)
                if not self.scope.covers(file, now, run.sink_state, known=mark is not None):
                    continue
                if mark is None and self._is_past(run, file, now):
                    continue
                lane = run.lanes[file.session] = Lane(file, run.sink_state, live=True, mark=mark)
            lane.live = self.ready.is_set() or file.modified >= now - LIVE_SECONDS
            run.ask(lane)

    def _is_past(self, run: SinkWorkers, file: SessionFile, now: float) -> bool:
        """Tell whether a session, of which a sink has nothing, is to be sent there as a backfill would send it."""
        run.past.pop(file.session, None)
        is_past = run.sink_state.sink.history_seconds is not None and file.modified < now - LIVE_SECONDS
        if is_past:
            run.past[file.session] = file
            self._past_found.set()
        return is_past

    async def _send_past(self, deliver: "DeliverPast") -> None:
        """Send what is history already, oldest first, until cancelled; a sink that waits is tried again."""
        while True:
            await self._past_found.wait()
            self._past_found.clear()
            chosen = [(run, file) for run in self.runs for file in run.past.values()]
            begun = {(run, file.session) for run, file in chosen}
            left = {(run, file.session) for run, file in await deliver(self, chosen)} if chosen else set()
            for run, session in begun - left:
                run.past.pop(session, None)
            if left:
                await asyncio.sleep(_PAST_AGAIN_SECONDS)
                self._past_found.set()

    def on_workspace(self, file: SessionFile) -> None:
        """Note that the session's metadata may have changed, for the next report."""
        self.changed.add(file.session)

    def lane(self, run: SinkWorkers, file: SessionFile) -> Lane:
        """Return a session's lane at a sink, made if there is none, whatever the scope."""
        lane = run.lanes.get(file.session)
        if lane is None:
            mark = run.sink_state.store.mark(file.session, run.sink_state.sink_id)
            lane = run.lanes[file.session] = Lane(file, run.sink_state, live=False, mark=mark)
        return lane

    # ---- life -----------------------------------------------------------------------------------------------

    def start(self, *, deliver: bool = True, sum_up: bool = True) -> None:
        """Begin to follow and to deliver; without `deliver` only a `backfill` delivers.

        Without `sum_up` the counts for sums are left to the exporter that this one helps.
        """
        if not deliver:
            self.scope = _NOTHING
        for run in self.runs:
            if deliver and not self.scope.sessions:
                run.sink_state.meet(self.started)
            run.start(sum_up=sum_up, lives=deliver)
        self.source.start()
        for run in self.runs if deliver else ():
            run.check_one_session(sees_all=not self.scope.sessions)
        if self.observing is not None:
            self.observing.start(connect=deliver)
        self.ready.set()
        if deliver and self._deliver_past is not None:
            self._sending_past = asyncio.create_task(self._send_past(self._deliver_past))
        self._housekeeping = asyncio.create_task(self._keep_house())

    def events_read(self) -> dict[str, int]:
        """Return how many events every source has read since the start, by its name."""
        others = self.observing.events_read() if self.observing is not None else {}
        return {"files": self.reader.events_read, **others}

    def rates(self) -> dict[str, float]:
        """Return how many events a second every source has read in the last ten seconds, by its name."""
        since, before = self._events_noted[0]
        seconds = max(_RATE_SECONDS_MIN, time.monotonic() - since)
        read = {name: max(0, count - before.get(name, 0)) for name, count in self.events_read().items()}
        return {name: round(count / seconds, 1) for name, count in read.items()}

    async def _keep_house(self) -> None:
        expires, reported = 0.0, set[str]()
        while True:
            for place in self.defects.keys() - reported:
                reported.add(place)
                text = "a defect keeps something of an event from telemetry; please report it"
                self.say(NoticeName.DEFECT, Level.ERROR, text, at=place)
            if time.monotonic() >= expires:
                expires = time.monotonic() + _HOUSEKEEPING_SECONDS
                with contextlib.suppress(sqlite3.Error):  # lanes report a full disk
                    self.quarantine.expire()
            await asyncio.sleep(_RATE_SECONDS)
            self._events_noted.append((time.monotonic(), self.events_read()))
            for run in self.runs:
                run.check_endings()

    async def stop(self) -> None:
        """Finish the requests that are under way, for `drain_seconds` at most, and close everything."""
        self.is_ending = True
        for task in (self._housekeeping, self._sending_past):
            if task is not None:
                task.cancel()
        self.source.close()
        if self.observing is not None:
            await self.observing.stop()
        await asyncio.gather(*(run.stop(self._drain_seconds) for run in self.runs))
        # A full disk must not prevent the end.
        with contextlib.suppress(sqlite3.Error, StoreUnwritableError, StoreDamagedError):
            for run in self.runs:
                run.remember()
        self.store.close()
        self.quarantine.close()

    async def until_idle(
        self,
        lanes: Callable[[], Iterable[tuple[SinkWorkers, Lane]]] | None = None,
        *,
        runs: Iterable[SinkWorkers] = (),
        more: Callable[[Collection[SinkWorkers]], bool] = lambda _: False,
    ) -> Exit:
        """Wait until every mark (or every given lane) is at the end of its file, and return the exit code.

        While `more` is true, further lanes will follow; it gets the sinks that are given up. The sums of `runs` are
        awaited, whatever lanes they have. A sink is given up while it refuses the token (`REFUSED`), when nothing was
        accepted for `give_up_seconds` (`UNREACHABLE`), and when all that is left for it is blocked (`PARTIAL`). No
        other sink is awaited less for that; the worst exit code is returned. Quarantined events are `PARTIAL`, too.
        """
        idle_looks, begun = 0, time.monotonic()
        targets: dict[Lane, tuple[int, int]] = {}
        given_up: dict[SinkWorkers, Exit] = {}
        while idle_looks < 2:
            await asyncio.sleep(_TICK_SECONDS)
            chosen = list(lanes()) if lanes else [(run, lane) for run in self.runs for lane in run.lanes.values()]
            concerned = {*runs, *(run for run, _ in chosen)} if lanes else set(self.runs)
            for run in () if lanes else self.runs:
                run.hurry_checks()
            further = more(given_up) or (lanes is None and any(run.past for run in self.runs if run not in given_up))
            summing = self._summing(concerned, hurry=not further)
            if lanes:  # what is added after the question is not part of the answer
                for _, lane in chosen:
                    targets.setdefault(lane, (lane.file.generation, lane.file.size))
                waiting = [(run, lane) for run, lane in chosen if not lane.reached(*targets[lane])]
            else:
                waiting = [one for one in chosen if not (one[1].settled and not one[1].busy and not one[1].asked)]
            for run, lane in waiting:
                if lane.hurry():
                    run.ask(lane)
            given_up = self._given_up(waiting, summing, begun)
            waits = any(run not in given_up for run in (*summing, *(run for run, _ in waiting)))
            idle_looks = 0 if waits or further or not (lanes or self._all_read()) else idle_looks + 1
        return worst(self._all_well(list(lanes()) if lanes else None, set(runs)), *given_up.values())

    def _given_up(
        self, waiting: list[tuple[SinkWorkers, Lane]], summing: set[SinkWorkers], begun: float
    ) -> dict[SinkWorkers, Exit]:
        """Return the sinks for which waiting is of no use, and why, of those with lanes or sums that wait."""
        lanes: dict[SinkWorkers, list[Lane]] = {run: [] for run in summing}
        for run, lane in waiting:
            lanes.setdefault(run, []).append(lane)
        ends = {run: self._hopeless(run, some, begun) for run, some in lanes.items()}
        return {run: end for run, end in ends.items() if end is not None}

    def _all_well(self, chosen: list[tuple[SinkWorkers, Lane]] | None, runs: set[SinkWorkers]) -> Exit:
        """Return the exit code when everything is delivered, for the chosen lanes and sinks or for all."""
        every = [(run, lane) for run in self.runs for lane in run.lanes.values()]
        if any(lane.progress.problem for _, lane in every):
            return Exit.PARTIAL
        named = self.scope.sessions if chosen is None else frozenset[str]()
        chosen = every if chosen is None else chosen
        if any(lane.stopped_by not in (None, SessionEvent.DELETED) for _, lane in chosen):
            return Exit.PARTIAL
        streams = (run.sink_state.feed.sums.streams for run in {*runs, *(run for run, _ in chosen)})
        kept_for = {lane.file.session for _, lane in chosen}.union(*streams)
        # What was deleted there is no failure, except to who named the session.
        missed = any(lane.stopped and lane.file.session in named for _, lane in chosen)
        return Exit.PARTIAL if missed or any(self.quarantine.count(session=one) for one in kept_for) else Exit.DONE

    def _all_read(self) -> bool:
        return self.observing is None or not self.observing.catching_up()

    @staticmethod
    def _summing(runs: "set[SinkWorkers]", *, hurry: bool) -> "set[SinkWorkers]":
        """Return the sinks that have sums to send; with `hurry` they send them without waiting for more."""
        for run in runs if hurry else ():
            run.sink_state.feed.sums.hurried = True
        return {run for run in runs if not run.summed_up}

    async def catch_up(
        self, seconds: float, stop: asyncio.Event, progress: Callable[[dict[str, int]], None]
    ) -> dict[str, int]:
        """Wait until the existing sessions are delivered, for so many seconds at most; return the counts."""
        end = time.monotonic() + seconds
        while True:
            counts = self.counts()
            progress(counts)
            if time.monotonic() > end or stop.is_set() or all(run.idle() for run in self.runs):
                return counts
            await asyncio.sleep(_LOOK_SECONDS)

    def sums(self) -> dict[str, object]:
        """Return what was done since the start, also after the end: events by sink, redactions, what is pending."""
        lanes = {run.name: run.lanes.values() for run in self.runs}
        pending = {name: sum(lane.lag_bytes() for lane in some) for name, some in lanes.items()}
        return {
            "ran_seconds": round(time.time() - self.started, 1),
            "events": {name: sum(lane.progress.events for lane in some) for name, some in lanes.items()},
            "redacted": max((sum(lane.progress.masked for lane in some) for some in lanes.values()), default=0),
            "pending_bytes": {name: size for name, size in pending.items() if size},
        }

    def counts(self) -> dict[str, int]:
        """Return how much there is, and how much of it is at the embedded Mission Control, else at the last sink."""
        counted = next((run for run in self.runs if run.name == LOCAL), self.runs[-1])
        lanes = list(counted.lanes.values())
        return {
            "sessions": len(lanes),
            "sessions_done": sum(1 for lane in lanes if lane.settled),
            "events": sum(lane.mark.delivered for lane in lanes),
            "bytes": sum(lane.position.offset for lane in lanes),
            "bytes_total": sum(lane.file.size for lane in lanes),
            "masked": sum(self.store.masked_in_all(lane.file.session, lane.sink_state.sink_id) for lane in lanes),
        }

    def _hopeless(self, run: SinkWorkers, lanes: list[Lane], begun: float) -> Exit | None:
        """Return the exit code of a wait that cannot succeed: nothing is accepted, or all that is left is blocked."""
        end = time.monotonic() - self._give_up_seconds
        gate = run.sink_state.gate
        if run.sink_state.off is not None:
            return Exit.DONE
        if gate.closed:
            return Exit.REFUSED
        if gate.failures and max(begun, run.sink_state.last_success_monotonic or begun) <= end:
            return Exit.UNREACHABLE
        since = [lane.progress.troubled_since for lane in lanes]
        return Exit.PARTIAL if since and all(one is not None and one <= end for one in since) else None

    def incomplete(self, file: SessionFile) -> int | None:
        """Return the offset of an unfinished last line that has not grown for long, None when there is none."""
        if file.identity is None or time.time() - file.modified < self._incomplete_seconds:
            return None
        for run in self.runs:
            lane = run.lanes.get(file.session)
            # A session that was deleted there is settled and not read any more.
            if lane is not None and lane.settled and not lane.stopped and lane.position.offset < file.size:
                return lane.position.offset
        return None

    def say(self, name: NoticeName, level: Level, message: str, **fields: object) -> None:
        """Report something about the daemon itself."""
        self.notice(Notice(name, level, message, fields=fields))
