"""An index worker: keeps an index of every tenant from the events in PostgreSQL, and says which events may match.

It knows numbers of events and their words, and answers numbers only. At its start and once an hour it compares all
sessions with what it has; in between it follows what transactions did. So its files may be lost at any time.
"""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from exporter.errors import StateError
from exporter.missioncontrol.search.index import Row, Term, rows_from
from exporter.missioncontrol.search.tenant_index import RowsBetween, TenantIndex, matches
from exporter.missioncontrol.store.port import Database, StoreError
from exporter.missioncontrol.store.postgresql.worker_store import Change, WorkerStore
from exporter.missioncontrol.store.queries import identity

_LOOK_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 2.0
_COMPARE_SECONDS: Final = 3600.0
_HEARD_SECONDS: Final = 30.0
ANSWER_MAX: Final = 500
ANSWER_SECONDS: Final = 0.3
_log: Final = logging.getLogger(__name__)


class IndexWorker:
    """Follows in a thread from `start` to `close`; `find` may be called from any thread."""

    def __init__(self, url: str, directory: Path) -> None:
        self._url, self._directory = url, directory
        self._indexes: dict[int, TenantIndex] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="index-worker", daemon=True)
        self.ready = threading.Event()
        """Set while all sessions have been compared and nothing failed since."""

    def start(self) -> None:
        """Begin to follow."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def find(self, tenant: int, terms: Sequence[Term], below: int) -> tuple[list[int], bool]:
        """Return numbers of events that may match, the newest first, and whether that is all.

        Where it is not, more of them are below the last number.
        """
        found: list[int] = []
        end = time.monotonic() + ANSWER_SECONDS
        for number in islice(matches(self._path(tenant), terms, below), ANSWER_MAX):
            found.append(number)
            if time.monotonic() > end:
                return found, False
        return found, len(found) < ANSWER_MAX

    def _path(self, tenant: int) -> Path:
        return self._directory / f"index-{tenant}.db"

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with WorkerStore(self._url) as store:
                    self._follow(store)
            except (StoreError, StateError) as error:  # the store or a file; it begins again with a comparison
                _log.warning("the index worker waits", extra={"reason": str(error)})
                self.ready.clear()
                self._stop.wait(_RETRY_SECONDS)
            finally:
                for index in self._indexes.values():
                    index.close()
                self._indexes.clear()

    def _follow(self, store: WorkerStore) -> None:
        """Compare everything, then follow what is done, for an hour."""
        at, end, heard = store.now(), time.monotonic() + _COMPARE_SECONDS, 0.0
        tenants = store.tenants()
        self._remove_files(tenants)
        for tenant in tenants:
            self._compare(store, tenant)
        self.ready.set()
        while not self._stop.is_set() and time.monotonic() < end:
            changes, until = store.changes(at)
            self._apply(store, changes)
            if changes or time.monotonic() - heard > _HEARD_SECONDS:
                store.confirm(until)
                heard = time.monotonic()
            if until == at or not changes:
                self._stop.wait(_LOOK_SECONDS)
            at = until

    def _remove_files(self, tenants: Iterable[int]) -> None:
        known = {self._path(tenant).name for tenant in tenants}
        for path in self._directory.glob("index-*.db*"):
            if path.name.removesuffix("-wal").removesuffix("-shm") not in known:
                path.unlink(missing_ok=True)

    def _compare(self, store: WorkerStore, tenant: int) -> None:
        index = self._index(store, tenant)
        here, there = index.counts(), store.read(tenant, _counts)
        wrong = [session for session, count in here.items() if count > there.get(session, 0)]
        if wrong:
            index.remove(wrong, self._rows_between(store, tenant))
        for session, count in there.items():
            if session in wrong or here.get(session) != count:
                self._add(store, tenant, session, 0, 1 << 62)

    def _apply(self, store: WorkerStore, changes: Iterable[Change]) -> None:
        deleted: defaultdict[int, set[int]] = defaultdict(set)
        known = set(store.tenants()) if changes else set[int]()
        for tenant, session, first, count in changes:
            if tenant not in known:  # it was removed: its file goes with the next comparison
                self._forget_tenant(tenant)
            elif count:
                self._add(store, tenant, session, first, first + count)
            else:
                deleted[tenant].add(session)
        for tenant, sessions in deleted.items():
            self._index(store, tenant).remove(sessions, self._rows_between(store, tenant))

    def _forget_tenant(self, tenant: int) -> None:
        if (index := self._indexes.pop(tenant, None)) is not None:
            index.close()
        for suffix in ("", "-wal", "-shm"):
            path = self._path(tenant)
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    def _add(self, store: WorkerStore, tenant: int, session: int, first: int, end: int) -> None:
        index = self._index(store, tenant)
        for rows in self._rows(store, tenant, first, end, session):
            index.add(rows)

    def _index(self, store: WorkerStore, tenant: int) -> TenantIndex:
        if tenant not in self._indexes:
            self._indexes[tenant] = TenantIndex(self._path(tenant), store.read(tenant, identity))
        return self._indexes[tenant]

    def _rows_between(self, store: WorkerStore, tenant: int) -> RowsBetween:
        return lambda first, end: self._rows(store, tenant, first, end)

    def _rows(
        self, store: WorkerStore, tenant: int, first: int, end: int, session: int | None = None
    ) -> Iterator[list[Row]]:
        """Yield events with these numbers, of one session or of all, some at a time."""
        while not self._stop.is_set():
            rows = store.read(tenant, lambda database: rows_from(database, first, end, session))  # noqa: B023
            if not rows:
                return
            yield rows
            first = rows[-1][0] + 1
        raise StoreError("the worker ends")  # what is half done is not kept


def _counts(database: Database) -> dict[int, int]:
    return dict(database.execute("SELECT session, count(*) FROM events GROUP BY session").fetchall())
