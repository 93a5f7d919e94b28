"""Delivering history: the sessions that were asked for get a turn at the sinks that were asked for, in their order.

`Helpers` are processes that deliver history beside this one, so that much of it takes the time of one core's share.
They are made by forking before anything is open here, share the redactor's memory and the state directory's lock, and
wait. Each builds parts of its own when it is given its first session. Like the exporter, a helper can be killed at any
instant: its marks show where this process continues its sessions.
"""

import asyncio
import gc
import os
import signal
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from exporter.core.delivery.log_streams import LogStreams, hour_of
from exporter.core.delivery.position import START
from exporter.core.delivery.session_state import STOPS, SessionEvent
from exporter.core.names import BACKFILL_RUN
from exporter.daemon.daemon import Daemon
from exporter.errors import Exit, worst
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_state import LaneProgress
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sinks.otlp import Otlp
from exporter.sources.files.session_file import SessionFile, times_of
from exporter.status import DELETED, FOREIGN, BackfillRow

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from exporter.daemon.running import RunningExporter

_OLD_SECONDS: Final = 3_600.0
_PROGRESS_SECONDS: Final = 0.2
_AT_ONCE: Final = 3
"""How many sessions are on their way to a sink at least. Each takes memory."""
_SMALL_AT_ONCE: Final = 32
_SMALL_BYTES: Final = 2 << 20
"""So many may be, while their files have no more bytes together."""
_HELPERS_MAX: Final = 3
_END_SECONDS: Final = 10.0

Progress: TypeAlias = Callable[[dict[str, Any]], None]
Chosen: TypeAlias = tuple[SinkWorkers, SessionFile]


async def history_notes(chosen: Sequence[Chosen], *, asks: bool) -> list[str]:
    """Return what the stores of telemetry need for sessions of the past; without `asks` none of them is asked."""
    began: dict[str, float] = {}
    oldest: dict[SinkWorkers, float] = {}
    for run, file in chosen:
        if not run.sink_state.feed.holds_events:
            began[file.session] = began.get(file.session) or _seconds(file)[0]
            oldest[run] = min(oldest.get(run, time.time()), began[file.session])
    found = []
    for run, since in oldest.items():
        age = time.time() - since
        if age > _OLD_SECONDS and isinstance(sink := run.sink_state.sink, Otlp):
            found.append(f"{run.name}: {await sink.needs(age / 86_400, asks=asks)}")
    return sorted(found)


def off_notes(chosen: Sequence[Chosen]) -> list[str]:
    """Return what is to be told of signals that their endpoint does not take."""
    found = {run.name: (run.sink_state.off_text, run.sink_state.off) for run, _ in chosen if run.sink_state.off}
    return [f"{name}: {text} ({off.url} answered {off.status})" for name, (text, off) in sorted(found.items()) if off]


async def would_send(run: SinkWorkers, file: SessionFile, *, from_start: bool) -> BackfillRow:
    """Read what a backfill would send, redact it, and throw it away."""
    sink_state = run.sink_state
    skip = {} if from_start else sink_state.store.delivered(file.session, sink_state.sink_id)
    events = size = masked = 0
    position = START
    if not sink_state.feed.holds_events:
        mark = None if from_start else sink_state.store.mark(file.session, sink_state.sink_id)
        position, skip = (mark.position if mark else START), {}
    while (segment := await sink_state.reader.segment(file, position, skip=skip)) is not None:
        events, size = events + len(segment.ids), size + segment.size
        masked += sum(segment.masked.values())
        position = segment.end
    return BackfillRow(file.session, run.name, events, size, masked, "would send" if events else "nothing to send")


