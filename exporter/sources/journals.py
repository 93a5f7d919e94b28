"""Journals: files of redacted events for sessions without a file of their own; the file source follows them.

A journal is `<root>/<session>/events.jsonl`. An event is durable in it before its source continues. Space before the
slowest mark is freed by punching a hole at the front of the file: offsets, identity and the bytes before a mark stay
the same, so readers do not notice. On a file system without holes no space is freed, and a full journal stays full
until it is removed.

Events that a session's history no longer has are taken out, and their ids are written to `rewound` beside the journal:
a journal alone does not say whether an event was taken out, cut off, or is still to come.
"""

import ctypes
import os
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import xxhash

from exporter.core.delivery.position import TAIL_BYTES
from exporter.core.events.envelope import Envelope, decode
from exporter.core.names import JOURNALS
from exporter.sources.files.session_file import EVENTS_NAME, SessionFile

_CHUNK_BYTES: Final = 1 << 20
_REWOUND_NAME: Final = "rewound"
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02


def begins_of(path: Path) -> int:
    """Return the offset of the first event that a journal still holds, 0 where there is none."""
    try:
        file = path.open("rb", buffering=0)
    except OSError:
        return 0
    with file:
        return after_hole(file.fileno(), os.fstat(file.fileno()).st_size)


def rewound_of(directory: Path) -> set[str]:
    """Return the ids of the events that were taken out of the journal in a directory."""
    try:
        content = (directory / _REWOUND_NAME).read_bytes()
    except OSError:
        return set()
    return {msgspec.json.decode(line, type=str) for line in content.split(b"\n")[:-1] if line}


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
    """Punch a hole up to `end`; return whether the system supports it."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    mode = _KEEP_SIZE | _PUNCH_HOLE
    return int(library.fallocate(descriptor, mode, ctypes.c_longlong(0), ctypes.c_longlong(end))) == 0


def used_of(path: Path) -> int:
    """Return how many bytes of a file are not in the hole at its front."""
    try:
        file = path.open("rb", buffering=0)
    except OSError:
        return 0
    with file:
        size = os.fstat(file.fileno()).st_size
        return size - _data_begins(file.fileno(), size)


def _data_begins(descriptor: int, size: int) -> int:
    if not size or not hasattr(os, "SEEK_DATA"):
        return 0
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except OSError:  # not supported by the file system
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


OPEN_MAX: Final = 256
_BLOCK_BYTES: Final = 4096


@dataclass(slots=True)
class _Open:
    """What is known of one journal: where its content begins and ends, and which events are in between.

    From `kept` on nothing is cut: there the last event begins, or the last line where there is no event.
    """

    descriptor: int
    begins: int
    size: int
    last: str | None = None
    kept: int = 0
    ids: set[int] = field(default_factory=set)


class Journals:
    """All journals below one directory; for one thread at a time.

    `problem` says why events are refused at present, None if they are accepted. `bytes_max` bounds `used_bytes`,
    the sum of all.
    """

    def __init__(self, root: Path, bytes_max: int) -> None:
        self.problem: str | None = None
        self._root = root
        self._bytes_max = bytes_max
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._large_last: dict[str, int] = {}
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.used_bytes = sum(used_of(path) for path in root.glob(f"*/{EVENTS_NAME}"))

    @property
    def needs_cleanup(self) -> bool:
        """Tell whether space must be freed."""
        return self.used_bytes > self._bytes_max // 2 or self.problem is not None

    @property
    def batch_bytes(self) -> int:
        """Return the preferred size of one append, so that a little space is enough for part of the events."""
        return self._bytes_max // 8

    def has_space(self, size_bytes: int) -> bool:
        """Tell whether there is space for so many bytes; `problem` says why not.

        An event larger than half of the limit is accepted if at most half is used. It does not count while it is the
        last of its session, because the last event is never removed.
        """
        used = self.used_bytes - (sum(self._large_last.values()) if self.used_bytes > self._bytes_max else 0)
        if used + size_bytes <= self._bytes_max or size_bytes > self._bytes_max // 2 >= used:
            return True
        self.problem = f"the journals are full ({self._bytes_max >> 20} MiB): a sink has not accepted their events"
        return False

    def append(self, session: str, events: Sequence[tuple[str, bytes]]) -> bool:
        """Write redacted events, ids with lines, and return once they are on the disk; False when they are not.

        An event that is there already is not written again; one without an id is no event of the session, but what a
        machine needs to know beside it. All are written or none; `problem` then says why.
        """
        journal = self._journal(session)
        new, seen = list[tuple[str, bytes]](), set()
        for id, line in events:
            key = _key(id)
            if not id or (key not in journal.ids and key not in seen):
                new.append((id, line))
                seen.add(key)
        content = b"".join(line + b"\n" for _, line in new)
        if not self.has_space(len(content)):
            return False
        try:
            write(journal.descriptor, content, journal.size)
        except OSError as error:
            self.problem = f"a journal cannot be written: {error.strerror}"
            os.ftruncate(journal.descriptor, journal.size)
            return False
        self.problem = None
        self.used_bytes += len(content)
        journal.ids |= seen
        for id, line in new:
            self._record_last(session, journal, journal.size, line, id)
            journal.size += len(line) + 1
        journal.last = next((id for id, _ in reversed(events) if id), journal.last)
        return True

    def mark(self, session: str) -> str | None:
        """Return the id of the last event of a journal: where its source goes on."""
        return self._journal(session).last if self._is_there(session) else None

    def known(self, session: str, id: str) -> bool:
        """Tell whether an event is in a journal; what was cut off may be forgotten."""
        return self._is_there(session) and _key(id) in self._journal(session).ids

    def begins(self, session: str) -> int:
        """Return the offset of the first event that a journal still holds; the journal is not read for that."""
        return self._open[session].begins if session in self._open else begins_of(self._path(session))

    def cut(self, session: str, slowest: int) -> int:
        """Free the space before `slowest`, the smallest mark of any sink; return the bytes freed.

        The bytes that verify a mark, and the last event, stay.
        """
        if not self._is_there(session):
            return 0
        journal = self._journal(session)
        keep = min(slowest, journal.kept) - TAIL_BYTES
        begins = last_newline(journal.descriptor, keep) + 1
        end = (begins - 1) // _BLOCK_BYTES * _BLOCK_BYTES
        if begins - journal.begins < _BLOCK_BYTES or end <= 0:
            return 0
        if not punch(journal.descriptor, end):
            return 0
        # The rest of the block must not be read as an event; its newline stays and ends it.
        os.pwrite(journal.descriptor, b"\0" * (begins - 1 - end), end)
        freed, journal.begins = begins - journal.begins, begins
        self.used_bytes -= freed
        return freed

    def rewind(self, session: str, history: Set[str], delivered: Iterable[str]) -> bool:
        """Take out the events that are not in the session's history; return whether there were any.

        `delivered` are events that may have been cut off.
        """
        if not self._is_there(session):
            return False
        journal = self._journal(session)
        gone, kept = dict.fromkeys(id for id in delivered if id not in history), list[bytes]()
        offset, first, is_gone = journal.begins, None, False
        for line in lines(journal.descriptor, journal.begins, journal.size):
            envelope = decode(line)
            if isinstance(envelope, Envelope) and not envelope.ephemeral:
                is_gone = envelope.id not in history
            if isinstance(envelope, Envelope) and is_gone:  # what is kept beside an event goes with it
                if not envelope.ephemeral:
                    gone[envelope.id] = None
                first = offset if first is None else first
            elif first is not None:
                kept.append(line + b"\n")
            offset += len(line) + 1
        if not gone:
            return False
        self._record_rewound(session, gone)
        if first is not None:  # after a crash in between, what follows `first` is read from the source again
            try:
                os.ftruncate(journal.descriptor, first)
                write(journal.descriptor, b"".join(kept), first)
            finally:  # after an error, too, what is on the disk counts
                self.used_bytes -= journal.size - os.fstat(journal.descriptor).st_size
                self._large_last.pop(session, None)
                self._close(session)
        return True

    def _record_rewound(self, session: str, ids: Iterable[str]) -> None:
        path = self._path(session).with_name(_REWOUND_NAME)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            end = last_newline(descriptor, os.fstat(descriptor).st_size) + 1
            write(descriptor, b"".join(msgspec.json.encode(id) + b"\n" for id in ids), end)
        finally:
            os.close(descriptor)
        sync_directory(path.parent)

    def remove(self, session: str) -> None:
        """Remove a journal whose session is over and whose events every sink has."""
        path = self._path(session)
        self._large_last.pop(session, None)
        self.used_bytes -= used_of(path)
        self._close(session)
        path.unlink(missing_ok=True)
        path.with_name(_REWOUND_NAME).unlink(missing_ok=True)
        with suppress(OSError):  # the directory has other files
            path.parent.rmdir()

    def close(self) -> None:
        """Close every file."""
        for session in list(self._open):
            self._close(session)

    def _is_there(self, session: str) -> bool:
        return session in self._open or self._path(session).exists()

    def _path(self, session: str) -> Path:
        return self._root / session / EVENTS_NAME

    def _journal(self, session: str) -> _Open:
        journal = self._open.get(session)
        if journal is None:
            while len(self._open) >= OPEN_MAX:
                self._close(next(iter(self._open)))
            journal = self._open[session] = self._read(session)
        self._open.move_to_end(session)
        return journal

    def _read(self, session: str) -> _Open:
        path = self._path(session)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        is_new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        if is_new:
            sync_directory(path.parent)
            sync_directory(self._root)
        size = os.fstat(descriptor).st_size
        whole = last_newline(descriptor, size) + 1
        if whole < size:  # a crash during a write; the source was not acknowledged
            os.ftruncate(descriptor, whole)
            self.used_bytes -= size - whole
        journal = _Open(descriptor, after_hole(descriptor, whole), whole)
        offset = journal.begins
        for line in lines(descriptor, journal.begins, whole):
            envelope = decode(line)
            id = envelope.id if isinstance(envelope, Envelope) and not envelope.ephemeral else ""
            self._record_last(session, journal, offset, line, id)
            if id:
                journal.ids.add(_key(id))
            offset += len(line) + 1
        return journal

    def _record_last(self, session: str, journal: _Open, offset: int, line: bytes, id: str) -> None:
        """Record one line more; one without an id is no event, and does not take the place of the last one."""
        if not id and journal.last is not None:
            return
        journal.last, journal.kept = id or None, offset
        self._large_last.pop(session, None)
        if len(line) > self._bytes_max // 2:
            self._large_last[session] = len(line)

    def _close(self, session: str) -> None:
        journal = self._open.pop(session, None)
        if journal is not None:
            os.close(journal.descriptor)


def session_file(roots: Sequence[Path], state_dir: Path, session: str) -> SessionFile:
    """Return where a session's events are to be read: its own file, or its journal when it has only that."""
    owns, journal = [root / session for root in roots], state_dir / JOURNALS / session
    own = next((one for one in owns if (one / EVENTS_NAME).exists()), owns[0] if owns else journal)
    if (own / EVENTS_NAME).exists() or not (journal / EVENTS_NAME).exists():
        return SessionFile(session, own)
    file = SessionFile(session, journal, is_journal=True)
    file.begins = begins_of(file.path)
    return file


def _key(id: str) -> int:
    return xxhash.xxh3_64_intdigest(id.encode(errors="surrogatepass"))
