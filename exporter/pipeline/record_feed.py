"""The feed of a sink that takes records made of events instead of the events, such as the signals of OTLP.

A machine per session turns events into records of several signals at once. What it makes depends on the events before
as well, so a machine stands at one place of a file, and one that is needed elsewhere is made anew and fed the session
from its first event. That needs no memory of ours on disk, and it is why records must depend on the events alone.
"""

import asyncio
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.position import START, Position
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.segment import BYTES_MAX, EVENTS_MAX, Segment
from exporter.pipeline.feed import Feed, FeedSums
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.cli_process import Holders, Liveness
from exporter.sources.files.session_file import SessionFile

_MACHINES_MAX: Final = 256
_CLOSED_MACHINES_MAX: Final = 16
_EVENTS_MAX: Final = 1_000
_SLICE_EVENTS: Final = 256
_CRASHED_SECONDS: Final = 5.0
_CLOSED_SECONDS: Final = 60.0
_CACHE_BYTES_MAX: Final = 8 << 20
_RECORD_BYTES: Final = 300
_PENDING_BYTES_MAX: Final = 5 << 20
_WAIT_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.005

Record: TypeAlias = tuple[int, str, Any]
"""The number of the event that led to it, its id, and its bytes as they will be sent, or what a `Pack` takes."""
Pack: TypeAlias = Callable[[Sequence[Any]], bytes]
"""Makes the contents of many records into bytes, where that is better than bytes for each."""
Place: TypeAlias = tuple[SessionFile, int, int]
"""A file, its generation and an offset in it."""


@dataclass(slots=True)
class SegmentRecords:
    """The records of one segment, by signal. `size` is about the memory that they take, `pending` who lacks them."""

    source: Segment
    records: dict[str, list[Record]] = field(default_factory=dict)
    size: int = 0
    pending: set[str] = field(default_factory=set)

    def add(self, some: Mapping[str, list[Record]]) -> None:
        """Add records."""
        for signal, records in some.items():
            self.records.setdefault(signal, []).extend(records)
            self.size += sum([_RECORD_BYTES + len(data) for _, _, data in records])

    def segment(self, signal: str, skip: Container[str], pack: Pack | None) -> Segment:
        """Return the records of one signal.

        Records whose ids are in `skip` are left out, but named in the segment's `seen`. What `pack` makes of them all
        stands in the place of the first one, and nothing in the others'.
        """
        source, records = self.source, self.records.get(signal, [])
        seen = {name for _, name, _ in records}
        chosen = [record for record in records if record[1] not in skip] if skip else records
        numbers, ids, contents = zip(*chosen, strict=True) if chosen else ((), (), ())
        lines = list(contents) if pack is None or not chosen else [pack(contents), *[b""] * (len(chosen) - 1)]
        places = [source.offsets[index] if source.offsets else source.start.offset for index in numbers]
        return replace(source, ids=list(ids), lines=lines, offsets=places, seen=seen)


class RecordCache:
    """The records of the latest segments, for the other signals that want them too.

    A signal that is far ahead of another waits, so that they last until they are needed: to make them again, the
    session is mapped from its first event. One that gets no further is not waited for until it has caught up.
    """

    def __init__(self) -> None:
        self._segments: OrderedDict[Place, SegmentRecords] = OrderedDict()
        self._size = 0
        self._pending_bytes: dict[str, int] = {}
        self._not_awaited: set[str] = set()

    def join(self, signal: str) -> None:
        """Note that there is a signal."""
        self._pending_bytes[signal] = 0

    def holds(self, place: Place) -> bool:
        """Tell whether the records of the segment at a place are here."""
        return place in self._segments

    def get(self, place: Place, signal: str) -> SegmentRecords | None:
        """Return what is kept, which the signal then has."""
        mapped = self._segments.get(place)
        if mapped is not None:
            self._segments.move_to_end(place)
            self._settle(signal, mapped)
        return mapped

    def put(self, place: Place, mapped: SegmentRecords) -> None:
        """Keep records that no signal has yet; the oldest ones make room."""
        mapped.pending = set(self._pending_bytes)
        for signal in mapped.pending:
            self._pending_bytes[signal] += mapped.size
        self._segments[place] = mapped
        self._size += mapped.size
        while self._size > _CACHE_BYTES_MAX and len(self._segments) > 1:
            oldest = next(
                (place for place, one in self._segments.items() if not one.pending), next(iter(self._segments))
            )
            dropped = self._segments.pop(oldest)
            self._size -= dropped.size
            for signal in tuple(dropped.pending):
                self._settle(signal, dropped)

    async def wait(self, signal: str) -> None:
        """Wait until the other signals have caught up; those that do not within two seconds are not awaited again."""
        end = time.monotonic() + _WAIT_SECONDS
        while behind := [
            other
            for other, pending in self._pending_bytes.items()
            if pending > _PENDING_BYTES_MAX and other not in {signal, *self._not_awaited}
        ]:
            if time.monotonic() >= end:
                self._not_awaited.update(behind)
                return
            await asyncio.sleep(_POLL_SECONDS)

    def _settle(self, signal: str, mapped: SegmentRecords) -> None:
        if signal in mapped.pending:
            mapped.pending.discard(signal)
            self._pending_bytes[signal] -= mapped.size
            if self._pending_bytes[signal] <= _PENDING_BYTES_MAX:
                self._not_awaited.discard(signal)