@dataclass(slots=True)
class _Way:
    """One session on its way to one sink: by a lane of ours once it has begun, or by a helper."""

    run: SinkWorkers
    file: SessionFile
    lane: Lane | None = None
    before: tuple[int, int, int] = (0, 0, 0)
    end: tuple[int, int] = (0, 0)
    helped: BackfillRow | None = None

    def begin(self, daemon: Daemon, *, from_start: bool) -> None:
        """Ask for a turn for our own lane."""
        lane = self.lane = daemon.lane(self.run, self.file)
        self.before = _counts(lane.progress)
        self.end = (self.file.generation, self.file.size)
        sink_state = self.run.sink_state
        if not sink_state.feed.holds_events:
            sink_state.whole.add(self.file.session)
        if from_start:
            lane.start_over()
        elif sink_state.lacks_front(self.file.session):
            lane.read_whole()
        elif sink_state.feed.holds_events:
            lane.doubt()
        self.run.ask(lane)

    @property
    def goes_on(self) -> bool:
        """Whether it is under way here: begun, not finished, not blocked."""
        lane = self.lane
        return lane is not None and not lane.settled and lane.progress.troubled_since is None

    @property
    def sink_waits(self) -> bool:
        """Whether the sink takes nothing now."""
        gate = self.run.sink_state.gate
        return gate.closed or gate.failures > 0

    @property
    def has_hours(self) -> bool:
        """Whether its records go to streams by their hour."""
        sink = self.run.sink_state.sink
        return isinstance(sink, Otlp) and sink.time_ns is not None

    @property
    def over(self) -> bool:
        """Whether it reached the end that the file had at first; what was added since is not requested."""
        return self.lane.reached(*self.end) if self.lane is not None else self.helped is not None

    def done(self) -> tuple[int, int, int]:
        """Return the events, bytes and masked secrets that were delivered, by a helper and here."""
        lane, helped, (events, size, masked) = self.lane, self.helped, self.before
        here = _counts(lane.progress) if lane is not None else self.before
        there = _counts(helped) if helped is not None else (0, 0, 0)
        return here[0] - events + there[0], here[1] - size + there[1], here[2] - masked + there[2]

    def bytes_done(self) -> int:
        """Return how much of the file was delivered."""
        if self.lane is not None:
            return min(self.lane.position.offset, self.file.size)
        return self.file.size if self.helped is not None else 0

    def row(self, quarantined: int) -> BackfillRow:
        """Return what was done when so many are in quarantine; sums that are not sent yet are not done."""
        done = self.done() if self.run.summed_up else (0, 0, 0)
        return BackfillRow(self.file.session, self.run.name, *done, *self._state(quarantined), quarantined)

    def _state(self, quarantined: int) -> tuple[str, str | None]:
        """Return the state of the session at the sink, and the reason when it is not delivered."""
        run, lane = self.run, self.lane
        if run.sink_state.off is not None:
            return f"off ({run.sink_state.off.status})", None
        if lane is not None and (cause := lane.stopped_by) is not None:
            if cause is SessionEvent.DELETED:
                return f"{DELETED}; --from-start sends it again", None
            why = STOPS[cause][1].format(session=self.file.session)
            return FOREIGN if cause is SessionEvent.FOREIGN else DELETED, why
        if self.over and run.summed_up:
            kept = f"but for {quarantined} in quarantine; `exporter quarantine list` says why"
            return "delivered", kept if quarantined else None
        if lane is not None and lane.progress.problem is not None:
            return "stopped", lane.progress.problem
        return "refused" if run.sink_state.gate.closed else "waiting", run.sink_state.last_error


def _has_room(sizes: Sequence[int], size: int) -> bool:
    """Tell whether a file of this size may begin beside others of these sizes."""
    return len(sizes) < _AT_ONCE or (len(sizes) < _SMALL_AT_ONCE and sum(sizes) + size <= _SMALL_BYTES)


def _seconds(file: SessionFile) -> tuple[float, float]:
    """Return when a session began and ended, in seconds since 1970."""
    found = []
    for time_ in times_of(file.path, file.begins):
        with suppress(ValueError, OverflowError):
            found.append(datetime.fromisoformat(time_).timestamp())
    return (min(found), max(found)) if found else (file.modified, file.modified)


def _counts(done: LaneProgress | BackfillRow) -> tuple[int, int, int]:
    return done.events, done.bytes, done.masked


async def deliver_past(daemon: Daemon, chosen: Sequence[Chosen]) -> Sequence[Chosen]:
    """Deliver sessions that nothing was sent of and that are history already; return what did not begin."""
    past = next(sink.streams.past for run, _ in chosen if isinstance(sink := run.sink_state.sink, Otlp))
    backfill = Backfill(daemon, chosen, {"run": past}, None)
    await backfill.deliver(lambda _: None)
    return backfill.left


