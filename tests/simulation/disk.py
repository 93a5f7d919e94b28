"""A disk in memory: the session files, and the databases of an exporter with SQLite's own transactions."""

import asyncio
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, cast

from exporter.core.delivery.position import Mark
from exporter.sources.files import session_file
from exporter.state import marks, quarantine
from exporter.state.database import Schema

_DEVICE = 7


@dataclass(slots=True, eq=False)
class Inode:
    """A file. `lines` are the ends of its whole lines, each with the id of its durable event if it has one."""

    number: int
    data: bytearray = field(default_factory=bytearray)
    lines: list[tuple[int, str | None]] = field(default_factory=list)
    modified: float = 0.0

    def ids(self, before: int | None = None) -> list[str]:
        """Return the ids of the durable events, of those that end at or before an offset if one is given."""
        return [one for end, one in self.lines if one is not None and (before is None or end <= before)]


@dataclass(slots=True)
class _Facts:
    st_ino: int
    st_size: int
    st_mtime: float
    st_dev: int = _DEVICE
    st_mode: int = stat.S_IFREG
    st_uid: int = 0


class Disk:
    """Files by name, and open descriptors; a replaced file stays readable while it is open. Stands for module `os`."""

    O_RDONLY = os.O_RDONLY

    def __init__(self) -> None:
        self.files: dict[str, Inode] = {}
        self.opened: dict[int, Inode] = {}
        self._inodes = self._descriptors = 100

    def put(self, name: str, *, in_place: bool = False, reuse: bool = False) -> Inode:
        """Return an empty file of this name: the one that is there, or another one, maybe with its number."""
        before = self.files.get(name)
        if in_place and before is not None:
            before.data.clear()
            before.lines.clear()
            return before
        self._inodes += 1
        is_free = before is not None and before not in self.opened.values()
        number = before.number if before is not None and reuse and is_free else self._inodes
        made = self.files[name] = Inode(number)
        return made

    def write(self, name: str, line: bytes, identity: str | None) -> None:
        """Append a line without its newline, or the rest of one."""
        file = self.files[name]
        file.data += line + b"\n"
        file.lines.append((len(file.data), identity))
        file.modified = time.time()

    # ---- what `SessionFile` and its readers call

    def open(self, path: "DiskPath", flags: int) -> int:
        if path.name not in self.files:
            raise FileNotFoundError(path.name)
        self._descriptors += 1
        self.opened[self._descriptors] = self.files[path.name]
        return self._descriptors

    def close(self, descriptor: int) -> None:
        del self.opened[descriptor]

    def fstat(self, descriptor: int) -> _Facts:
        file = self.opened[descriptor]
        return _Facts(file.number, len(file.data), file.modified)

    def pread(self, descriptor: int, size: int, offset: int) -> bytes:
        return bytes(self.opened[descriptor].data[offset : offset + size])


class DiskPath:
    """The path of a session's file."""

    def __init__(self, disk: Disk, name: str) -> None:
        self.disk, self.name = disk, name

    def __truediv__(self, _: str) -> "DiskPath":
        return self

    def stat(self) -> _Facts:
        file = self.disk.files.get(self.name)
        if file is None:
            raise FileNotFoundError(self.name)
        return _Facts(file.number, len(file.data), file.modified)


def followed(disk: Disk, session: str) -> session_file.SessionFile:
    """Return a session's file as the exporter follows it."""
    return session_file.SessionFile(session, cast(Path, DiskPath(disk, session)))


@contextmanager
def mounted(disk: Disk) -> Iterator[None]:
    """Let session files be opened and read on this disk, and databases be used until the end."""
    names = vars(session_file)
    ours = {"os": disk, "open_inside": disk.open, "leads_out": lambda _: False}  # this disk has no links
    before = {name: names[name] for name in ours}
    names.update(ours)
    try:
        yield
    finally:
        names.update(before)
        MARKS.put_back()
        QUARANTINE.put_back()


