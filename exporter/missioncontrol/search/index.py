"""The port to a full-text index, and reading from the store what an index does not have yet.

An index is filled behind the store: it remembers, in the transaction that adds words, how far it has read. So the
process that fills it may be killed at any moment, and two at once add nothing twice.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from exporter.missioncontrol.search.event_text import words_of
from exporter.missioncontrol.store.payloads import whole
from exporter.missioncontrol.store.port import Database, Job

Row: TypeAlias = tuple[int, int, bytes]
ReadStore: TypeAlias = Callable[[Job[list[Row]]], list[Row]]
_ROWS_MAX, _BYTES_MAX = 2000, 4 << 20


class Term(NamedTuple):
    """A word that an event must have; with `is_prefix` a word that begins with it is enough."""

    word: str
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class Texts:
    """The words of the events after one number and up to another, without those of sessions forgotten by then."""

    after: int
    until: int
    rows: list[tuple[int, str]]
    forgotten: int = 0
    """How many sessions were."""


class Matches(Protocol):
    """What a search asks of an index."""

    def matches(self, terms: Sequence[Term], below: int, /) -> Iterator[int]:
        """Yield the numbers of events that may match all terms, newest first.

        Numbers of events that do not match may be between them, so that a caller may stop there.
        """


class TextIndex(Matches, Protocol):
    """A connection to an index of a store's events; several may be open at once, in several processes.

    Every method raises `StoreError` when the index cannot be read or written.
    """

    def reached(self) -> int:
        """Return the number of the last event that the index has read."""

    def forgotten(self) -> set[int]:
        """Return the sessions whose events must not be put in."""

    def put(self, texts: Texts, /) -> None:
        """Add texts, unless another process added them, or a session was removed meanwhile."""

    def remove(self, session: int, rows_of: Callable[[int, int], Sequence[Row]], /) -> None:
        """Remove a session's words and skip its unread events; copies may stay in the files until `cut_log`.

        `rows_of` returns its next rows after one number and up to another.
        """

    def cut_log(self) -> bool:
        """Remove the words of removed sessions from the files; False while another program reads them."""

    def close(self) -> None:
        """Close the connection."""


def read_on(index: TextIndex, read_store: ReadStore) -> Texts | None:
    """Return the texts of the next events, None when there are none."""
    after = index.reached()
    rows = read_store(lambda database: _some(database, "n > ?", (after,)))
    if not rows:
        return None
    skipped = index.forgotten()
    texts = [(n, words_of(body)) for n, session, body in rows if session not in skipped]
    return Texts(after, rows[-1][0], texts, len(skipped))


def rows_of(database: Database, session: int, after: int, until: int) -> list[Row]:
    """Return the next events of a session after one number and up to another."""
    # The plus keeps SQLite from walking through all events by their number.
    return _some(database, "session = ? AND +n > ? AND +n <= ?", (session, after, until))


def rows_from(database: Database, first: int, end: int, session: int | None = None) -> list[Row]:
    """Return the next events with these numbers, of one session or of all."""
    if session is None:
        return _some(database, "n >= ? AND n < ?", (first, end))
    return _some(database, "session = ? AND n >= ? AND n < ?", (session, first, end))


def _some(database: Database, condition: str, values: Sequence[int]) -> list[Row]:
    """Return the first rows with their events as delivered, until they are many bytes."""
    statement = f"SELECT n, session, body, cuts FROM events WHERE {condition} ORDER BY n LIMIT ?"  # noqa: S608  constants only
    found: list[Row] = []
    size = 0
    for n, session, body, cuts in database.stream(statement, (*values, _ROWS_MAX)):
        found.append((n, session, whole(database, body, cuts)))
        size += len(found[-1][2])
        if size > _BYTES_MAX:
            break
    return found