class Hours:
    """The streams of the log records of sessions, by the hour (`core/delivery/log_streams.py`).

    A helper is `given` those of its session; otherwise they are chosen here.
    """

    def __init__(self, ways: Iterable[_Way], given: Mapping[str, Mapping[str, int]]) -> None:
        ways = [way for way in ways if way.has_hours]
        self._streams = LogStreams()
        self._times = {} if given else {way.file.session: _seconds(way.file) for way in ways}
        self._placed: dict[str, tuple[Sequence[_Way], dict[int, int]]] = {}
        for way in ways if given else ():
            hours = given.get(way.file.session, {})
            self._place([way], {int(hour): stream for hour, stream in hours.items()})

    def begins(self, ways: Sequence[_Way]) -> tuple[float, float]:
        """Return what puts sessions in order: streams go forward in time."""
        return self._times.get(ways[0].file.session, (0.0, 0.0))

    def take(self, ways: Sequence[_Way]) -> bool:
        """Choose the streams of a session; return False when it has to wait for other sessions."""
        session, logs = ways[0].file.session, [way for way in ways if way.has_hours]
        if not logs or session not in self._times or session in self._placed:
            return True
        hours = self._streams.take(session, *map(hour_of, self._times[session]))
        if hours is None and not any(way.sink_waits for way in logs):
            return False
        self._place(logs, hours or {})
        return True

    def _place(self, logs: Sequence[_Way], hours: dict[int, int]) -> None:
        self._placed[logs[0].file.session] = logs, hours
        for way in logs:
            if isinstance(sink := way.run.sink_state.sink, Otlp):
                sink.streams.place(way.file.session, hours)

    def told(self, session: str) -> dict[str, dict[str, int]]:
        """Return what a helper is given."""
        _, hours = self._placed.get(session, ((), {}))
        return {session: {str(hour): stream for hour, stream in hours.items()}}

    def release(self, helped: Collection[str]) -> None:
        """Let the streams of sessions go that are finished, or blocked; `helped` are with helpers."""
        for session, (logs, _) in list(self._placed.items()):
            if session not in helped and not any(way.goes_on for way in logs):
                self._streams.done(session)
                del self._placed[session]


