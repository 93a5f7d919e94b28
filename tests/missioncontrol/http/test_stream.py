"""What watchers are told, and what a slow one costs."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.live.subscriptions import LiveSubscriptions, TooManySubscribersError
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


@pytest.fixture
async def served(store_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    with Store(store_path) as store:
        server = await serve_http(create_app(store), "127.0.0.1", 0, explicit_port=True)
        async with httpx.AsyncClient(base_url=server.url, headers={"Session-Exporter": "1"}) as client:
            for id in ("s", "other"):
                await client.post("/agents/sessions", json={"id": id})
            yield client
        await server.stop()


async def messages(answer: httpx.Response) -> AsyncIterator[tuple[str, dict[str, object]]]:
    """Yield each server-sent event, and ("open", {}) when the stream has begun."""
    name, data = "", list[str]()
    async for line in answer.aiter_lines():
        if line == ": open":
            yield "open", {}
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line and name:
            yield name, json.loads("\n".join(data))
            name, data = "", []


async def test_a_watcher_is_told_of_new_events_and_changes(
    served: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    async with served.stream("GET", "/api/v1/stream?session=s") as answer:
        told = messages(answer)
        assert await anext(told) == ("open", {})

        await served.post("/agents/sessions/other/events", content=make_body(make_event("not-this")))
        pretty = b'{"type":"x",\r\n "id":"a"}'
        await served.post("/agents/sessions/s/events", content=make_body(pretty, make_event("e", ephemeral=True)))
        await served.post("/agents/sessions/s/events", content=make_body(pretty))
        await served.post("/agents/sessions/s/live", content=make_body(make_event("l", ephemeral=True)))
        await served.delete("/api/v1/sessions/s")

        got = [await anext(told) for _ in range(5)]

    assert [name for name, _ in got] == ["events", "events", "session", "events", "session"]
    assert got[0][1] == {"session": "s", "ephemeral": False, "events": [{"type": "x", "id": "a"}]}
    assert got[1][1]["ephemeral"] is True
    assert got[3][1]["ephemeral"] is True
    assert got[4][1] == {"session": "s", "deleted": True}


async def test_a_durable_event_sent_as_live_is_neither_stored_nor_told(
    served: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    answer = await served.post("/agents/sessions/s/live", content=make_body(make_event("a")))

    assert answer.json() == {"accepted": 0}
    assert (await served.get("/api/v1/sessions/s/digest")).json()["count"] == 0


async def test_a_slow_watcher_loses_the_oldest_and_is_told_how_many() -> None:
    live = LiveSubscriptions()
    stream = live.messages(None)
    await anext(stream)

    for number in range(300):
        live.publish_events("s", [b'{"n":%d}' % number], ephemeral=True)
    first, second = await anext(stream), await anext(stream)

    assert first == b'event: dropped\ndata: {"messages":44}\n\n'
    assert b'{"n":44}' in second


async def test_what_waits_for_a_watcher_is_bounded_in_bytes() -> None:
    live = LiveSubscriptions()
    with live.subscribe(None) as watcher:
        for _ in range(40):
            live.publish_events("s", [b'"' + b"x" * (1 << 20) + b'"'], ephemeral=True)

        assert watcher.size_bytes <= 8 << 20
        assert sum(map(len, watcher.waiting)) == watcher.size_bytes


async def test_the_number_of_watchers_is_bounded() -> None:
    live = LiveSubscriptions()
    streams = [live.messages(None) for _ in range(256)]
    for stream in streams:
        await anext(stream)

    with pytest.raises(TooManySubscribersError):
        await anext(live.messages(None))

    await streams[0].aclose()  # type: ignore[attr-defined]  # an async generator has it
    assert len(live) == 255


async def test_closing_ends_every_stream() -> None:
    live = LiveSubscriptions()
    stream = live.messages("s")
    await anext(stream)

    live.close()

    assert [message async for message in stream] == []
    assert len(live) == 0


async def test_a_watcher_that_goes_away_is_forgotten(served: httpx.AsyncClient) -> None:
    async def watching() -> str:
        lines = (await served.get("/metrics")).text.splitlines()
        return next(line for line in lines if line.startswith("exporter_receiver_streams "))

    async with served.stream("GET", "/api/v1/stream") as answer:
        told = messages(answer)
        await anext(told)
        open_then = await watching()

    for _ in range(100):
        if (left := await watching()).endswith(" 0"):
            break
    assert (open_then, left) == ("exporter_receiver_streams 1", "exporter_receiver_streams 0")
