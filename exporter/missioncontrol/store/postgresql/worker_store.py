"""What an index worker reads of PostgreSQL: any tenant, as a role that writes nothing but how far it is."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Self

from exporter.missioncontrol.store.port import DEFAULT_TENANT, Database, Job, Result
from exporter.missioncontrol.store.postgresql.connection import INDEX_ROLE, engine_errors, open_connection
from exporter.missioncontrol.store.postgresql.database import EventNumbers, PostgresDatabase

_ALL_AT_ONCE: Final = 5000
_XID: Final = "CAST(CAST(? AS text) AS xid8)"
_CHANGES: Final = "SELECT tenant, session, first, count, xid::text::bigint FROM changed WHERE "


class Change(NamedTuple):
    """How many events a transaction stored, from a first number on; 0 says that it deleted the session."""

    tenant: int
    session: int
    first: int
    events: int


class WorkerStore:
    """One connection; every method raises `StoreError`, after which the object is to be closed."""

    def __init__(self, url: str) -> None:
        opened = open_connection(url, DEFAULT_TENANT, INDEX_ROLE)
        self._database = PostgresDatabase(opened, EventNumbers(), {})
        self._default = opened.tenant.number
        self._name = secrets.token_hex(8)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.opened.raw.close()

    def read(self, tenant: int, job: Job[Result]) -> Result:
        """Run a read of a tenant in a transaction of its own."""
        with self._transaction(tenant) as database:
            return job(database)

    def tenants(self) -> list[int]:
        """Return the number of every tenant."""
        return self.read(
            self._default, lambda database: [n for (n,) in database.execute("SELECT n FROM tenants ORDER BY n")]
        )

    def now(self) -> int:
        """Return the number below which every transaction has ended."""
        return self.read(self._default, _now)

    def changes(self, since: int) -> tuple[list[Change], int]:
        """Return what transactions did from a number on, and the number up to which that is all of it."""

        def read(database: Database) -> tuple[list[Change], int]:
            until = _now(database)
            condition = f"xid >= {_XID} AND xid < {_XID} ORDER BY xid LIMIT ?"
            rows = database.execute(_CHANGES + condition, (str(since), str(until), _ALL_AT_ONCE)).fetchall()
            if len(rows) == _ALL_AT_ONCE:  # the last transaction may be cut off in the middle
                until = rows[-1][4]
                rows = [row for row in rows if row[4] < until] or _of(database, until)
                until = rows[-1][4] + 1
            return [Change(*row[:4]) for row in rows], until

        return self.read(self._default, read)

    def confirm(self, until: int) -> None:
        """Say that everything below a number is in the index."""
        with self._transaction(self._default, writes=True) as database:
            database.execute(
                f"INSERT INTO index_workers (name, confirmed) VALUES (?, {_XID})"  # noqa: S608  constants
                " ON CONFLICT (name) DO UPDATE SET confirmed = excluded.confirmed, heard = now()",
                (self._name, str(until)),
            )

    @contextmanager
    def _transaction(self, tenant: int, *, writes: bool = False) -> Iterator[Database]:
        with engine_errors(), self._database.transaction(tenant, writes=writes):
            yield self._database


def _of(database: Database, transaction: int) -> list[tuple[int, ...]]:
    """Return all that one transaction did."""
    return database.execute(f"{_CHANGES}xid = {_XID}", (str(transaction),)).fetchall()


def _now(database: Database) -> int:
    (number,) = database.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint").fetchone()
    return int(number)