class Machine(Protocol):
    """Makes the records of one session. The same events always lead to the same records."""

    @property
    def open(self) -> bool:
        """Tell whether something has begun that only a later event, or the end of the process, will finish."""

    def take(self, lines: Sequence[bytes], observed_ns: int, first: int = 0) -> Mapping[str, list[Record]]:
        """Return the records of events, the first of which has this number."""

    def skip(self, lines: Sequence[bytes]) -> None:
        """Take events whose records are not needed."""

    def process_died(self, observed_ns: int, error: str) -> Mapping[str, list[Record]]:
        """Return the records of what is open, which nothing else will finish."""

    @property
    def under_way(self) -> str | None:
        """The event that began what is open, None when nothing is."""

    def is_since(self, line: bytes, since: float) -> bool:
        """Tell whether an event happened at a time, in seconds since 1970, or after it."""

    def begins_anew(self, line: bytes) -> bool:
        """Tell whether an event says that the process which began all that is open runs no more."""


class Mapper:
    """The machines of all sessions for the signals of one endpoint, which share what was mapped already."""

    def __init__(self, reader: SegmentReader, make: Callable[[SessionFile], Machine]) -> None:
        self.shared = False
        self._reader = reader
        self._make = make
        self._machines: OrderedDict[Place, Machine] = OrderedDict()
        self.cache = RecordCache()
        self._ended: dict[Place, SegmentRecords] = {}
        self._closed: dict[SessionFile, Place] = {}
        self._beginning: tuple[tuple[SessionFile, int, float], Position] | None = None
        self._locks: dict[SessionFile, asyncio.Lock] = {}

    async def records(self, signal: str, file: SessionFile, position: Position) -> SegmentRecords | None:
        """Return the records of the next events from `position`, which the signal then has; None at the end."""
        place = (file, file.generation, position.offset)
        if not self.cache.holds(place):
            await self.cache.wait(signal)
        async with self._locks.setdefault(file, asyncio.Lock()):
            made = self.cache.get(place, signal)
            if made is None and await self._map(place, position):
                made = self.cache.get(place, signal)
        return made

    async def ending(self, file: SessionFile, position: Position, error: str) -> SegmentRecords | None:
        """Return the records of what is still open at the end of a file that is over, for this reason."""
        place = (file, file.generation, position.offset)
        if place not in self._ended:
            if self._closed.get(file) == place:
                return None
            async with self._locks.setdefault(file, asyncio.Lock()):
                machine = await self._machine(place)
                if machine is None:
                    return None
                self._put_back(place, machine)
                if place not in self._ended:
                    mapped = SegmentRecords(Segment(position, position))
                    if machine.open:
                        mapped.add(machine.process_died(time.time_ns(), error))
                    self._ended = {other: one for other, one in self._ended.items() if other[0] is not file}
                    self._ended[place] = mapped
        return self._ended[place]

    def forget(self, file: SessionFile) -> None:
        """Release what is kept for a session that will hardly go on; if it does, it is read from its first event."""
        for place in [place for place, one in self._machines.items() if place[0] is file and not one.open]:
            del self._machines[place]
            self._closed[file] = place

    async def beginning(self, file: SessionFile, since: float) -> Position:
        """Return where what happened from a time on begins in a file.

        What was under way then goes whole, and so does a session in which nothing had been asked by then.
        """
        key = (file, file.generation, since)
        async with self._locks.setdefault(file, asyncio.Lock()):
            if self._beginning is None or self._beginning[0] != key:
                self._beginning = (key, await self._find_beginning(file, since))
            return self._beginning[1]

    async def _find_beginning(self, file: SessionFile, since: float) -> Position:
        machine, position, generation = self._make(file), START, file.generation
        begins: tuple[Segment, int] | None = None
        began: str | None = None
        while (source := await self._reader.segment(file, position)) is not None and generation == file.generation:
            for number, line in enumerate(source.lines):
                if machine.is_since(line, since):
                    if began is None:
                        return START
                    is_under_way = machine.under_way == began and not machine.begins_anew(line)
                    machine.skip([line])
                    is_under_way = is_under_way and machine.under_way in (None, began)  # else it ended with this one
                    return await self._at(file, *(begins if begins and is_under_way else (source, number)))
                machine.skip([line])
                if machine.under_way not in (None, began):
                    began, begins = machine.under_way, (source, number)
            position = source.end
            await asyncio.sleep(0)
        if generation != file.generation or began is None:
            return START
        return await self._at(file, *begins) if begins and machine.under_way == began else position

    async def _at(self, file: SessionFile, source: Segment, number: int) -> Position:
        """Return the position before an event of a segment."""
        if not number:
            return source.start
        before = await self._reader.segment(file, source.start, limits=(number, BYTES_MAX))
        return before.end if before is not None else source.start

    def may_be_open(self, file: SessionFile) -> bool:
        """Tell whether a session has begun something that its process did not finish yet, or nobody has looked."""
        machines = [machine for place, machine in self._machines.items() if place[0] is file]
        return any(machine.open for machine in machines) if machines else file not in self._closed

    async def _map(self, place: Place, position: Position) -> bool:
        """Map the segment at a place and keep its records; return whether there is one."""
        file, generation, _ = place
        # More is mapped at once than is read for others: of many events only some become records.
        bounds = (EVENTS_MAX if self.shared else _EVENTS_MAX, BYTES_MAX)
        source = await self._reader.segment(file, position, shared=self.shared, limits=bounds)
        machine = await self._machine(place) if source is not None else None
        if source is None or machine is None:
            return False
        if generation != file.generation:
            self._put_back(place, machine)
            return False
        mapped = SegmentRecords(replace(source, lines=[], live=[], usage=[]))
        for first, lines in _slices(source, source.end.offset):
            await asyncio.sleep(0)
            mapped.add(machine.take(lines, time.time_ns(), min(first, max(0, len(source.lines) - 1))))
        self._put_back((file, generation, source.end.offset), machine)
        self.cache.put(place, mapped)
        return True

    async def _machine(self, place: Place) -> Machine | None:
        """Return the machine that stands at a place, and take it away from there; None when the file has changed."""
        machine = self._machines.pop(place, None)
        if machine is not None:
            return machine
        file, generation, offset = place
        machine, position = self._make(file), START
        while position.offset < offset:
            source = await self._reader.segment(file, position)
            if source is None or file.generation != generation:
                return None
            for _, lines in _slices(source, offset):
                await asyncio.sleep(0)
                machine.skip(lines)
            position = source.end
        return machine

    def _put_back(self, place: Place, machine: Machine) -> None:
        """Keep a machine at its place; the oldest ones go, sooner when nothing is open in them."""
        self._machines[place] = machine
        closed = [other for other, one in self._machines.items() if not one.open]
        gone = closed[: max(0, len(closed) - _CLOSED_MACHINES_MAX)]
        if not gone and len(self._machines) > _MACHINES_MAX:
            gone = [next(iter(self._machines))]
        for one in gone:
            if self._machines.pop(one).open:
                self._closed.pop(one[0], None)
            else:
                self._closed[one[0]] = one
            if not any(other[0] is one[0] for other in self._machines):
                self._locks.pop(one[0], None)


