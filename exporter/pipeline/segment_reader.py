"""From a place in a session file to a segment ready to send, read and redacted once for all sinks at that place."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Container
from functools import partial
from typing import Final

from exporter.core.delivery.position import Position
from exporter.core.delivery.segment import BYTES_MAX, EVENTS_MAX, Segment, SegmentBuilder
from exporter.core.events.envelope import Envelope, decode
from exporter.core.events.redaction import Redacted, RedactEvent, Verdicts
from exporter.core.events.tool_calls import CALL_TYPES, Commands, ToolCalls, unreadable
from exporter.pipeline.redaction_helper import Offer, RedactionHelper
from exporter.sources.files.session_file import OpenFiles, PastChangedError, Reader, SessionFile, starts_before

_READERS_MAX: Final = 8
_LINES_PER_SLICE: Final = 32
# A slice that was done this fast may be longer the next time.
_FAST_SECONDS: Final = 0.0005
_LINES_PER_SLICE_MAX: Final = 512
_SLICE_SECONDS: Final = 0.005
_LINES_BEFORE_MEETING: Final = 16
"""So many lines are taken before the helper is asked again how far it has come."""
_CALLS_MAX: Final = 16_384
"""Calls that are remembered of a reading. What is not, is looked up: each answer without a call would read 16 MiB."""
_SEGMENT_BYTES, _EVENT_BYTES = 2_000, 300
"""What a segment takes in memory beside the bytes of its events; live ones hold an event or two."""


class SegmentReader:
    """Reads segments. Work is done in slices of some milliseconds, so that the event loop stays responsive.

    `commands` print secrets, and what they print is masked; of each reading up to `calls_max` calls are remembered.
    `calls_unknown` counts the answers whose call was found nowhere. `helper` redacts ahead where there is a backlog.

    Segments are kept for other sinks up to `cache_bytes` in all; a sink further behind than that reads alone until
    it stands where the others stand.
    """

    def __init__(
        self,
        files: OpenFiles,
        redact: RedactEvent,
        *,
        line_bytes_max: int,
        cache_bytes: int,
        commands: Commands | None = None,
        calls_max: int = _CALLS_MAX,
        helper: RedactionHelper | None = None,
    ) -> None:
        self.files = files
        self.events_read = 0
        self.calls_unknown = 0
        self._redact = redact
        self._helper = helper
        self._commands = commands
        self._calls_max = calls_max
        self._line_bytes_max = line_bytes_max
        self._cache_bytes_max = cache_bytes
        self._cache_bytes = 0
        self._cache: OrderedDict[tuple[SessionFile, int, Position], Segment] = OrderedDict()
        self._making: dict[tuple[SessionFile, int, Position], asyncio.Event] = {}
        self._readers: OrderedDict[tuple[SessionFile, Position], Reader] = OrderedDict()

    def check(self, file: SessionFile, position: Position) -> bool:
        """Tell whether the bytes before a position are still the same; False also notes that the file changed."""
        if Reader(file, self.files, position, self._line_bytes_max).past_is_same():
            return True
        file.rewritten(self.files)
        return False

    async def segment(
        self,
        file: SessionFile,
        position: Position,
        *,
        shared: bool = False,
        keep_live: bool = False,
        skip: Container[str] | None = None,
        seen: set[str] | None = None,
        limits: tuple[int, int] = (EVENTS_MAX, BYTES_MAX),
    ) -> Segment | None:
        """Return the next segment from `position`, None at the end of the file.

        When the file's past has changed, the file's generation is moved on and None is returned: the caller
        compares generations. `shared` keeps the segment for other sinks.
        """
        events_max, bytes_max = limits
        build = partial(
            SegmentBuilder,
            redact=self._redact,
            events_max=events_max,
            bytes_max=bytes_max,
            skip=skip,
            keep_live=keep_live,
            seen=seen,
        )
        return await (self._make_once if shared else self._make)(file, position, build)

    async def _make_once(
        self, file: SessionFile, position: Position, build: Callable[[Position], SegmentBuilder]
    ) -> Segment | None:
        key = (file, file.generation, position)
        while (making := self._making.get(key)) is not None:
            await making.wait()
        if (kept := self._cache.get(key)) is not None:
            return kept
        making = self._making[key] = asyncio.Event()
        try:
            made = await self._make(file, position, build)
        finally:
            del self._making[key]
            making.set()
        if made is not None:
            self._cache[key] = made
            self._cache_bytes += kept_bytes(made)
            while self._cache_bytes > self._cache_bytes_max and len(self._cache) > 1:
                self._cache_bytes -= kept_bytes(self._cache.popitem(last=False)[1])
        return made

    async def _make(
        self, file: SessionFile, position: Position, build: Callable[[Position], SegmentBuilder]
    ) -> Segment | None:
        reader = self._reader(file, position)
        builder = build(position if position.offset >= file.begins else reader.position)
        builder.calls = self._calls_of(reader, builder.start.offset)
        try:
            tail = await self._fill(reader, builder)
        except PastChangedError:
            file.rewritten(self.files)
            return None
        finally:
            self._count_unknown(reader.calls)
        if reader.generation != file.generation:
            return None
        segment = builder.finish(tail) if tail is not None else None
        self._put_back(reader, position if segment is None else segment.end)
        return segment

    def redacted(self, file: SessionFile | None, offset: int, raw: bytes) -> Redacted:
        """Return a single event of a file redacted as in its place there; without a file its call is unknown."""
        shown, envelope = self._redact(raw), decode(raw)
        if self._commands is None or not isinstance(envelope, Envelope) or envelope.type not in CALL_TYPES:
            return shown
        calls = self.calls_before(file, offset)
        shown = calls.answered(envelope, offset, raw, shown)
        self._count_unknown(calls)
        return shown

    def calls_before(self, file: SessionFile | None, offset: int) -> ToolCalls:
        """Return the tool calls of a file before an event; without a file none can be looked up."""
        assert self._commands is not None
        if file is None:
            return ToolCalls(self._commands, offset + 1, unreadable)
        look_up = partial(starts_before, file, self.files, line_bytes_max=self._line_bytes_max)
        return ToolCalls(self._commands, offset, look_up, memory_max=self._calls_max)

    def _calls_of(self, reader: Reader, offset: int) -> ToolCalls | None:
        if reader.calls is None and self._commands is not None:
            reader.calls = self.calls_before(reader.file, offset)
        return reader.calls

    def _count_unknown(self, calls: ToolCalls | None) -> None:
        if calls is not None:
            self.calls_unknown += calls.unknown
            calls.unknown = 0

    async def _fill(self, reader: Reader, builder: SegmentBuilder) -> bytes | None:
        """Fill the builder; return the raw bytes before the place reached, None when there was nothing to read."""
        tail: bytes | None = None
        begun = time.perf_counter()
        slice_end, lines_per_slice = begun + _SLICE_SECONDS, _LINES_PER_SLICE
        while not builder.full and reader.fill():
            builder.verdicts = verdicts = self._verdicts(reader, builder)
            chunk, at_once = reader.chunk, lines_per_slice
            if verdicts is not None:
                at_once = _LINES_PER_SLICE_MAX if verdicts.states[reader.index] else _LINES_BEFORE_MEETING
            until = min(len(chunk.lines), reader.index + at_once)
            index = builder.take(chunk.lines, reader.index, until, is_ascii=chunk.is_ascii)
            if index == reader.index:
                break
            self.events_read += index - reader.index
            tail = reader.take(index)
            if self._helper is not None and isinstance(offer := chunk.verdicts, Offer):
                self._helper.taken(offer, index)
            now = time.perf_counter()
            fast = now - begun < _FAST_SECONDS
            lines_per_slice = min(lines_per_slice * 4, _LINES_PER_SLICE_MAX) if fast else _LINES_PER_SLICE
            begun = now
            if now > slice_end:
                await asyncio.sleep(0)
                begun = time.perf_counter()
                slice_end = begun + _SLICE_SECONDS
                if reader.generation != reader.file.generation:
                    break
        return tail

    def _verdicts(self, reader: Reader, builder: SegmentBuilder) -> Verdicts | None:
        """Return what the helper has told so far of the lines at hand; let it go ahead of a reader in a backlog."""
        helper = self._helper
        if helper is None or builder.skip is not None or builder.seen is not None:
            return None
        if reader.index == 0 and helper.has_room():
            if reader.chunk.verdicts is None and len(reader.chunk.lines) > _LINES_PER_SLICE:
                reader.chunk.verdicts = helper.offer(reader.chunk.lines)
            while helper.has_room() and (chunk := reader.read_ahead()) is not None:
                if (verdicts := helper.offer(chunk.lines)) is None:
                    break
                chunk.verdicts = verdicts
        offer = reader.chunk.verdicts
        return helper.look(offer) if isinstance(offer, Offer) else None

    def _reader(self, file: SessionFile, position: Position) -> Reader:
        reader = self._readers.pop((file, position), None)
        if reader is None or reader.generation != file.generation:
            if position.offset < file.begins:
                return Reader.from_first(file, self.files, self._line_bytes_max)
            reader = Reader(file, self.files, position, self._line_bytes_max)
        return reader

    def _put_back(self, reader: Reader, position: Position) -> None:
        self._readers[(reader.file, position)] = reader
        while len(self._readers) > _READERS_MAX:
            self._readers.popitem(last=False)

    def held_bytes(self, file: SessionFile, position: Position) -> int:
        """Return how many bytes of an unfinished line stand after `position`, as far as is known."""
        reader = self._readers.get((file, position))
        return reader.held if reader is not None and reader.generation == file.generation else 0


def kept_bytes(segment: Segment) -> int:
    """Return about how much memory a segment takes."""
    return segment.size + _SEGMENT_BYTES + _EVENT_BYTES * len(segment.ids)
