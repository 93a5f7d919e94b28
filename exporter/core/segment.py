"""A run of a session file, made ready to send: read, decoded, redacted, in file order.

A segment ends at its limits (events and bytes), so that it is one batch for a receiver at the floor of the wire.
Several sinks may hold the same segment; nobody changes it once it is finished.
"""

import hashlib
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

from exporter.core.envelope import REFUSALS, Envelope, Piece, Unreadable, decode_ascii, is_utf8, pieces, usable_id
from exporter.core.lines import Oversized
from exporter.core.position import Position, tail_hash
from exporter.core.redacted import Masked, RedactEvent, Refused

EVENTS_MAX: Final = 500
BYTES_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Unsendable:
    """Bytes that go to quarantine instead of to a sink: their place, reason, and id where one is known."""

    offset: int
    raw: bytes
    size: int
    reason: str
    id: str | None


@dataclass(slots=True)
class Segment:
    """Events between two positions of a file. `ids`, `lines` and `offsets` run in parallel."""

    start: Position
    end: Position
    ids: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    unsendable: list[Unsendable] = field(default_factory=list)
    live: list[bytes] = field(default_factory=list)
    masked: Counter[str] = field(default_factory=Counter)
    chain_breaks: int = 0
    ephemeral: int = 0
    skipped: int = 0
    size: int = 0
    last_timestamp: str = ""
    _hashes: list[bytes] = field(default_factory=list)

    def hashes(self) -> list[bytes]:
        """Return the SHA-256 of every event as delivered, computed once."""
        if len(self._hashes) != len(self.lines):
            sha256 = hashlib.sha256
            self._hashes = [sha256(line).digest() for line in self.lines]
        return self._hashes


class SegmentBuilder:
    """Fills one segment from whole lines; `take` until it is full, then `finish`.

    `skip` holds ids that this reader's sink has already: their events are passed over without being redacted.
    `keep_live` asks for redacted ephemeral events as well, which are never part of what is delivered.
    """

    def __init__(
        self,
        start: Position,
        redact: RedactEvent,
        *,
        last_id: str | None = None,
        skip: Container[str] = frozenset(),
        keep_live: bool = False,
        seen: set[str] | None = None,
    ) -> None:
        self.segment = Segment(start, start)
        self.offset = start.offset
        self.last_id = last_id
        self._redact = redact
        self._skip = skip
        self._keep_live = keep_live
        self._seen = seen
        self._closed = False

    @property
    def full(self) -> bool:
        """Tell whether the segment has reached one of its limits."""
        return self._closed or self.segment.size >= BYTES_MAX or len(self.segment.ids) >= EVENTS_MAX

    def take(self, lines: list[bytes | Oversized], index: int, until: int) -> int:
        """Take lines from `index` up to `until` while there is room; return the index of the first not taken."""
        segment = self.segment
        size_left = BYTES_MAX - segment.size
        events_left = EVENTS_MAX - len(segment.ids)
        while index < until and events_left > 0:
            line = lines[index]
            if isinstance(line, Oversized):
                self._unsendable(line.offset, line.head, line.size, "line_too_long", None)
                self.offset = line.offset + line.size + 1
                self.last_id = None
                index += 1
                continue
            if segment.ids and len(line) > size_left:
                self._closed = True  # what does not fit begins the next segment
                break
            before = segment.size
            self._line(line)
            self.offset += len(line) + 1
            size_left -= segment.size - before
            events_left = EVENTS_MAX - len(segment.ids)
            index += 1
        return index

    def finish(self, tail: bytes) -> Segment:
        """Close the segment at the last line taken; `tail` are the raw bytes before that place."""
        self.segment.end = Position(self.offset, tail_hash(tail))
        return self.segment

    def _line(self, line: bytes) -> None:
        try:
            envelope = decode_ascii(line)
        except REFUSALS:
            self._pieces(line)
            return
        if usable_id(envelope.id) and (line.isascii() or is_utf8(line)):
            self._event(self.offset, line.strip(b" \t\r"), envelope)
        else:
            self._pieces(line)

    def _pieces(self, line: bytes) -> None:
        for piece in pieces(line):
            if isinstance(piece.envelope, Unreadable):
                self._rubbish(piece, piece.envelope)
            else:
                self._event(self.offset + piece.start, piece.raw, piece.envelope)

    def _rubbish(self, piece: Piece, why: Unreadable) -> None:
        self._unsendable(self.offset + piece.start, piece.raw, len(piece.raw), why.reason, why.id)
        self.last_id = None

    def _event(self, offset: int, raw: bytes, envelope: Envelope) -> None:
        segment = self.segment
        identity = envelope.id
        if envelope.parentId != self.last_id and self.last_id is not None:
            segment.chain_breaks += 1
        self.last_id = identity
        if envelope.ephemeral:
            segment.ephemeral += 1
            if self._keep_live:
                shown = self._redact(raw)
                if not isinstance(shown, Refused):
                    segment.live.append(shown.line if isinstance(shown, Masked) else shown)
            return
        if self._seen is not None:
            self._seen.add(identity)
        if identity in self._skip:
            segment.skipped += 1
            return
        line = self._redact(raw)
        if line is not raw:
            if isinstance(line, Refused):
                self._unsendable(offset, raw, len(raw), line.reason, identity)
                return
            if isinstance(line, Masked):
                segment.masked.update(line.rules)
                line = line.line
        segment.ids.append(identity)
        segment.lines.append(line)
        segment.offsets.append(offset)
        segment.size += len(line) + 1
        segment.last_timestamp = envelope.timestamp

    def _unsendable(self, offset: int, raw: bytes, size: int, reason: str, identity: str | None) -> None:
        self.segment.unsendable.append(Unsendable(offset, raw, size, reason, identity))