class Backfill:
    """Delivers what sinks lack of sessions, all that was `chosen`.

    Telemetry goes out under the name of a run of its own, that of the `request` if it has one already. With `helpers`
    telemetry of some sessions is delivered by them.
    """

    def __init__(
        self, daemon: Daemon, chosen: Sequence[Chosen], request: Mapping[str, Any], helpers: "Helpers | None"
    ) -> None:
        self._daemon = daemon
        self._chosen = chosen
        self._helpers = helpers
        self._from_start = bool(request.get("from_start"))
        self._named = bool(request.get("sessions"))
        self._run = request.get("run") or f"{BACKFILL_RUN}{uuid.uuid4()}"
        self._next_progress = 0.0
        # In the order of the answer, by sink and session.
        self._ways = {(run.name, file.session): _Way(run, file) for run, file in chosen}
        self._hours = Hours(self._ways.values(), request.get("hours") or {})
        # The signals of telemetry of a session are made together, so they begin together.
        by_group: dict[str, dict[str, list[_Way]]] = {}
        for way in self._ways.values():
            group = way.run.name if way.run.sink_state.feed.holds_events else "telemetry"
            by_group.setdefault(group, {}).setdefault(way.file.session, []).append(way)
        self._queues = {group: deque(sessions.values()) for group, sessions in by_group.items()}
        if "telemetry" in self._queues:
            self._queues["telemetry"] = deque(sorted(self._queues["telemetry"], key=self._hours.begins))
        self._begun: dict[str, list[list[_Way]]] = {group: [] for group in by_group}
        self._given: dict[str, list[_Way]] = {}
        self._helped: dict[str, Mapping[str, int]] = {}

    async def deliver(self, progress: Progress) -> tuple[list[BackfillRow], Exit]:
        """Return what was done for each session and sink, and how it ended."""
        daemon, sinks = self._daemon, {run for run, _ in self._chosen}
        for streams in {run.sink_state.sink.streams for run in sinks if isinstance(run.sink_state.sink, Otlp)}:
            streams.begin_run((file.session for _, file in self._chosen), self._run)

        def watched() -> list[tuple[SinkWorkers, Lane]]:
            self._feed()
            self._tell(progress)
            return [(way.run, way.lane) for way in self._ways.values() if way.lane is not None]

        ended = await daemon.until_idle(watched, runs=sinks, more=self._waits)
        self._end()
        count = daemon.quarantine.count
        stopped = any(way.lane is not None and way.lane.stopped for way in self._ways.values())
        if (self._named and stopped) or any(count(session=file.session) for _, file in self._chosen):
            ended = worst(ended, Exit.PARTIAL)
        return [way.row(count(session=way.file.session, sink=way.run.name)) for way in self._ways.values()], ended

    def _end(self) -> None:
        """Note what is sent whole now; what these sessions do from now on happens now."""
        for way in self._ways.values():
            if way.over and not way.run.sink_state.feed.holds_events:
                way.run.sink_state.has_front(way.file.session)
            if way.over and isinstance(sink := way.run.sink_state.sink, Otlp):
                sink.streams.end_run([way.file.session])

    @property
    def left(self) -> list[Chosen]:
        """What did not begin."""
        return [(way.run, way.file) for way in self._ways.values() if way.lane is None and way.helped is None]

    def _waits(self, given_up: Collection[SinkWorkers]) -> bool:
        """Whether a helper has a session, or one has not begun and not all its sinks are given up."""
        next_ones = [way for queue in self._queues.values() for way in _first(queue)]
        return bool(self._given) or any(way.run not in given_up for way in next_ones)

    def _feed(self) -> None:
        """Start sessions in place of those that are finished or blocked."""
        self._hours.release(self._given)
        for group, queue in self._queues.items():
            begun = [ways for ways in self._begun[group] if any(way.goes_on for way in ways)]
            for ways in self._begun[group]:
                if all(way.over and not (way.lane is not None and way.lane.live) for way in ways):
                    ways[0].run.sink_state.feed.forget(ways[0].file)
            # A sink that waits holds no other back: its sessions begin with theirs, and take no place.
            active = [ways[0].file.size for ways in begun if any(way.goes_on and not way.sink_waits for way in ways)]
            while queue and (not begun or not all(way.sink_waits for way in queue[0])):
                size = queue[0][0].file.size
                if (begun and not _has_room(active, size)) or not self._hours.take(queue[0]):
                    break
                begun.append(queue.popleft())
                active.append(size)
                for way in begun[-1]:
                    way.begin(self._daemon, from_start=self._from_start)
            self._begun[group] = begun
        if self._helpers is not None:
            self._feed_helpers(self._helpers)

    def _feed_helpers(self, helpers: "Helpers") -> None:
        for session, answer in helpers.heard():
            if answer is None or "sessions" in answer:
                self._helped.pop(session, None)
                self._settle(self._given.pop(session), answer)
            else:
                self._helped[session] = answer["progress"]
        queue = self._queues.get("telemetry", ())
        if any(way.sink_waits for way in _first(queue)):
            return
        request = {"do": "backfill", "from_start": self._from_start, "run": self._run}
        while queue:
            session, sinks = queue[0][0].file.session, [way.run.name for way in queue[0]]
            if not helpers.has_room(queue[0][0].file.size) or not self._hours.take(queue[0]):
                break
            given = {**request, "sessions": [session], "sinks": sinks, "hours": self._hours.told(session)}
            if not helpers.give(session, queue[0][0].file.size, given):
                break
            self._given[session] = queue.popleft()

    def _settle(self, ways: list[_Way], answer: Mapping[str, Any] | None) -> None:
        """Record the result of a helper; sessions that it did not finish continue here."""
        rows = msgspec.convert(answer["sessions"] if answer else [], list[BackfillRow])
        by_sink = {row.sink: row for row in rows}
        for way in ways:
            way.helped = by_sink.get(way.run.name)
            way.run.sink_state.feed.sums.counted()
            if way.helped is None or way.helped.state != "delivered":
                way.begin(self._daemon, from_start=self._from_start and way.helped is None)

    def _tell(self, progress: Progress) -> None:
        """Report the progress a few times a second."""
        now = time.monotonic()
        if now < self._next_progress:
            return
        self._next_progress = now + _PROGRESS_SECONDS
        by_session: dict[str, list[_Way]] = {}
        for way in self._ways.values():
            by_session.setdefault(way.file.session, []).append(way)
        reached = [self._reached(session, ways) for session, ways in by_session.items()]
        progress(
            {
                "sessions": len(reached),
                "sessions_done": sum(1 for one in reached if one["done"]),
                **{name: sum(one[name] for one in reached) for name in ("events", "bytes", "masked")},
                "bytes_total": sum(ways[0].file.size for ways in by_session.values()),
            }
        )

    def _reached(self, session: str, ways: Sequence[_Way]) -> Mapping[str, int]:
        """Return the progress of a session: what all of its sinks have."""
        if session in self._helped:
            return {"done": 0, **self._helped[session]}
        done = [way.done() for way in ways]
        return {
            "done": all(way.over for way in ways),
            "events": min(events for events, _, _ in done),
            "bytes": min(way.bytes_done() for way in ways),
            "masked": max(masked for _, _, masked in done),
        }


