"""Two receivers on one database: what one is told, pages at the other one show, live."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.postgresql.connection import open_connection
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from tests.missioncontrol.conftest import DECLARED
from tests.missioncontrol.store.postgresql.link import Link

pytestmark = pytest.mark.anyio
PATIENCE = 60


@asynccontextmanager
async def receiver(url: str) -> AsyncIterator[httpx.AsyncClient]:
    with PostgresStore(url) as store:
        server = await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True)
        async with httpx.AsyncClient(base_url=server.url, headers=DECLARED, timeout=PATIENCE) as client:
            yield client
        await server.stop()


@pytest.fixture(params=["woken", "behind a pooler"])
async def pair(
    request: pytest.FixtureRequest, postgres_url: str
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Two receivers; behind a pooler nobody can LISTEN, so they look every second."""
    link = Link(postgres_url, is_pooler=request.param != "woken")
    async with AsyncExitStack() as stack:
        stack.callback(link.close)
        yield await stack.enter_async_context(receiver(link.url)), await stack.enter_async_context(receiver(link.url))


class Stream:
    """The messages of a stream as they come; `until` returns the first that is as wanted."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def until(self, wanted: Callable[[str, dict[str, Any]], bool]) -> dict[str, Any]:
        name = ""
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    data: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    if wanted(name, data):
                        return data
        raise AssertionError("the stream ended")


@asynccontextmanager
async def streaming(client: httpx.AsyncClient, query: str = "") -> AsyncIterator[Stream]:
    async with client.stream("GET", f"/api/v1/stream{query}") as response:
        lines = response.aiter_lines()
        assert await anext(lines) == ": open"
        yield Stream(lines)


@pytest.mark.parametrize("is_pooler", [False, True])
def test_a_pooler_is_known_by_the_number_that_it_says(postgres_url: str, is_pooler: bool) -> None:
    link = Link(postgres_url, is_pooler=is_pooler)
    opened = open_connection(link.url, "default")
    with opened.raw as raw:
        assert opened.behind_pooler is is_pooler
        assert (raw.prepare_threshold is None) is is_pooler
    link.close()


async def test_what_one_receiver_stores_the_other_ones_stream_has(
    pair: tuple[httpx.AsyncClient, httpx.AsyncClient], make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    one, other = pair
    await one.post("/agents/sessions", json={"id": "s"})
    async with streaming(other, "?session=s") as stream:
        for number in range(3):
            event = make_event(f"e{number}", data={"text": f"a\0b {number}"})
            assert (await one.post("/agents/sessions/s/events", content=make_body(event))).status_code == 200

            told = await stream.until(lambda name, _: name == "events")

            assert [found["id"] for found in told["events"]] == [f"e{number}"]
            assert not told["ephemeral"]


async def test_what_is_only_live_reaches_the_other_receiver_and_its_feed(
    pair: tuple[httpx.AsyncClient, httpx.AsyncClient], make_event: Callable[..., bytes], make_body: Callable[..., bytes]
) -> None:
    one, other = pair
    await one.post("/agents/sessions", json={"id": "s"})
    asked = {"requestId": "r", "permissionRequest": {"kind": "shell", "fullCommandText": "rm -r /tmp/x"}}
    request = make_event("p1", "permission.requested", ephemeral=True, data=asked)
    async with streaming(other) as stream:
        await one.post("/agents/sessions/s/live", content=make_body(request))
        told = await stream.until(lambda name, _: name == "events")
        assert (told["ephemeral"], told["events"][0]["id"]) == (True, "p1")
        feed = (await other.get("/api/v1/notifications")).json()["notifications"]
        assert [entry["text"] for entry in feed] == ["Run rm -r /tmp/x"]
        assert (await other.get("/api/v1/sessions/s")).json()["state"] == "needs_attention"

        answered = make_event("p2", "permission.completed", ephemeral=True, data={"requestId": "r"})
        await other.post("/agents/sessions/s/live", content=make_body(answered))
        for _ in range(PATIENCE * 20):  # there is no message that says it
            if not (await one.get("/api/v1/notifications")).json()["notifications"]:
                break
            await asyncio.sleep(0.05)

    assert (await one.get("/api/v1/sessions/s")).json()["state"] == "idle"


async def test_the_other_receiver_says_that_a_session_was_deleted_and_an_exporter_reported(
    pair: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    one, other = pair
    await one.post("/agents/sessions", json={"id": "s"})
    async with streaming(other) as stream:
        await one.post("/agents/exporters/x", json={"version": "1"})
        assert await stream.until(lambda name, _: name == "exporter") == {"exporter": "x"}
        await one.delete("/api/v1/sessions/s")
        assert (await stream.until(lambda _, data: data.get("deleted") is True))["session"] == "s"

    assert (await other.get("/api/v1/sessions/s")).status_code == 410
