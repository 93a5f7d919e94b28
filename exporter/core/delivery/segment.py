"""A run of a session file, made ready to send: read, decoded, redacted, in file order.

A segment ends at its limits (events and bytes), so that it is one batch for a receiver at the floor of the wire.
Several sinks may hold the same segment; a finished segment does not change.
"""

import hashlib
from collections import Counter
from collections.abc import Container
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

import xxhash

from exporter.core.delivery.position import Position, tail_hash
from exporter.core.events.envelope import (
    ID_LENGTH_MAX,
    REFUSALS,
    Envelope,
    Piece,
    Unreadable,
    decode,
    decode_envelope,
    is_too_deep,
    is_utf8,
    pieces,
)
from exporter.core.events.json_scanner import DEPTH_MAX
from exporter.core.events.lines import Oversized
from exporter.core.events.live_text import is_piece
from exporter.core.events.redaction import Masked, Redacted, RedactEvent, Refused, Verdicts
from exporter.core.events.tool_calls import CALL_TYPES, ToolCalls
from exporter.core.events.usage import USAGE_KEPT

EVENTS_MAX: Final = 500
BYTES_MAX: Final = 1_000_000
_WHITESPACE: Final = b" \t\r"


def _sha256(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()


@dataclass(frozen=True, slots=True)
class Unsendable:
    """Bytes that go to quarantine instead of to a sink: their place, reason, and id where one is known."""

    offset: int
    raw: bytes = field(repr=False)
    size: int
    reason: str
    id: str | None


@dataclass(slots=True)
class Segment:
    """Events between two positions of a file, or what a sink is sent for them.

    `ids`, `lines` and `offsets` run in parallel. `masked` counts by day and rule. `events` and `last_id` tell of the
    events, also where `ids` are of what was made of them. `usage` has what a journal keeps for telemetry, each with the
    number of events before it and its offset. `is_passed` says that the sink is sent nothing of what lies between.
    """

    start: Position
    end: Position
    ids: list[str] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    unsendable: list[Unsendable] = field(default_factory=list)
    live: list[bytes] = field(default_factory=list)
    usage: list[tuple[int, int, bytes]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    masked: Counter[tuple[str, str]] = field(default_factory=Counter)
    ephemeral: int = 0
    skipped: int = 0
    size: int = 0
    events: int = 0
    last_id: str | None = None
    is_passed: bool = False
    _hashes: dict[bool, list[bytes]] = field(default_factory=dict, init=False)

    def hashes(self, *, for_digest: bool) -> list[bytes]:
        """Return a hash of every event as delivered, computed once.

        A receiver that can prove what it holds does so with SHA-256; towards one at the floor nothing but a change
        of the event has to be told, and 16 bytes of XXH3 do that at a tenth of the cost.
        """
        if for_digest not in self._hashes:
            hashed = _sha256 if for_digest else xxhash.xxh3_128_digest
            self._hashes[for_digest] = list(map(hashed, self.lines))
        return self._hashes[for_digest]

    def without(self, refused: frozenset[int], *, for_digest: bool) -> tuple[list[str], list[bytes]]:
        """Return the ids and the hashes of the events but those at these indices."""
        ids, hashes = self.ids, self.hashes(for_digest=for_digest)
        if refused:
            ids = [identity for index, identity in enumerate(ids) if index not in refused]
            hashes = [one for index, one in enumerate(hashes) if index not in refused]
        return ids, hashes


@dataclass(slots=True)
class SegmentBuilder:
    """Fills one segment from whole lines; `take` until it is full, then `finish`.

    `skip` holds ids that this reader's sink has already: their events are passed over without being redacted.
    `seen` collects the id of every durable event. `keep_live` asks for redacted ephemeral events as well, which are
    never part of what is delivered. `calls` are the tool calls of the lines before; answers of commands that print
    secrets are masked. `verdicts` are those of the same redactor about the lines that are taken next.
    """

    start: Position
    redact: RedactEvent
    _: KW_ONLY
    calls: ToolCalls | None = None
    verdicts: Verdicts | None = None
    events_max: int = EVENTS_MAX
    bytes_max: int = BYTES_MAX
    skip: Container[str] | None = None
    keep_live: bool = False
    seen: set[str] | None = None
    segment: Segment = field(init=False)
    offset: int = field(init=False)
    full: bool = field(default=False, init=False)
    _held_bytes: int = field(default=0, init=False)
    _redacted: Redacted | None = field(default=None, init=False)  # of the line at hand, if another than the line itself

    def __post_init__(self) -> None:
        self.segment, self.offset = Segment(self.start, self.start), self.start.offset

    def take(self, lines: list[bytes | Oversized], index: int, until: int, *, is_ascii: bool = False) -> int:
        """Take lines from `index` up to `until` while there is room; return the index of the first not taken.

        `is_ascii` promises that all of them are ASCII.
        """
        if self.skip is None and self.seen is None:
            index = self._take_clean(lines, index, until, is_ascii)
        self.full = self.full or len(self.segment.ids) >= self.events_max or self.segment.size >= self.bytes_max
        if index < until and not self.full:
            taken = self._take_one(lines[index])
            self.full = self.full or not taken
            index += taken
        return index

    def _take_clean(self, lines: list[bytes | Oversized], index: int, until: int, is_ascii: bool) -> int:
        """Take lines while they are whole events in which nothing is masked: the loop where the time goes."""
        segment, redact, keep_live, verdicts = self.segment, self.redact, self.keep_live, self.verdicts
        calls, call_types = self.calls, CALL_TYPES if self.calls is not None else frozenset[str]()
        ids, events, offsets = segment.ids, segment.lines, segment.offsets
        offset, size = self.offset, segment.size
        until = min(until, index + self.events_max - len(ids))
        while index < until:
            line = lines[index]
            if line.__class__ is not bytes or (ids and size + len(line) > self.bytes_max):
                break
            try:
                envelope = decode_envelope(line)
            except REFUSALS:
                break
            identity = envelope.id
            if not identity.isascii() or not 0 < len(identity) <= ID_LENGTH_MAX:
                break
            if (len(line) > DEPTH_MAX and is_too_deep(line, DEPTH_MAX)) or not (is_ascii or is_utf8(line)):
                break
            if not envelope.ephemeral:
                event = line.strip(_WHITESPACE)
                redacted = redact(event) if verdicts is None else verdicts.redacted(index, event, redact)
                if envelope.type in call_types and calls is not None:
                    redacted = calls.answered(envelope, offset, event, redacted)
                if redacted is not event:
                    self._redacted = redacted
                    break
                ids.append(identity)
                events.append(event)
                offsets.append(offset)
                size += len(line) + 1
            elif keep_live or envelope.type == USAGE_KEPT:
                break
            else:
                segment.ephemeral += 1
            offset += len(line) + 1
            index += 1
        self.offset, segment.size = offset, size
        return index

    def finish(self, tail: bytes) -> Segment:
        """Close the segment at the last line taken; `tail` are the raw bytes before that place."""
        self.segment.end = Position(self.offset, tail_hash(tail))
        self.segment.events = len(self.segment.ids)
        self.segment.last_id = self.segment.ids[-1] if self.segment.ids else None
        return self.segment

    def _take_one(self, line: bytes | Oversized) -> bool:
        """Take one line of any kind; return False when there is no room for what it holds."""
        if isinstance(line, Oversized):
            self._unsendable(line.offset, line.head, line.size, "line_too_long", None)
            self.offset = line.offset + line.size + 1
            return True
        if self.segment.ids and self.segment.size + len(line) > self.bytes_max:
            return False
        envelope = decode(line)
        whole = [Piece(0, line.strip(_WHITESPACE), envelope)] if isinstance(envelope, Envelope) else pieces(line)
        if self.segment.ids and len(self.segment.ids) + len(whole) > self.events_max:
            return False
        for piece in whole:
            offset, raw, envelope = self.offset + piece.start, piece.raw, piece.envelope
            if isinstance(envelope, Unreadable):
                self._unsendable(offset, raw, len(raw), envelope.reason, envelope.id)
            else:
                self._event(offset, raw, envelope)
        self.offset += len(line) + 1
        return True

    def _event(self, offset: int, raw: bytes, envelope: Envelope) -> None:
        segment, identity = self.segment, envelope.id
        if envelope.ephemeral:
            segment.ephemeral += 1
            if envelope.type == USAGE_KEPT:
                segment.usage.append((len(segment.ids), offset, raw))
                return
            # A file holds no text in pieces; if one does, no redactor has seen the pieces joined.
            if self.keep_live and not is_piece(envelope.type):
                self._show(offset, raw, envelope)
            return
        if self.seen is not None:
            self.seen.add(identity)
        if self.skip is not None and identity in self.skip:
            segment.skipped += 1
            if self.calls is not None:
                self.calls.note(envelope, offset)
            return
        line = self._redacted
        self._redacted = None
        if line is None:
            line = self._shown(offset, raw, envelope)
        if isinstance(line, Refused):
            self._unsendable(offset, raw, len(raw), line.reason, identity)
            return
        if isinstance(line, Masked):
            segment.masked.update((envelope.timestamp[:10], rule) for rule in line.rules)
            line = line.line
        segment.ids.append(identity)
        segment.lines.append(line)
        segment.offsets.append(offset)
        segment.size += len(line) + 1

    def _shown(self, offset: int, raw: bytes, envelope: Envelope) -> Redacted:
        shown = self.redact(raw)
        return shown if self.calls is None else self.calls.answered(envelope, offset, raw, shown)

    def _show(self, offset: int, raw: bytes, envelope: Envelope) -> None:
        shown = self._shown(offset, raw, envelope)
        if not isinstance(shown, Refused):
            line = shown.line if isinstance(shown, Masked) else shown
            self.segment.live.append(line)
            self._hold(len(line), len(self.segment.live))

    def _hold(self, size: int, count: int) -> None:
        """End the segment where what is not delivered would fill the memory: rubbish, or shown events."""
        self._held_bytes += size
        self.full = self.full or count >= self.events_max or self._held_bytes >= self.bytes_max

    def _unsendable(self, offset: int, raw: bytes, size: int, reason: str, identity: str | None) -> None:
        self.segment.unsendable.append(Unsendable(offset, raw, size, reason, identity))
        self._hold(len(raw), len(self.segment.unsendable))
