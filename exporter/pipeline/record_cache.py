"""What was made of the latest segments, for all the signals that are to be sent it."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from exporter.core.delivery.segment import Segment
from exporter.sources.files.session_file import SessionFile

_CACHE_BYTES_MAX: Final = 12 << 20
_RECORD_BYTES: Final = 300
_PENDING_BYTES_MAX: Final = 8 << 20
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
        """Return the records of one signal, without those whose ids are in `skip`; see `Mapper.segment`."""
        source, records = self.source, self.records.get(signal, [])
        seen = {name for _, name, _ in records}
        chosen = [record for record in records if record[1] not in skip] if skip else records
        numbers, ids, contents = zip(*chosen, strict=True) if chosen else ((), (), ())
        lines = list(contents) if pack is None or not chosen else [pack(contents), *[b""] * (len(chosen) - 1)]
        return Segment(
            source.start,
            source.end,
            list(ids),
            lines,
            [source.offsets[index] if source.offsets else source.start.offset for index in numbers],
            source.unsendable,
            seen=seen,
            masked=source.masked,
            chain_breaks=source.chain_breaks,
            ephemeral=source.ephemeral,
            size=source.size,
            events=source.events,
            last_id=source.last_id,
        )


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
        """Wait until the other signals have caught up, or for so long that they hold this one up no more."""
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
