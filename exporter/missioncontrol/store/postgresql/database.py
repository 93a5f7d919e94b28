"""The port's `Database` on PostgreSQL: statements with `?`, rows in arrays, numbers from sequences in blocks."""

import random
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, Final

import psycopg
from psycopg import Cursor
from psycopg.pq import TransactionStatus

from exporter.missioncontrol.store.port import Rows, StoreAway, Table
from exporter.missioncontrol.store.postgresql.arrays import array_like, array_of
from exporter.missioncontrol.store.postgresql.connection import Opened
from exporter.missioncontrol.store.postgresql.text import stored_values

_BLOCK: Final = 10_000
"""How many numbers `event_numbers` gives at once; the schema has the same number."""
_PARTITION: Final = 2048
_CHANGE_PARTS: Final = 256
_FETCHED_ROWS: Final = 64
_ROW_BYTES: Final = 250
"""What a stored event takes beside its bytes, with its part of the indexes."""
_MARK: Final = re.compile(r"\?")


class EventNumbers:
    """The numbers that a receiver has taken for events and not used yet, for all its connections."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = self._end = 0

    def take(self, raw: Any, count: int) -> int:
        """Return the first of `count` numbers in a row."""
        if count > _BLOCK:
            raise ValueError(f"at most {_BLOCK} numbers are allocated at once")
        with self._lock:
            if self._end - self._next < count:
                (self._next,) = raw.execute("SELECT nextval('event_numbers')").fetchone()
                self._end = self._next + _BLOCK
            self._next += count
            return self._next - count


class PostgresDatabase:
    """A connection to PostgreSQL as a job sees it; it raises the engine's own errors."""

    def __init__(self, opened: Opened, numbers: EventNumbers, epochs: dict[int, int]) -> None:
        """`epochs` is told the epoch of each tenant that the connection begins to work for."""
        self.opened = opened
        self._epochs, self._known = epochs, {opened.tenant.number}
        epochs[opened.tenant.number] = opened.tenant.epoch
        self._raw, self._numbers = opened.raw, numbers
        self._change_part = random.randrange(_CHANGE_PARTS)  # noqa: S311  spreads, and hides nothing
        self._types: dict[tuple[str, str], str] = {}
        self._locked: set[str] = set()
        self._streams = 0

    @contextmanager
    def transaction(self, tenant: int, *, writes: bool = True) -> Iterator[None]:
        """Commit at the end of the block, or roll back when it raises; `StoreAway` for a tenant that is no more."""
        # A reader sees one state; a writer sees what was committed before each statement, behind its session's lock.
        begin = "BEGIN" if writes else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self._raw.execute(f"{begin}; {self.opened.begin_as(tenant)}")  # one round trip
        self._locked.clear()
        try:
            if tenant not in self._known:
                self._meet(tenant)
            yield
            self._raw.execute("COMMIT")
        except BaseException:
            if not self._raw.closed:
                with suppress(psycopg.Error):
                    self._raw.execute("ROLLBACK")
            raise

    def _meet(self, tenant: int) -> None:
        row = self._raw.execute("SELECT value FROM counters WHERE name = 'epoch'").fetchone()
        if row is None:
            raise StoreAway("the tenant was removed")
        self._epochs[tenant] = row[0]
        self._known.add(tenant)

    def is_usable(self) -> bool:
        """Tell whether another transaction may begin on the connection."""
        return not self._raw.closed and self._raw.info.transaction_status == TransactionStatus.IDLE

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Execute a statement."""
        return self._cursor().execute(_numbered(sql), stored_values(values))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Rows:
        """Execute a statement once for each row, in one round trip."""
        cursor = self._cursor()
        cursor.executemany(_numbered(sql), [stored_values(row) for row in rows])
        return cursor

    def stream(self, sql: str, values: Sequence[Any] = (), /) -> Iterator[Any]:
        """Yield the rows of a statement, some at a time."""
        self._streams += 1
        name = f"stream_{self._streams}"
        self._cursor().execute(f"DECLARE {name} NO SCROLL CURSOR FOR {_numbered(sql)}", stored_values(values))
        while rows := self._cursor().execute(f"FETCH {_FETCHED_ROWS} FROM {name}").fetchall():
            yield from rows
        self._raw.execute(f"CLOSE {name}")

    def insert(self, table: str, columns: str, rows: Sequence[Sequence[Any]], *, unless_there: bool = False) -> None:
        """Insert the rows with one statement, a column each as an array."""
        if not rows:
            return
        names = [name.strip() for name in columns.split(",")]
        arrays = ", ".join(f"${number}" for number in range(1, len(names) + 1))
        end = " ON CONFLICT DO NOTHING" if unless_there else ""
        columns_of_rows = zip(names, zip(*rows, strict=True), strict=True)
        values = [array_of(self._type(table, name), column) for name, column in columns_of_rows]
        statement = f"INSERT INTO {table} ({columns}) SELECT * FROM unnest({arrays}){end}"  # noqa: S608  names
        self._cursor().execute(statement, values)
        if table == "events":
            self._note_events(names, rows)

    def allocate(self, table: Table, count: int = 1) -> int:
        """Return the first of `count` row numbers; numbers of a job that fails are not used again."""
        if table == "events":
            return self._numbers.take(self._raw, count)
        first, last = 0, count
        while last - first != count - 1:  # another transaction took some of them
            statement = "SELECT nextval('session_numbers') FROM generate_series(1, $1)"
            taken = self._raw.execute(statement, (count,)).fetchall()
            first, last = taken[0][0], taken[-1][0]
        # Made ahead too, so that a batch of another receiver never waits for it.
        self._raw.execute("SELECT add_partition($1), add_partition($2)", (last, last + _PARTITION))
        return int(first)

    def count_change(self) -> None:
        """Count a change in one of several rows, so that transactions do not wait for each other."""
        self._raw.execute(
            "INSERT INTO changes (part, value) VALUES ($1, 1)"
            " ON CONFLICT (tenant, part) DO UPDATE SET value = changes.value + 1",
            (self._change_part,),
        )

    def changes(self) -> int:
        """Return the sum of the rows; nothing is in it that is not committed, but by this transaction."""
        return int(self.execute("SELECT coalesce(sum(value), 0)::bigint FROM changes").fetchone()[0])

    def lock_session(self, session_id: str) -> None:
        """Lock the session's row, if there is one; two that register it at once meet its unique id."""
        if session_id not in self._locked:
            row = self.execute("SELECT 1 FROM sessions WHERE id = ? FOR UPDATE", (session_id,)).fetchone()
            if row is not None:
                self._locked.add(session_id)

    def contains(self, column: str) -> str:
        """Return the condition; unlike LIKE, `strpos` compares letter by letter and has no wildcards."""
        return f"strpos({column}, ?) > 0"

    def among(self, column: str, values: Sequence[Any]) -> tuple[str, Sequence[Any]]:
        """Return the condition with one array, so that the statement is the same for any number."""
        return f"{column} = ANY(?)", [array_like(values)]

    def forget_text_of(self, session: int) -> None:
        """Tell index workers; what the server's own files keep of deleted rows is said in docs/fleet.md."""
        self._raw.execute("INSERT INTO changed (session, first, count) VALUES ($1, 0, 0)", (session,))

    def has_text_to_erase(self) -> bool:
        """Say no, for the same reason."""
        return False

    def used_bytes(self) -> int:
        """Return the bytes of what is stored, by counts that fall when sessions are deleted, unlike the files."""
        row = self.execute(
            "SELECT (SELECT coalesce(sum(event_bytes), 0) FROM sessions)::bigint"
            " + (SELECT coalesce(sum(length(body)), 0) FROM blobs)::bigint"
        ).fetchone()
        return int(row[0])

    def _note_events(self, names: list[str], rows: Sequence[Sequence[Any]]) -> None:
        """Count the bytes of each session's events, and note their numbers for index workers, in one round trip."""
        number, session, body = (names.index(name) for name in ("n", "session", "body"))
        found: dict[int, tuple[int, int, int]] = {}
        for row in rows:
            first, end, size = found.get(row[session], (row[number], row[number], 0))
            size += len(row[body]) + _ROW_BYTES
            found[row[session]] = min(first, row[number]), max(end, row[number] + 1), size
        self.executemany(
            "WITH noted AS (INSERT INTO changed (session, first, count) VALUES (?, ?, ?))"
            " UPDATE sessions SET event_bytes = event_bytes + ? WHERE n = ?",
            [(n, first, end - first, size, n) for n, (first, end, size) in found.items()],
        )

    def _cursor(self) -> "Cursor[Any]":
        return self._raw.cursor(binary=True)

    def _type(self, table: str, column: str) -> str:
        found = self._types.get((table, column))
        if found is None:
            rows = self._raw.execute(
                "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
                " WHERE attrelid = $1::regclass AND attnum > 0",
                (table,),
            )
            self._types.update(((table, name), type) for name, type in rows)
            found = self._types[table, column]
        return found


@lru_cache(1024)
def _numbered(sql: str) -> str:
    """Return a statement with $1, $2 … for its marks."""
    count = iter(range(1, 1 << 16))
    return _MARK.sub(lambda _: f"${next(count)}", sql)
