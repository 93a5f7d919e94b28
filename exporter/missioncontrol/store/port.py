"""The port to a database engine: what jobs may do with it, and the errors that every engine raises.

A job is a function of a `Database`. The SQL that it executes is neutral: parameters are `?`, a conflict is
`ON CONFLICT`, and no function, operator or row id of one engine is used. What engines do differently is a method of
`Database`, so that a module with SQL outside of an engine's package runs on every engine.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, Self, TypeAlias, TypeVar

from exporter.core.notice import Notice

if TYPE_CHECKING:
    from exporter.missioncontrol.live.notes import Heard, Notes
    from exporter.missioncontrol.search.index import TextIndex

DEFAULT_TENANT: Final = "default"
DEFAULT_NUMBER: Final = 1
"""The number of the tenant that every store has from the beginning, and that it works on itself."""
Result = TypeVar("Result")
Table = Literal["events", "sessions"]


class StoreError(Exception):
    """The engine did not do what it was asked; the transaction has changed nothing."""


class StoreBusy(StoreError):
    """Another program holds the store; the same job succeeds later."""


class StoreAway(StoreError):
    """The engine cannot be reached; the same job succeeds when it can be."""


class StoreFull(StoreError):
    """The disk is full."""


class StoreDamaged(StoreError):
    """The stored data cannot be read."""


class Rows(Protocol):
    """The result of a statement. Rows that are not read yet are read while it is iterated."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """Return the next row, None when there is none."""

    def fetchall(self) -> list[Any]:
        """Return all rows that are left."""

    def close(self) -> None:
        """Read no further row."""


class Database(Protocol):
    """A connection inside a transaction. What it gives is valid until the job returns."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Execute a statement, with a value for each `?`."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Execute a statement once for each row of values."""

    def stream(self, sql: str, values: Sequence[Any] = (), /) -> Iterable[Any]:
        """Execute a statement whose rows may be too much for memory; they are read while they are iterated."""

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]], *, unless_there: bool = False) -> None:
        """Insert many rows with few statements; with `unless_there` a row that violates a unique key is left out."""

    def allocate(self, table: Table, count: int = 1) -> int:
        """Return the first of `count` consecutive row numbers of a table; none is ever allocated twice."""

    def count_change(self) -> None:
        """Count a change that the transaction makes for an uploader."""

    def changes(self) -> int:
        """Return how many changes were counted; the number is part of the content, and is lower in an older copy.

        An engine may take any number that only grows with commits and goes back with the data.
        """

    def lock_session(self, session_id: str) -> None:
        """Wait until no other transaction works on this session; the lock is held until the transaction ends."""

    def contains(self, column: str) -> str:
        """Return an SQL condition that holds when the text of a column contains a parameter, letter by letter."""

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """Return an SQL condition that holds when a column has one of some hundred values, and its parameters."""

    def forget_text_of(self, session: int) -> None:
        """Note that the transaction deletes this session, so that `Store.erase` removes the copies of its text."""

    def has_text_to_erase(self) -> bool:
        """Tell whether copies of deleted text may still be in the engine's files."""

    def used_bytes(self) -> int:
        """Return how many bytes hold something; space that deleted rows left does not count."""


Job: TypeAlias = Callable[[Database], Result]


class Store(Protocol):
    """A receiver's store: every job is one transaction, and a failed job raises `StoreError` or what it raised itself.

    A write is answered only after the transaction that holds it is committed and durable. A job that fails takes
    nothing of another one with it. A job may be run twice, so it must do nothing but read and write the database.
    """

    index_of: "Callable[[Database], TextIndex] | None" = None
    """For an engine beside which no index is kept: what searches the events themselves, in a job."""
    number: int = DEFAULT_NUMBER
    """That of the tenant whose store it is; a store that is a file for each tenant has no use for it."""
    notices: list[Notice]
    """What happened to the store when it was opened, for a person."""
    path: Path | None = None
    """The file beside which other files may be kept; None when nothing outlives the process."""
    epoch: str
    """Another value says that the content may be older than what was answered before.

    SQLite begins an epoch whenever the file is opened, because a file is exchanged only while it is closed. An engine
    that runs by itself keeps one row, which a migration, a copy and a restore change and a restart does not.
    """
    after_commit: list[Callable[[], None]]
    """Each is called after every commit."""
    before_close: list[Callable[[], None]]
    """Each is called once when the store is about to close, while it still answers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, job: Job[Result], /) -> "Future[Result]":
        """Queue a write; the future answers after its commit, or with what the job raised."""

    async def write(self, job: Job[Result], /) -> Result:
        """Run a write and return its result once it is durable."""
        return await asyncio.wrap_future(self.submit(job))

    def do(self, job: Job[Result], /) -> Result:
        """Run a write or a read and wait for it; not for use on an event loop."""
        return self.submit(job).result()

    async def read(self, job: Job[Result], /, *, quick: bool = False) -> Result:
        """Run a read beside the writes; it sees every write that was answered before.

        `quick` is for a read that takes no time and must not wait for reads that do, such as the check of a token.
        """

    def read_now(self, job: Job[Result], /) -> Result:
        """Run a read from any thread but an event loop's, and wait for it."""

    def erase(self) -> "Future[bool]":
        """Remove the copies of deleted text from the engine's files; False while another program reads the store."""

    def open_notes(self, heard: "Heard", /) -> "Notes":
        """Begin to hear what other receivers of the store tell, on any thread; the caller closes the result."""
        from exporter.missioncontrol.live.notes import NoNotes

        return NoNotes()

    def tenant(self, number: int, /) -> "Store":
        """Return the store of a tenant, which ends with this one; no job of one reaches rows of another.

        It takes time. The number is that of a tenant of `tenants`, a table that the store of the default tenant has.
        """

    def add_tenant(self, name: str, now: str, /) -> int:
        """Make a tenant with keys of its own, and return its number, which no other one gets, not even later."""

    def remove_tenant(self, number: int, /) -> None:
        """Remove a tenant with all that is left of it; its sessions are to be forgotten before."""

    def size_bytes(self) -> int:
        """Return how much disk space the store takes; 0 in memory."""

    def clean(self, before: datetime) -> None:
        """Remove what old sessions left elsewhere than in rows.

        That is damaged stores that were set aside and not written since then, parts of tables without any row, and
        entries of the audit log, of which those of the last 30 days stay.
        """

    def close(self) -> None:
        """Finish the queued writes and the reads of every thread, then close. A second call does nothing."""
