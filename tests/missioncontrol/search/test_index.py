"""The search index when sessions are deleted: nothing is waited for that is gone, and no word comes back."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from exporter.missioncontrol import receiver
from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import Elements, sort_out
from exporter.missioncontrol.search.fts5 import Fts5Index, open_index, path_beside
from exporter.missioncontrol.search.index import Term, read_on, rows_of
from exporter.missioncontrol.store.queries import identity
from exporter.missioncontrol.store.session_row import number_of
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.missioncontrol.search.test_search import find

NOW = "2026-11-18T10:00:00.000Z"
Make = Callable[..., bytes]


@pytest.fixture
def filled(store_path: Path, make_event: Make) -> Iterator[Store]:
    """A store of two sessions that no index has read yet."""
    with Store(store_path) as store:
        for id in ("kept", "gone"):
            lines = [make_event(f"{id}{n}", data={"text": f"{id}word"}) for n in range(5)]
            batch = sort_out(Elements(lines, []), event_bytes_max=1 << 20)
            store.do(lambda database, id=id: write_jobs.register(database, id, id, NOW))  # type: ignore[misc]
            store.do(lambda database, id=id, some=batch: write_jobs.store_batch(database, id, some, NOW))  # type: ignore[misc]
        yield store


def take_out(index: Fts5Index, store: Store, session: int) -> None:
    index.remove(
        session, lambda after, until: store.read_now(lambda database: rows_of(database, session, after, until))
    )


@pytest.mark.anyio
async def test_a_search_does_not_wait_for_events_that_were_deleted_before_they_were_indexed(
    filled: Store, open_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.do(lambda database: write_jobs.forget_session(database, "gone", NOW))
    monkeypatch.setattr(receiver, "_FRESH_SECONDS", 30.0)
    async with open_client(filled) as client:
        start = time.monotonic()

        assert len(await find(client, "keptword")) == 5

        assert time.monotonic() - start < 15


def test_what_another_process_has_read_before_a_session_is_forgotten_is_not_put_back(filled: Store) -> None:
    assert filled.path is not None
    path, known = path_beside(filled.path), filled.read_now(identity)
    session = filled.read_now(lambda database: number_of(database, "gone"))
    with closing(open_index(path, known)) as index, closing(open_index(path, known)) as other:
        texts = read_on(other, filled.read_now)
        assert texts is not None
        take_out(index, filled, session)

        other.put(texts)
        while (texts := read_on(other, filled.read_now)) is not None:
            other.put(texts)

        assert list(index.matches([Term("goneword")], 1 << 62)) == []
        assert list(index.matches([Term("keptword")], 1 << 62)) == [5, 4, 3, 2, 1]


def test_what_another_process_puts_in_while_a_session_is_being_forgotten_is_taken_out(filled: Store) -> None:
    assert filled.path is not None
    path, known = path_beside(filled.path), filled.read_now(identity)
    session = filled.read_now(lambda database: number_of(database, "gone"))
    with closing(open_index(path, known)) as index, closing(open_index(path, known)) as other:
        texts = read_on(other, filled.read_now)
        assert texts is not None
        index.database.set_trace_callback(
            lambda statement: other.put(texts) if statement == "BEGIN IMMEDIATE" else None
        )

        take_out(index, filled, session)

        assert list(index.matches([Term("keptword")], 1 << 62)) == [5, 4, 3, 2, 1]
        assert list(index.matches([Term("goneword")], 1 << 62)) == []
