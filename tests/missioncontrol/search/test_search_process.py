"""A long backlog of the search index is worked off by a process of its own, and nothing depends on how that ends."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from exporter.missioncontrol.ingest import write_jobs
from exporter.missioncontrol.ingest.batch import Elements, sort_out
from exporter.missioncontrol.search.fts5 import path_beside
from exporter.missioncontrol.search.search import SearchIndex
from exporter.missioncontrol.search.search_query import numbers, understand
from exporter.missioncontrol.store.session_row import number_of
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

NOW = "2026-11-18T10:00:00.000Z"
EVENTS = 24_000

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"), pytest.mark.slow]


@pytest.fixture
def filled(store_path: Path, make_event: Callable[..., bytes]) -> Iterator[Store]:
    with Store(store_path) as store:
        for session in ("one", "two"):
            store.do(lambda database, id=session: write_jobs.register(database, id, id, NOW))  # type: ignore[misc]
            for first in range(0, EVENTS // 2, 2000):
                lines = [
                    make_event(f"{session}-{first + n}", data={"text": f"marked {session}word" + " filler" * 60})
                    for n in range(2000)
                ]
                batch = sort_out(Elements(lines, []), event_bytes_max=1 << 20)
                store.do(lambda database, id=session, some=batch: write_jobs.store_batch(database, id, some, NOW))  # type: ignore[misc]
        yield store


def found(search: SearchIndex, words: str) -> list[int]:
    query = understand(words)
    assert query is not None
    return search.read(lambda index: list(numbers(index, query, None)))


def fillers(of: int) -> list[int]:
    """The processes that this one has started to fill an index."""
    children = Path(f"/proc/{of}/task").glob("*/children")
    started = [int(child) for task in children for child in task.read_text().split()]
    return [child for child in started if b"missioncontrol.search" in Path(f"/proc/{child}/cmdline").read_bytes()]


def wait_for_filler(of: int) -> int:
    end = time.monotonic() + 20
    while not (there := fillers(of)):
        assert time.monotonic() < end
        time.sleep(0.005)
    return there[0]


def wait_until_gone(pid: int) -> None:
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_another_process_fills_the_index_and_ends(filled: Store) -> None:
    search = SearchIndex(filled)
    search.wake()
    filler = wait_for_filler(os.getpid())

    assert search.catch_up(EVENTS, 60)
    wait_until_gone(filler)

    assert found(search, "marked") == list(range(EVENTS, 0, -1))


def test_killed_at_any_moment_it_leaves_an_index_that_has_each_event_once(filled: Store) -> None:
    chance = random.Random(5)
    search = SearchIndex(filled)
    search.wake()
    os.kill(wait_for_filler(os.getpid()), 0)
    time.sleep(0.2 + chance.random() / 2)
    for filler in fillers(os.getpid()):
        os.kill(filler, signal.SIGKILL)

    assert search.catch_up(EVENTS, 60)
    assert found(search, "marked") == list(range(EVENTS, 0, -1))


def test_closing_the_store_ends_it(filled: Store) -> None:
    search = SearchIndex(filled)
    search.wake()
    filler = wait_for_filler(os.getpid())

    filled.close()

    assert not Path(f"/proc/{filler}").exists()


def test_a_session_that_is_deleted_meanwhile_leaves_no_word(filled: Store) -> None:
    search = SearchIndex(filled)
    search.wake()
    wait_for_filler(os.getpid())

    search.forget([filled.read_now(lambda database: number_of(database, "two"))]).result(60)
    filled.do(lambda database: write_jobs.forget_session(database, "two", NOW))

    assert search.catch_up(EVENTS // 2, 60)
    assert (len(found(search, "oneword")), found(search, "twoword")) == (EVENTS // 2, [])
    assert filled.path is not None
    for file in path_beside(filled.path).parent.glob("*-search*"):
        assert b"twoword" not in file.read_bytes()


def test_it_ends_with_the_program_that_started_it(filled: Store, store_path: Path) -> None:
    script = (
        "import sys, time; from exporter.missioncontrol.search.search import SearchIndex;"
        " from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store;"
        " SearchIndex(Store(sys.argv[1])).wake(); time.sleep(60)"
    )
    filled.close()
    program = subprocess.Popen([sys.executable, "-c", script, str(store_path)])
    filler = wait_for_filler(program.pid)

    program.kill()
    program.wait()

    wait_until_gone(filler)
    with closing(sqlite3.connect(path_beside(store_path))) as index:
        assert index.execute("SELECT until FROM indexed").fetchone()[0] <= EVENTS
