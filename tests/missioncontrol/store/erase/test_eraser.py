"""A session is deleted while another program reads the store: nobody waits long, and nobody is told too much."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Make = Callable[..., bytes]
TEXT = "heldsecrettext"


@pytest.fixture(autouse=True)
def _few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.missioncontrol.store.eraser._TRIES_SECONDS", 0.5)
    monkeypatch.setattr("exporter.missioncontrol.store.eraser._LATER_SECONDS", 0.05)


@pytest.fixture(params=["mission-control.db", "mission-control-search.db"])
def other(request: pytest.FixtureRequest, store_path: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Opens what a backup would: a connection that reads the store, or its index, and goes on reading."""
    path = store_path.with_name(request.param)
    opened: list[sqlite3.Connection] = []

    def read() -> sqlite3.Connection:
        opened.append(sqlite3.connect(path, isolation_level=None))
        opened[-1].execute("BEGIN")
        opened[-1].execute("SELECT count(*) FROM sqlite_master").fetchone()
        return opened[-1]

    yield read
    for one in opened:
        one.close()


def holding(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if TEXT.encode() in path.read_bytes())


async def finished(store: Store) -> None:
    for _ in range(1000):
        if not store.do(lambda database: database.has_text_to_erase()):
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it is not worked off")


async def fill(client: Any, make_event: Make, make_body: Make) -> None:
    await client.post("/agents/sessions", json={"id": "s"})
    event = make_event("e", "user.message", data={"content": TEXT})
    await client.post("/agents/sessions/s/events", content=make_body(event))
    for _ in range(1000):
        if (await client.get("/api/v1/search", params={"q": TEXT})).json()["results"]:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it is not found")


async def test_the_answer_says_that_text_is_left_until_the_other_program_ends(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make, other: Callable[[], sqlite3.Connection]
) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await fill(client, make_event, make_body)
            reading = other()

            deleting = asyncio.create_task(client.delete("/api/v1/sessions/s"))
            begun = time.monotonic()
            written = await client.post("/agents/sessions", json={"id": "other"})
            waited = time.monotonic() - begun
            first = await deleting
            shown = await client.get("/api/v1/sessions/s")
            again = await client.delete("/api/v1/sessions/s")
            reading.close()
            last = await client.delete("/api/v1/sessions/s")
            after = holding(store_path.parent)
            done = await client.delete("/api/v1/sessions/s")

    assert (written.status_code, waited < 2) == (200, True)
    assert [first.status_code, again.status_code, shown.status_code] == [503, 503, 410]
    error = first.json()["error"]
    assert error["kind"] == "text_still_in_log"
    assert "another program" in error["message"]
    assert error["hint"]
    assert last.status_code in (204, 410)  # 410 when it was worked off on its own before
    assert after == []
    assert done.status_code == 410


async def test_what_is_left_is_worked_off_without_being_asked(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make, other: Callable[[], sqlite3.Connection]
) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await fill(client, make_event, make_body)
            with closing(other()):
                assert (await client.delete("/api/v1/sessions/s")).status_code == 503

            await finished(store)

            assert holding(store_path.parent) == []


async def test_what_is_left_is_worked_off_at_the_next_start(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make
) -> None:
    with Store(store_path) as store, closing(sqlite3.connect(store_path, isolation_level=None)) as reading:
        async with open_client(store) as client:
            await fill(client, make_event, make_body)
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM sessions").fetchone()
            assert (await client.delete("/api/v1/sessions/s")).status_code == 503
            client._transport.app.state.receiver.close()
        store.close()

        assert holding(store_path.parent)
        reading.execute("COMMIT")
        with Store(store_path) as opened:
            app = create_app(opened)
            async with app.router.lifespan_context(app):
                await finished(opened)

                assert holding(store_path.parent) == []


async def test_a_person_reads_on_the_page_that_text_is_left(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make, other: Callable[[], sqlite3.Connection]
) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await fill(client, make_event, make_body)
            with closing(other()):
                answer = await client.post(
                    "/sessions/s/forget", headers={"Accept": "text/html", "Origin": "http://localhost"}
                )

    assert answer.status_code == 503
    assert "is deleted and shown no more, but its text is still in the store" in answer.text
    assert "End that program" in answer.text
