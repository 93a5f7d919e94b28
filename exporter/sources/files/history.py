"""Reads the durable events of a session file once, from its beginning."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from exporter.core.events.envelope import Envelope, decode, pieces
from exporter.core.events.lines import LineSplitter, Oversized

_CHUNK_BYTES: Final = 1 << 20
_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)


def durable_events(path: Path, line_bytes_max: int, begins: int = 0) -> Iterator[tuple[Envelope, bytes]]:
    """Yield the durable events of a file in order, each with its bytes, which are not redacted.

    A path without a readable regular file yields nothing. `begins` is the offset of the first event.
    """
    splitter = LineSplitter(begins, line_bytes_max)
    try:
        # O_NONBLOCK: opening a pipe must not block.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return
            file.seek(begins)
            while chunk := file.read(_CHUNK_BYTES):
                for line in splitter.feed(chunk):
                    if not isinstance(line, Oversized):
                        yield from _events(line)
    except OSError:
        return


def _events(line: bytes) -> Iterator[tuple[Envelope, bytes]]:
    envelope = decode(line)
    if isinstance(envelope, Envelope):
        if not envelope.ephemeral:
            yield envelope, line.strip(b" \t\r")
        return
    for piece in pieces(line):
        if isinstance(piece.envelope, Envelope) and not piece.envelope.ephemeral:
            yield piece.envelope, piece.raw
