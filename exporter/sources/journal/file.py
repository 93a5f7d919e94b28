"""The file of a journal: lines at its end, a hole at its front."""

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_CHUNK_BYTES: Final = 1 << 20
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02


def begins_of(path: Path) -> int:
    """Return the offset of the first event that a journal still holds, 0 where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return 0
    try:
        return after_hole(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def write(descriptor: int, content: bytes, offset: int) -> None:
    """Write content at an offset, and return once it is on the disk."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
    if content:
        os.fdatasync(descriptor) if hasattr(os, "fdatasync") else os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Make the entries of a directory safe on the disk."""
    if sys.platform == "win32":
        return  # a directory cannot be opened there, and its entries are durable without
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def punch(descriptor: int, end: int) -> bool:
    """Make the file a hole up to `end`; return whether that can be done here."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    mode = _KEEP_SIZE | _PUNCH_HOLE
    return int(library.fallocate(descriptor, mode, ctypes.c_longlong(0), ctypes.c_longlong(end))) == 0


def used_of(path: Path) -> int:
    """Return how many bytes of a file are not in the hole at its front."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return 0
    try:
        size = os.fstat(descriptor).st_size
        return size - _data_begins(descriptor, size)
    finally:
        os.close(descriptor)


def _data_begins(descriptor: int, size: int) -> int:
    if not size or not hasattr(os, "SEEK_DATA"):
        return 0
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except OSError:  # a file system that does not tell
        return 0


def after_hole(descriptor: int, size: int) -> int:
    """Return where the first whole line begins: behind a hole, and what is left of the line it ended in."""
    position = _data_begins(descriptor, size)
    while 0 < position < size:
        chunk = os.pread(descriptor, _CHUNK_BYTES, position)
        found = chunk.find(b"\n")
        if found >= 0:
            return position + found + 1
        position += len(chunk)
    return position


def last_newline(descriptor: int, end: int) -> int:
    """Return the offset of the last newline before `end`, -1 when there is none."""
    while end > 0:
        start = max(0, end - _CHUNK_BYTES)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found
        end = start
    return -1


def lines(descriptor: int, offset: int, end: int) -> Iterator[bytes]:
    """Yield the whole lines between two offsets."""
    rest = b""
    while offset < end:
        chunk = os.pread(descriptor, min(_CHUNK_BYTES, end - offset), offset)
        offset += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
