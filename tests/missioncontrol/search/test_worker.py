"""Index workers: what they find, what they forget, whom they tell, and what a receiver makes of them."""

import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import errors

from exporter.missioncontrol.search import worker as worker_module
from exporter.missioncontrol.search.index import Term
from exporter.missioncontrol.search.remote import IndexWorkers
from exporter.missioncontrol.search.worker import IndexWorker
from exporter.missioncontrol.store import tenants
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.missioncontrol.store.postgresql.worker_store import WorkerStore
from exporter.wiring.index_worker import serving
from tests.missioncontrol.conftest import DECLARED, Opener
from tests.missioncontrol.store_contract import NOW, event, register, store_events

pytestmark = pytest.mark.anyio
PATIENCE = 60
TOKEN = "only for this test"
LAST = 1 << 62


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres_url) as opened:
        yield opened


@pytest.fixture
def worker(postgres_url: str, tmp_path: Path) -> Iterator[IndexWorker]:
    with running(postgres_url, tmp_path) as started:
        yield started


class running:  # noqa: N801  used like a function
    """A worker on files in this directory, once it has compared all sessions."""

    def __init__(self, url: str, directory: Path) -> None:
        self.worker = IndexWorker(url, directory)

    def __enter__(self) -> IndexWorker:
        self.worker.start()
        assert self.worker.ready.wait(PATIENCE)
        return self.worker

    def __exit__(self, *_: object) -> None:
        self.worker.close()


def found(worker: IndexWorker, word: str, tenant: int = 1) -> list[int]:
    numbers, whole = worker.find(tenant, [Term(word)], LAST)
    assert whole
    return numbers


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def numbers(database: Database) -> list[int]:
    return [n for (n,) in database.execute("SELECT n FROM events ORDER BY n DESC")]


def in_files(directory: Path, word: bytes) -> list[str]:
    return [path.name for path in directory.iterdir() if word in path.read_bytes()]


def test_what_is_stored_is_found_by_its_words_and_what_is_deleted_is_in_no_file(
    store: PostgresStore, worker: IndexWorker, tmp_path: Path
) -> None:
    for session, word in (("a", "quokka"), ("b", "wombat"), ("c", "quokka wombat")):
        store.do(register(session))
        store.do(store_events(session, event(f"{session}1", word), event(f"{session}2", "nothing")))
    until(lambda: len(found(worker, "nothing")) == 3)

    assert [len(found(worker, word)) for word in ("quokka", "wombat", "never")] == [2, 2, 0]
    assert found(worker, "nothing") == [n for n in store.read_now(numbers) if n in found(worker, "nothing")]
    assert in_files(tmp_path, b"wombat")
    for session in ("b", "c"):
        store.do(lambda database, session=session: forget(database, session))  # type: ignore[misc]
    until(lambda: not in_files(tmp_path, b"wombat"))
    assert [len(found(worker, word)) for word in ("quokka", "wombat", "nothing")] == [1, 0, 1]


def forget(database: Database, session: str) -> None:
    from exporter.missioncontrol.ingest import write_jobs

    write_jobs.forget_session(database, session, NOW)


def test_a_tenant_finds_its_own_and_a_removed_one_leaves_no_file(
    store: PostgresStore, worker: IndexWorker, tmp_path: Path
) -> None:
    red = store.tenant(number := tenants.create(store, "red", NOW))
    for one, word in ((store, "quokka"), (red, "wombat")):
        one.do(register("same"))
        one.do(store_events("same", event("e1", word)))
    until(lambda: bool(found(worker, "wombat", number)) and bool(found(worker, "quokka")))

    assert (found(worker, "wombat"), found(worker, "quokka", number), found(worker, "quokka", 999)) == ([], [], [])
    red.do(lambda database: forget(database, "same"))
    store.remove_tenant(number)
    until(lambda: not in_files(tmp_path, b"wombat"))


def test_events_whose_transaction_began_before_others_and_ended_after_them_are_found(
    store: PostgresStore, worker: IndexWorker
) -> None:
    store.do(register("slow"))
    store.do(register("fast"))
    go_on = threading.Event()

    def slowly(database: Database) -> None:
        store_events("slow", event("s1", "tortoise"))(database)
        go_on.wait(PATIENCE)

    answer = store.submit(slowly)
    store.do(store_events("fast", event("f1", "hare")))
    time.sleep(3 * worker_module._LOOK_SECONDS)
    go_on.set()
    answer.result(PATIENCE)

    until(lambda: bool(found(worker, "tortoise")) and bool(found(worker, "hare")))


def test_a_worker_that_was_away_or_lost_its_files_finds_what_was_done_meanwhile(
    store: PostgresStore, postgres_url: str, tmp_path: Path
) -> None:
    for session in ("a", "b"):
        store.do(register(session))
        store.do(store_events(session, event("e1", f"quokka {session}")))
    with running(postgres_url, tmp_path) as worker:
        assert len(found(worker, "quokka")) == 2
    store.do(lambda database: forget(database, "a"))
    store.do(store_events("b", event("e2", "wombat")))
    store.do(lambda database: database.execute("SELECT trim_changed()").fetchone())

    for is_lost in (False, True):
        if is_lost:
            for path in tmp_path.iterdir():
                path.unlink()
        with running(postgres_url, tmp_path) as worker:
            assert (len(found(worker, "quokka")), len(found(worker, "wombat"))) == (1, 1)


