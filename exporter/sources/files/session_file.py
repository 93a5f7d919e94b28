"""One session's event file: which file the path names now, reading whole lines from it, and reading it once."""

import errno
import os
import stat
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exporter.core.delivery.position import START, TAIL_BYTES, Identity, Position, rewritten, tail_hash
from exporter.core.events.envelope import Envelope, decode, pieces
from exporter.core.events.lines import LineSplitter, Oversized
from exporter.core.events.redaction import Verdicts
from exporter.core.events.tool_calls import Start, ToolCalls, starts_in
from exporter.sources.files.cli_process import Liveness
from exporter.sources.files.homes import login_name

CHUNK_BYTES: Final = 1 << 19
_AHEAD_MAX: Final = 2
_PART_BYTES: Final = 1 << 16
EVENTS_NAME: Final = "events.jsonl"
NO_DESCRIPTOR: Final = (errno.EMFILE, errno.ENFILE)
_END_BYTES: Final = 64 << 10
_CAREFUL: Final[int] = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
"""Opening a pipe must not block, and a link is followed only where we looked at its target."""


if sys.platform != "win32":
    import resource

_OTHER_FILES: Final = 64  # sockets, databases, libraries


def files_possible(wanted: int) -> tuple[int, int | None]:
    """Return how many of `wanted` session files this process can hold open, and its limit of all open files if any."""
    if sys.platform == "win32":
        return wanted, None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted, None
    return min(wanted, max(1, soft - _OTHER_FILES, soft // 8)), soft


class OpenFiles:
    """The open descriptors, at most `limit`; the least recently used one is closed first.

    The limit falls when the process has no descriptor left, so that what else needs one finds it.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: OrderedDict[SessionFile, int] = OrderedDict()

    def descriptor(self, file: "SessionFile") -> int | None:
        """Return an open descriptor of the file that `file` followed last, None when it is gone."""
        found = self._open.get(file)
        if found is not None:
            self._open.move_to_end(file)
            return found
        while len(self._open) >= self._limit:
            self.close(next(iter(self._open)))
        try:
            descriptor = open_inside(file.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as error:
            if error.errno in NO_DESCRIPTOR and self._open:
                self._limit = max(1, len(self._open) - 1)
                return self.descriptor(file)
            if not isinstance(error, FileNotFoundError):
                file.unopened = f"unreadable_file: {error.strerror}"
            return None
        file.unopened = None
        facts = os.fstat(descriptor)
        if Identity(facts.st_dev, facts.st_ino) != file.identity:
            os.close(descriptor)
            return None
        self._open[file] = descriptor
        return descriptor

    def holds(self, file: "SessionFile") -> bool:
        """Tell whether a descriptor is open, so that a deleted file can still be drained."""
        return file in self._open

    def size(self, file: "SessionFile", otherwise: int) -> int:
        """Return the size of an open file, which may have grown after it was deleted."""
        descriptor = self._open.get(file)
        return otherwise if descriptor is None else os.fstat(descriptor).st_size

    def close(self, file: "SessionFile") -> None:
        """Close a file's descriptor if it is open."""
        descriptor = self._open.pop(file, None)
        if descriptor is not None:
            os.close(descriptor)

    def close_all(self) -> None:
        """Close every descriptor."""
        for file in list(self._open):
            self.close(file)


class SessionFile:
    """The events of one session on disk.

    `generation` counts how often bytes already read have changed (replaced, truncated, overwritten): positions of an
    older generation are invalid. `gone` says that the path names no file now; an open file can still be read.

    A journal (`is_journal`) holds the events received so far, from offset `begins` on; events that it lacks may exist.
    """

    __slots__ = (
        *("begins", "directory", "generation", "gone", "identity", "is_journal", "modified", "uid"),
        *("left", "path", "session", "size", "unopened", "unseen"),
    )

    def __init__(self, session: str, directory: Path, *, is_journal: bool = False) -> None:
        self.session = session
        self.directory = directory
        self.path = directory / EVENTS_NAME
        self.is_journal = is_journal
        self.begins = 0
        self.generation = 0
        self.identity: Identity | None = None
        self.size = 0
        self.modified = 0.0
        self.gone = True
        self.uid: int | None = None  # of who owns the file
        self.unseen: str | None = None  # why the path cannot be read
        self.left: Liveness | None = None  # of a journal whose server is gone: what is known of it
        self.unopened: str | None = None  # why the last attempt to open the file failed

    @property
    def problem(self) -> str | None:
        """Return why the file cannot be followed, None when it can."""
        return self.unseen or self.unopened

    @property
    def owner(self) -> str | None:
        """Return the login name of who owns the file; of a journal, which is ours, nobody is known."""
        return None if self.is_journal else login_name(self.uid)

    def refresh(self, files: OpenFiles) -> str | None:
        """Check the file again; return why its generation changed, None when it did not."""
        facts = self._facts()
        if facts is None:
            self.gone = True
            self.size = files.size(self, self.size)
            return None
        seen = Identity(facts.st_dev, facts.st_ino)
        reason = rewritten(self.identity, self.size, seen, facts.st_size)
        self.gone = False
        self.modified, self.uid = facts.st_mtime, facts.st_uid
        if reason is not None:
            files.close(self)
            self.generation += 1
        self.identity = seen
        self.size = facts.st_size
        return reason

    def become(self, other: "SessionFile", files: OpenFiles) -> None:
        """Follow another file of the same session from now on, as if it had replaced this one."""
        files.close(self)
        files.close(other)
        self.directory, self.path, self.is_journal, self.begins = other.directory, other.path, other.is_journal, 0
        self.identity, self.size, self.modified, self.gone = other.identity, other.size, other.modified, other.gone
        self.unseen, self.unopened, self.uid = other.unseen, other.unopened, other.uid
        self.generation += 1

    def rewritten(self, files: OpenFiles) -> None:
        """Note that bytes already read have changed in place."""
        files.close(self)
        self.generation += 1

    def _facts(self) -> os.stat_result | None:
        self.unseen = "link_out_of_its_directory" if leads_out(self.path) else None
        if self.unseen:
            return None
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.unseen = f"unreadable_file: {error.strerror}"
            return None
        if not stat.S_ISREG(facts.st_mode):
            self.unseen = "not_a_regular_file"
            return None
        return facts


class PastChangedError(Exception):
    """The bytes before a position have changed."""


@dataclass(slots=True)
class Chunk:
    """The lines that one chunk of a file finishes. `verdicts` are what another process tells of them."""

    lines: list[bytes | Oversized] = field(default_factory=list)
    is_ascii: bool = False
    verdicts: Verdicts | None = None


class Reader:
    """Reads the whole lines of a session file from a position on, each once.

    `chunk.lines[index:]` are read and not yet taken; `take` moves on. The caller checks `generation` first and discards
    a reader of an older generation.
    """

    def __init__(self, file: SessionFile, files: OpenFiles, position: Position, line_bytes_max: int) -> None:
        self.file = file
        self.generation = file.generation
        self.position = position
        self.chunk = Chunk()
        self.index = 0
        self._ahead: deque[Chunk] = deque()
        self._ascii = False
        self._files = files
        self._splitter = LineSplitter(position.offset, line_bytes_max)
        self._read_to = position.offset
        self._tail: bytes | None = None
        self._read_tail: bytes | None = None
        self._before_held = b""
        self.calls: ToolCalls | None = None
        """The tool calls in what was read."""

    @classmethod
    def from_first(cls, file: SessionFile, files: OpenFiles, line_bytes_max: int) -> "Reader":
        """Return a reader that begins at the first event of a file, which in a shortened journal is not at offset 0."""
        position = START
        if file.begins and (descriptor := files.descriptor(file)) is not None:
            start = max(0, file.begins - TAIL_BYTES)
            position = Position(file.begins, tail_hash(_read_at(descriptor, file.begins - start, start)))
        return cls(file, files, position, line_bytes_max)

    @property
    def held(self) -> int:
        """Return how many bytes of an unfinished last line have been read."""
        return self._splitter.held

    def fill(self) -> bool:
        """Read one more chunk if there is one; return whether there are lines to take.

        Raises `PastChangedError` if bytes that this reader has read have changed in the file.
        """
        while self.index >= len(self.chunk.lines):
            if not self._ahead and not self._read():
                return False
            self.chunk, self.index = self._ahead.popleft(), 0
        return True

    def read_ahead(self) -> Chunk | None:
        """Read one more chunk before it is wanted, if there is a whole one and few are ahead; raises as `fill` does."""
        may_read = len(self._ahead) < _AHEAD_MAX and self.file.size - self._read_to >= CHUNK_BYTES
        return self._ahead[-1] if may_read and self._read() else None

    def _read(self) -> bool:
        wanted = min(CHUNK_BYTES, self.file.size - self._read_to)
        if wanted <= 0 or (descriptor := self._files.descriptor(self.file)) is None:
            return False
        chunk = _read_at(descriptor, wanted, self._read_to)
        self._check_past(descriptor)
        if not chunk:
            return False
        assert self._read_tail is not None
        before = self._read_tail
        self._read_tail = (before + chunk[-TAIL_BYTES:])[-TAIL_BYTES:]
        self._read_to += len(chunk)
        # An unfinished line belongs to the previous chunk as well.
        self._ascii = chunk.isascii() and (self._ascii or not self._splitter.held)
        self._ahead.append(Chunk(self._splitter.feed(chunk), self._ascii))
        begins = len(chunk) - self._splitter.held
        if begins >= 0:  # else the unfinished line began in a chunk before
            self._before_held = (before + chunk[max(0, begins - TAIL_BYTES) : begins])[-TAIL_BYTES:]
        return True

    def _check_past(self, descriptor: int) -> None:
        # Compared after the chunk was read, so that a rewrite before or between the two reads is noticed.
        start = max(0, self._read_to - TAIL_BYTES)
        past = _read_at(descriptor, self._read_to - start, start)
        if self._read_tail is None:
            if not self.position.follows(past):
                raise PastChangedError
            self._tail = self._read_tail = past
        elif past != self._read_tail or not self._held_is_same(descriptor):
            raise PastChangedError

    def _held_is_same(self, descriptor: int) -> bool:
        """Tell whether an unfinished line has the same offset and the same beginning as before.

        The bytes of it that were read last may equal those in the middle of any other line, so they prove nothing.
        """
        if not self._splitter.held:
            return True
        seen = self._before_held + self._splitter.head(TAIL_BYTES)
        return _read_at(descriptor, len(seen), self._splitter.offset - len(self._before_held)) == seen

    def past_is_same(self) -> bool:
        """Tell whether the bytes before the position are unchanged."""
        try:
            if (descriptor := self._files.descriptor(self.file)) is not None:
                self._check_past(descriptor)
        except PastChangedError:
            return False
        return True

    def take(self, index: int) -> bytes:
        """Move to `chunk.lines[index]`; return the up to `TAIL_BYTES` raw bytes before it, as they were read."""
        tail = b""
        for line in reversed(self.chunk.lines[self.index : index]):
            if isinstance(line, Oversized):
                tail = self._before(line.offset + line.size + 1) + tail
                break
            tail = line[-TAIL_BYTES:] + b"\n" + tail
            if len(tail) >= TAIL_BYTES:
                break
        else:
            tail = (self._tail or b"") + tail
        self._tail = tail[-TAIL_BYTES:]
        self.index = index
        if index >= len(self.chunk.lines):  # a reader may stand at the end of its file for long
            self.chunk, self.index = Chunk(), 0
        return self._tail

    def _before(self, offset: int) -> bytes:
        descriptor = self._files.descriptor(self.file)
        start = max(0, offset - TAIL_BYTES)
        return b"" if descriptor is None else _read_at(descriptor, offset - start, start)


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)  # Windows
    return os.read(descriptor, size)


def starts_before(
    file: SessionFile, files: OpenFiles, end: int, lowest: int, line_bytes_max: int
) -> Iterator[tuple[int, list[Start]] | None]:
    """Yield the starts of tool calls before an event, in parts backwards down to an offset; see `LookUp`."""
    lowest, wanted, after = max(lowest, file.begins), _PART_BYTES, b""
    while end > lowest:
        begin = max(lowest, end - wanted)
        descriptor = files.descriptor(file)
        part = b"" if descriptor is None else _read_at(descriptor, end - begin, begin)
        if len(part) < end - begin:
            yield None
            return
        # The first line may have begun before the part.
        cut = 0 if begin in (0, file.begins) else part.find(b"\n") + 1
        is_whole = cut > 0 or begin in (0, file.begins)
        if is_whole:
            yield begin + cut, starts_in(part[cut:] + after, begin + cut, line_bytes_max)
            part, after = part[:cut], b""
        after, end, wanted = part + after, begin, min(2 * wanted, CHUNK_BYTES)


def leads_out(path: str | Path) -> bool:
    """Tell whether this is a link to something that is not below the directory of the link."""
    path = Path(path)
    return path.is_symlink() and path.parent.resolve() not in Path(os.path.realpath(path)).parents


def open_inside(path: str | Path, flags: int) -> int:
    """Return a descriptor like `os.open`, an `opener` of `open`; blocks at no pipe, follows no link that leads out."""
    if leads_out(path):
        raise OSError(errno.ELOOP, "link out of its directory")
    return os.open(os.path.realpath(path) if Path(path).is_symlink() else path, flags | _CAREFUL)


def durable_events(path: Path, line_bytes_max: int, begins: int = 0) -> Iterator[tuple[Envelope, bytes]]:
    """Yield the durable events of a file in order, each with its bytes, which are not redacted.

    A path without a readable regular file yields nothing. `begins` is the offset of the first event.
    """
    splitter = LineSplitter(begins, line_bytes_max)
    try:
        with open(path, "rb", opener=open_inside) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return
            file.seek(begins)
            while chunk := file.read(CHUNK_BYTES):
                for line in splitter.feed(chunk):
                    if not isinstance(line, Oversized):
                        yield from _durable(line)
    except OSError:
        return


def times_of(path: Path, begins: int = 0) -> list[str]:
    """Return the timestamps of the first and the last event of a file, as far as both are found near its ends."""
    try:
        with open(path, "rb", opener=open_inside) as file:
            file.seek(begins)
            head = file.read(_END_BYTES)
            file.seek(max(begins, os.fstat(file.fileno()).st_size - _END_BYTES))
            tail = file.read(_END_BYTES)
    except OSError:
        return []
    found = decode(head.partition(b"\n")[0]), decode(tail.rstrip(b"\n").rpartition(b"\n")[2])
    return [one.timestamp for one in found if isinstance(one, Envelope)]


def _durable(line: bytes) -> Iterator[tuple[Envelope, bytes]]:
    envelope = decode(line)
    if isinstance(envelope, Envelope):
        if not envelope.ephemeral:
            yield envelope, line.strip(b" \t\r")
        return
    for piece in pieces(line):
        if isinstance(piece.envelope, Envelope) and not piece.envelope.ephemeral:
            yield piece.envelope, piece.raw
