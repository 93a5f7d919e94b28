"""The index of one tenant's events at an index worker: their words, and which events of which session are in.

What was deleted cannot be asked for its words any more, so the parts that have them are built again from the events
that are left.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from exporter.missioncontrol.search.event_text import words_of
from exporter.missioncontrol.search.fts5 import open_index, open_reader
from exporter.missioncontrol.search.index import Row, Term
from exporter.missioncontrol.store.port import StoreBusy
from exporter.missioncontrol.store.sqlite.database import engine_errors

_TRIES: Final = 20
RowsBetween = Callable[[int, int], Iterable[Sequence[Row]]]
"""Yields the events that the store has, from one number on and below another."""
_ROWS: Final = (
    "CREATE TABLE IF NOT EXISTS rows (session INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (session, n))"
    " WITHOUT ROWID"
)


class TenantIndex:
    """The connection that writes; every method raises `StoreError`."""

    def __init__(self, path: Path, identity: int) -> None:
        """`identity` is that of the tenant's store; a file of another one is built again."""
        self._index = open_index(path, identity)
        with engine_errors():
            self._index.database.execute(_ROWS)

    def close(self) -> None:
        """Close the connection."""
        self._index.close()

    def counts(self) -> dict[int, int]:
        """Return how many events of each session are in."""
        with engine_errors():
            found = self._index.database.execute("SELECT session, count(*) FROM rows GROUP BY session")
            return dict(found.fetchall())

    def add(self, rows: Sequence[Row]) -> None:
        """Put events in; one that is in already stays as it is."""
        database = self._index.database
        with engine_errors(), database.transaction():
            new = [row for row in rows if self._note(row[1], row[0])]
            self._index.insert([(n, words_of(body)) for n, _, body in new])

    def remove(self, sessions: Iterable[int], rows_between: RowsBetween) -> None:
        """Remove sessions, so that no word of them stays in the file; `StoreBusy` while another program reads it."""
        database, parts = self._index.database, set[int]()
        with engine_errors():
            with database.transaction():
                for session in sessions:
                    rows = database.execute("SELECT n FROM rows WHERE session = ?", (session,))
                    parts |= {self._index.part_of(n) for (n,) in rows}
                    database.execute("DELETE FROM rows WHERE session = ?", (session,))
                for part in sorted(parts):
                    for some in rows_between(*self._index.begin_again(part)):
                        self._index.insert([(n, words_of(body)) for n, of, body in some if self._has(of, n)])
            if parts and not any(database.truncate_log() for _ in range(_TRIES)):
                raise StoreBusy("the index is being read")

    def _has(self, session: int, n: int) -> bool:
        row = self._index.database.execute("SELECT 1 FROM rows WHERE session = ? AND n = ?", (session, n)).fetchone()
        return row is not None

    def _note(self, session: int, n: int) -> bool:
        insert = "INSERT INTO rows (session, n) VALUES (?, ?) ON CONFLICT DO NOTHING"
        return self._index.database.execute(insert, (session, n)).rowcount > 0


def matches(path: Path, terms: Sequence[Term], below: int) -> Iterator[int]:
    """Yield what `TextIndex.matches` does, from a tenant's file; nothing where there is none."""
    if not path.exists():
        return
    with closing(open_reader(path)) as index, engine_errors(), index.database.transaction(writes=False):
        made = "SELECT 1 FROM sqlite_master WHERE name = 'rows'"  # the last table that is made
        if index.database.execute(made).fetchone() is not None:
            yield from index.matches(terms, below)