def _slices(source: Segment, end: int) -> Iterator[tuple[int, Sequence[bytes]]]:
    """Yield the events of a segment before an offset in slices, and between them what is kept beside them.

    Each comes with the number of the first event.
    """
    first, before = 0, bisect_left(source.offsets, end)
    beside = [(number, line) for number, offset, line in source.usage if offset < end]
    for number, line in (*beside, (before, None)):
        while first < number:
            until = min(number, first + _SLICE_EVENTS)
            yield first, source.lines[first:until]
            first = until
        if line is not None:
            yield number, [line]


class RecordFeed(Feed):
    """The feed of one signal: the records that a mapper makes of events, which other signals share.

    `repeats` says that its records do not belong to one event each, so that one of them may come up a second time.
    Of metrics, `pack` makes the records of a segment into what `sums` counts. `endings` says which sessions are over.
    """

    holds_events = False

    def __init__(
        self,
        mapper: Mapper,
        signal: str,
        *,
        repeats: bool = True,
        pack: Pack | None = None,
        sums: FeedSums = Feed.sums,
        endings: "Endings | None" = None,
    ) -> None:
        self._endings = endings or Endings()
        self.sums = sums
        self.reads_with = self._mapper = mapper
        self._signal = signal
        self._repeats = repeats
        self._pack = pack
        self._since: Callable[[str], float] = lambda _: 0.0
        self._passed: Callable[[str], None] = lambda _: None
        mapper.cache.join(signal)

    def begin_at(self, since: Callable[[str], float], passed: Callable[[str], None]) -> None:
        """See `Feed`."""
        self._since, self._passed = since, passed

    async def next(self, file: SessionFile, walk: Walk, after: Segment | None, limits: BatchLimits) -> Segment | None:
        """Return the records of as many events as are mapped at once; some segments hold none."""
        position = after.end if after else walk.position
        if position == START and (since := self._since(file.session)):
            begins = await self._mapper.beginning(file, since)
            if begins != START:
                self._passed(file.session)
                return Segment(START, begins, is_passed=True)
        return self._segment(await self._mapper.records(self._signal, file, position), walk)

    async def ending(self, file: SessionFile, walk: Walk) -> Segment | None:
        """Return the records of what was left open, if there are any."""
        error = self._endings.of(file) if walk.ended != walk.position.offset else None
        if error is None:
            return None
        walk.ended = walk.position.offset
        segment = self._segment(await self._mapper.ending(file, walk.position, error), walk)
        return segment if segment is not None and segment.ids else None

    def _segment(self, made: SegmentRecords | None, walk: Walk) -> Segment | None:
        return made.segment(self._signal, walk.skip or (), self._pack) if made is not None else None

    def is_left_open(self, file: SessionFile) -> bool:
        """See `Feed`."""
        return self._mapper.may_be_open(file) and self._endings.of(file) is not None

    def forget(self, file: SessionFile) -> None:
        """See `Mapper.forget`."""
        self._mapper.forget(file)

    def skip(self, delivered: Callable[[], Container[str]]) -> Container[str] | None:
        """Skip what was sent: a span that is open at the mark may have been sent by an earlier exporter."""
        return delivered() if self._repeats else None

    def known(self, delivered: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Take the sink to have what it was sent: records that are sent again are there twice."""
        return delivered

    def taken(self, segment: Segment, ids: Sequence[str]) -> tuple[int, str | None]:
        """Return the number of events that the records were made of, and the last of those."""
        return segment.events, segment.last_id


@dataclass(frozen=True, slots=True)
class Endings:
    """Says which sessions are over although no event says so."""

    holders: Holders = field(default_factory=Holders)
    abandoned_seconds: float = 86_400.0

    def of(self, file: SessionFile) -> str | None:
        """Return the error type of what a session that is over left open, None if it may go on.

        Its process crashed; or nobody can tell, and nothing has happened for long.
        """
        still = time.time() - file.modified
        if still < _CRASHED_SECONDS or (file.is_journal and (file.left is None or still < self.abandoned_seconds)):
            return None  # the server of a journal may still say how the session ended
        liveness = file.left or self.holders.of(file.directory)
        if liveness is Liveness.GONE:
            return "process_crash"
        limit = {Liveness.CLOSED: _CLOSED_SECONDS, Liveness.UNKNOWN: self.abandoned_seconds}.get(liveness)
        return "session_abandoned" if limit is not None and still >= limit else None