def test_a_worker_writes_nothing_but_how_far_it_is_and_reads_no_secret(store: PostgresStore, postgres_url: str) -> None:
    del store
    with WorkerStore(postgres_url) as reading:
        assert reading.read(1, lambda database: database.execute("SELECT current_user").fetchone()) == (
            "exporter_index",
        )
    refused = (
        "INSERT INTO changed (session, first, count) VALUES (1, 1, 1)", "DELETE FROM events", "DELETE FROM changed",
        "UPDATE sessions SET id = 'x'", "SELECT value FROM secrets", "SELECT hash FROM tokens", "SELECT who FROM audit",
        "SELECT hash FROM shares", "SELECT add_tenant('x')", "SELECT trim_changed()",
    )  # fmt: skip
    with psycopg.connect(postgres_url) as raw:
        for statement in refused:
            raw.execute("SET LOCAL ROLE exporter_index; SET LOCAL search_path = mission_control")
            raw.execute("SET LOCAL exporter.tenant = 1")
            with pytest.raises(errors.InsufficientPrivilege):
                raw.execute(statement.encode())
            raw.rollback()


@pytest.fixture
async def searched(
    store: PostgresStore, postgres_url: str, tmp_path: Path, open_client: Opener
) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """A client of a receiver that asks a worker, and the worker's address."""
    async with serving(postgres_url, tmp_path / "index", "127.0.0.1", 0, token=TOKEN) as address:
        workers = IndexWorkers(["http://127.0.0.1:1", address], TOKEN)
        async with open_client(store, workers=workers, headers=DECLARED) as client:
            await client.post("/agents/sessions", json={"id": "s"})
            yield client, address


async def test_a_receiver_asks_a_worker_and_reads_the_events_itself(
    searched: tuple[httpx.AsyncClient, str], make_body: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, address = searched
    words = [f"number{n} quokka" for n in range(25)]
    await client.post(
        "/agents/sessions/s/events", content=make_body(*(event(f"e{n}", word) for n, word in enumerate(words)))
    )
    monkeypatch.setattr(worker_module, "ANSWER_MAX", 10)  # so that a search takes several answers
    asked: dict[str, str | int] = {"tenant": 1, "below": LAST, "terms": json.dumps([["quokka", False]])}
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=address, headers=headers) as direct:
        end = time.monotonic() + PATIENCE
        while len((await direct.get("/search", params=asked)).json()["numbers"]) < 10:
            assert time.monotonic() < end
        answer = (await direct.get("/search", params=asked)).json()
        bare = await direct.get("/search", params=asked, headers={"Authorization": "Bearer wrong"})
        bad = await direct.get("/search", params={"tenant": "x"})
        ready = await direct.get("/readyz")

    first = (await client.get("/api/v1/search?q=quokka&limit=20")).json()
    rest = (await client.get(f"/api/v1/search?q=quokka&limit=20&cursor={first['next']}")).json()

    shown = [one["event"] for one in (*first["results"], *rest["results"])]
    assert shown == [f"e{n}" for n in reversed(range(25))]
    assert (set(answer), len(answer["numbers"]), answer["whole"]) == ({"numbers", "whole"}, 10, False)
    assert (bare.status_code, bad.status_code, ready.status_code) == (401, 400, 200)


async def test_a_worker_that_lies_shows_nothing_of_another_tenant(
    store: PostgresStore, open_client: Opener, make_body: Callable[..., bytes]
) -> None:
    red = store.tenant(tenants.create(store, "red", NOW))
    red.do(register("hidden"))
    red.do(store_events("hidden", event("e1", "quokka")))
    every = red.read_now(numbers)

    class Lying(IndexWorkers):
        def matches(self, tenant: int, terms: Any, below: int) -> Iterator[int]:
            assert (tenant, [term.word for term in terms]) == (1, ["quokka"])
            return iter(every)

    async with open_client(store, workers=Lying([], TOKEN)) as client:
        results = (await client.get("/api/v1/search?q=quokka")).json()["results"]

    assert (len(every), results) == (1, [])


async def test_without_a_worker_that_answers_the_events_are_searched(
    store: PostgresStore, open_client: Opener, make_body: Callable[..., bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async with open_client(store, workers=IndexWorkers(["http://127.0.0.1:1"], TOKEN)) as client:
        await client.post("/agents/sessions", json={"id": "s"})
        await client.post("/agents/sessions/s/events", content=make_body(event("e1", "quokka")))
        results = (await client.get("/api/v1/search?q=quokka")).json()["results"]

    assert [one["event"] for one in results] == ["e1"]
    assert "no index worker answers" in caplog.text