def _first(queue: Sequence[list[_Way]]) -> list[_Way]:
    """Return the ways of the session that is next, one to each of the sinks of the queue."""
    return queue[0] if queue else []


def helpers_possible() -> int:
    """Return how many helpers this machine can use: one for every further core."""
    if not sys.platform.startswith("linux"):  # elsewhere a fork is not safe
        return 0
    return min(_HELPERS_MAX, len(os.sched_getaffinity(0)) - 1)


@dataclass(slots=True)
class _Helper:
    process: "BaseProcess"
    connection: "Connection"
    given: dict[str, int] = field(default_factory=dict)
    """The sizes of the sessions that it has."""

    def has_room(self, size: int) -> bool:
        """Tell whether it takes one more."""
        return _has_room(list(self.given.values()), size)


class Helpers:
    """The helpers of one backfill. Start them before there are threads, files or an open database."""

    def __init__(self, count: int, make: "Callable[[], RunningExporter]") -> None:
        from multiprocessing import get_context  # only if there are helpers: it takes time that other commands have not

        self._helpers: list[_Helper] = []
        context = get_context("fork")
        gc.freeze()  # what is shared is not looked at again by any process, which would make it two copies
        for _ in range(count):
            ours, theirs = context.Pipe()
            inherited = [ours, *(helper.connection for helper in self._helpers)]
            process = context.Process(target=_help, args=(theirs, inherited, make), daemon=True)
            process.start()
            theirs.close()
            self._helpers.append(_Helper(process, ours))

    def has_room(self, size: int) -> bool:
        """Tell whether any takes one more session."""
        return any(helper.has_room(size) for helper in self._helpers)

    def give(self, session: str, size: int, request: dict[str, Any]) -> bool:
        """Give a session to a helper that has room for one; return whether there was such a helper."""
        for helper in sorted(self._helpers, key=lambda one: len(one.given)):
            if helper.has_room(size):
                try:
                    helper.connection.send((session, request))
                except OSError:
                    continue
                helper.given[session] = size
                return True
        return False

    def heard(self) -> list[tuple[str, dict[str, Any] | None]]:
        """Return the new messages: of a session its progress, its rows when it is done, or None when it failed."""
        found: list[tuple[str, dict[str, Any] | None]] = []
        for helper in tuple(self._helpers):
            try:
                while helper.connection.poll():
                    session, answer = helper.connection.recv()
                    found.append((session, answer))
                    if answer is None or "sessions" in answer:
                        helper.given.pop(session, None)
            except (EOFError, OSError):
                found.extend((session, None) for session in helper.given)
                self._helpers.remove(helper)
        return found

    def close(self) -> None:
        """Let the helpers finish the requests that are under way, and end them."""
        for helper in self._helpers:
            helper.connection.close()
        for helper in self._helpers:
            helper.process.join(_END_SECONDS)
            if helper.process.is_alive():
                helper.process.kill()
        self._helpers.clear()


def _help(connection: "Connection", inherited: "Sequence[Connection]", make: "Callable[[], RunningExporter]") -> None:
    """Be a helper until the other end of the connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the process that was started
    for one in inherited:
        one.close()
    try:
        asyncio.run(_answer_all(connection, make))
    finally:
        connection.close()


async def _answer_all(connection: "Connection", make: "Callable[[], RunningExporter]") -> None:
    requests: asyncio.Queue[tuple[str, dict[str, Any]] | None] = asyncio.Queue()

    def read() -> None:
        try:
            requests.put_nowait(connection.recv())
        except (EOFError, OSError):
            asyncio.get_running_loop().remove_reader(connection.fileno())
            requests.put_nowait(None)

    asyncio.get_running_loop().add_reader(connection.fileno(), read)
    request = await requests.get()
    if request is None:
        return
    running, answering = make(), set[asyncio.Task[None]]()
    try:
        running.daemon.start(deliver=False, sum_up=False)
        while request is not None:
            answering = {task for task in answering if not task.done()}
            answering.add(asyncio.create_task(_answer(running, connection, *request)))
            request = await requests.get()
        for task in answering:
            task.cancel()
    finally:
        await running.close()


async def _answer(running: "RunningExporter", connection: "Connection", session: str, request: dict[str, Any]) -> None:
    def tell(progress: dict[str, Any]) -> None:
        connection.send((session, {"progress": progress}))

    answer: dict[str, Any] | None = None
    with suppress(Exception):  # the first process continues the session, and meets the error there
        answer = await running.answers().answer(request, tell)
    connection.send((session, answer))
