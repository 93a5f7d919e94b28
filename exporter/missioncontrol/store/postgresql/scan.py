"""Searches the events themselves, where there is no index: the newest first, some thousand at a time.

The server leaves out events that cannot have the words: those in which they stand nowhere, letter for letter, and in
which nothing is written in another way (escapes, letters beyond ASCII, large strings that are kept apart).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from exporter.missioncontrol.search.index import Row, Term, Texts
from exporter.missioncontrol.store.port import Database

_AT_ONCE: Final = 2000
# In the text form of bytes a backslash is two, and each byte of a letter beyond ASCII one with octal digits, the first
# of which begins with 3. What JSON writes as a number begins with a u.
_WRITTEN_OTHERWISE: Final = ("\\u", "\\3")


class ScannedEvents:
    """The events as a `TextIndex` that always has all of them, and keeps nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def matches(self, terms: Sequence[Term], below: int, /) -> Iterator[int]:
        """Yield the numbers of events that may match, and the last of each part that was looked through."""
        plain = [term.word for term in terms if term.word.isascii()]
        otherwise = "strpos(shown, ?) > 0 OR strpos(shown, ?) > 0"
        found = " AND ".join(["strpos(lower(shown), ?) > 0"] * len(plain)) or "TRUE"
        statement = (
            f"SELECT n, hidden = 0 AND (cuts IS NOT NULL OR {otherwise} OR ({found})) FROM"  # noqa: S608  marks
            " (SELECT n, hidden, cuts, encode(body, 'escape') AS shown FROM events WHERE n < ?"
            " ORDER BY n DESC LIMIT ?) AS newest ORDER BY n DESC"
        )
        while rows := self._database.execute(statement, (*_WRITTEN_OTHERWISE, *plain, below, _AT_ONCE)).fetchall():
            below = rows[-1][0]
            yield from (n for n, may_match in rows if may_match or n == below)

    def reached(self) -> int:
        """Return a number above all: nothing is ever missing."""
        return (1 << 63) - 1

    def forgotten(self) -> set[int]:
        """Return none: what is deleted is not found."""
        return set()

    def put(self, texts: Texts, /) -> None:
        """Do nothing."""

    def remove(self, session: int, rows_of: Callable[[int, int], Sequence[Row]], /) -> None:
        """Do nothing."""

    def cut_log(self) -> bool:
        """Say that nothing is left."""
        return True

    def close(self) -> None:
        """Do nothing: the connection is the job's."""