class Shelf:
    """Databases in memory. They are emptied and used again: to make one takes longer than to play a short schedule."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._free: list[tuple[sqlite3.Connection, int]] = []
        self._lent: list[tuple[sqlite3.Connection, int]] = []
        self._tables: list[str] = []

    def take(self) -> sqlite3.Connection:
        """Return an empty database, until all are put back."""
        if not self._free:
            made = self._made()
            self._free.append((made, made.total_changes))
        connection, changes = self._free.pop()
        if connection.total_changes != changes:
            for table in self._tables:
                connection.execute(f"DELETE FROM {table}")
        self._lent.append((connection, connection.total_changes))
        return connection

    def copy(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Return a database with the same content."""
        copied = self.take()
        connection.backup(copied)
        self._lent[-1] = copied, -1
        return copied

    def put_back(self) -> None:
        """Take back every database that was lent."""
        self._free += self._lent
        self._lent.clear()

    def _made(self) -> sqlite3.Connection:
        made = sqlite3.connect(":memory:", isolation_level=None)
        made.execute("PRAGMA journal_mode = OFF")  # nothing is undone here: a crash is before a transaction, or after
        made.executescript(f"{self._schema.script}; PRAGMA user_version={self._schema.version};")
        self._tables = [str(name) for (name,) in made.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return made


MARKS: Final = Shelf(replace(marks.SCHEMA, script=f"{marks.SCHEMA.script};{marks._LATER_TABLES}"))
QUARANTINE: Final = Shelf(quarantine.SCHEMA)
_GONE: Final = sqlite3.connect(":memory:")
_GONE.close()


class MemoryMarks(marks.MarkStore):
    """The marks in memory. `crash` is when the exporter dies: before or after the next transaction."""

    def __init__(self, left: sqlite3.Connection | None, crashed: Callable[[], None]) -> None:
        self.epoch, self.set_aside, self._void = 0, None, False
        self._sinks = {}
        self._connection = left or MARKS.take()
        self._crashed = crashed
        self.crash: str | None = None
        self.full = False
        self.watch: Callable[[str, int, Mark, list[str]], None] = lambda *_: None
        self.watch_rest: Callable[[str, int, set[str]], None] = lambda *_: None

    def leave(self) -> sqlite3.Connection:
        """Return what is on the disk, which this process does not touch any more."""
        left, self._connection = self._connection, _GONE
        left.rollback()
        return left

    def copied(self) -> sqlite3.Connection:
        """Return a copy of what is on the disk."""
        return MARKS.copy(self._connection)

    def _change(self, statements: Iterable[marks._Statement]) -> None:
        if self.full:
            raise marks.StoreUnwritableError("database or disk is full")
        when, self.crash = self.crash, None
        if when != "before":
            super()._change(statements)
        if when is not None:
            self._crashed()
            raise asyncio.CancelledError

    def replace_delivered(
        self, session: str, sink: int, mark: Mark, delivered: Mapping[str, bytes], *what: Any, **more: Any
    ) -> Mark:
        replaced = super().replace_delivered(session, sink, mark, delivered, *what, **more)
        self.watch_rest(session, sink, set(delivered))
        return replaced

    def commit(self, session: str, sink: int, mark: Mark, ids: list[str], *what: Any) -> Mark:
        committed = super().commit(session, sink, mark, ids, *what)
        self.watch(session, sink, mark, ids)
        return committed


class MemoryQuarantine(quarantine.Quarantine):
    """The quarantine in memory."""

    def __init__(self, left: sqlite3.Connection | None) -> None:
        self._bytes_max, self._days_max, self.set_aside = 1 << 30, 30, None
        self._connection = left or QUARANTINE.take()
        self._bytes = self._measure()

    def leave(self) -> sqlite3.Connection:
        """Return what is on the disk, which this process does not touch any more."""
        left, self._connection = self._connection, _GONE
        return left

    def copied(self) -> sqlite3.Connection:
        """Return a copy of what is on the disk."""
        return QUARANTINE.copy(self._connection)
