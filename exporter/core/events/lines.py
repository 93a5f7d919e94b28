"""Cuts the chunks of a file into whole lines, on newline bytes only.

It is the hottest loop of the program, so it works on chunks: one `split` per chunk, and the rest of the work is done
once per chunk, not once per line. `splitlines` would also cut at carriage returns, which are content here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

HEAD_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Oversized:
    """A whole line longer than the limit: where it begins, its length without the newline, and its first 64 KiB."""

    offset: int
    size: int
    head: bytes = field(repr=False)


class LineSplitter:
    """Gives whole lines, in order, however the chunks are cut; holds the bytes that have no newline yet.

    It never holds more than the longer of `line_bytes_max` and 64 KiB: of a longer line only the head is kept and the
    rest is counted.

    `offset` is the file offset right after the last whole line, which is where the held bytes begin. `held` is how
    many bytes of an unfinished line have been fed so far, the skipped ones included.
    """

    __slots__ = ("_kept", "_line_bytes_max", "held", "offset")

    def __init__(self, offset: int, line_bytes_max: int) -> None:
        """Expects the first chunk to begin at `offset` of the file, which is the start of a line."""
        self.offset = offset
        self._line_bytes_max = line_bytes_max
        self.held = 0
        self._kept = bytearray()

    def head(self, size: int) -> bytes:
        """Return up to so many bytes that the unfinished line begins with."""
        return bytes(self._kept[:size])

    def feed(self, chunk: bytes) -> list[bytes | Oversized]:
        """Returns the lines that `chunk` finishes, without their newlines."""
        parts = chunk.split(b"\n")
        tail = parts.pop()
        lines: list[bytes | Oversized] = []
        if parts:
            start = self.offset
            self.offset += self.held + len(chunk) - len(tail)
            if self.held:
                first, parts = parts[0], parts[1:]
                start += self.held + len(first) + 1
                lines.append(self._finish(first, start))
            # A chunk within the limit cannot hold a line beyond it, so the usual chunk is not looked at line by line.
            if len(chunk) > self._line_bytes_max:
                lines.extend(self._measured(parts, start))
            else:
                lines.extend(parts)
        if tail:
            self._hold(tail)
        return lines

    def _hold(self, piece: bytes) -> None:
        self.held += len(piece)
        if self.held <= self._line_bytes_max:
            self._kept += piece
        elif len(self._kept) < HEAD_BYTES:
            self._kept += piece[: HEAD_BYTES - len(self._kept)]
        else:
            del self._kept[HEAD_BYTES:]

    def _finish(self, piece: bytes, end: int) -> bytes | Oversized:
        self._hold(piece)
        kept, size = bytes(self._kept), self.held
        self._kept.clear()
        self.held = 0
        return kept if size <= self._line_bytes_max else Oversized(end - 1 - size, size, kept)

    def _measured(self, lines: Sequence[bytes], start: int) -> list[bytes | Oversized]:
        measured: list[bytes | Oversized] = []
        for line in lines:
            fits = len(line) <= self._line_bytes_max
            measured.append(line if fits else Oversized(start, len(line), line[:HEAD_BYTES]))
            start += len(line) + 1
        return measured
