"""Large strings are stored once, come back byte for byte, and can be left out of a list."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.missioncontrol.store import payloads
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.sqlite.database import open_database
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
LARGE = 'many words of a large output\n\t"quoted" \\ ü 日本 ' * 2000


def _put(database: Database, session: int, body: bytes) -> tuple[bytes, bytes | None]:
    large = payloads.find(body)
    return payloads.cut_out(body, large, payloads.keep(database, session, [(body, large)]))


def blobs(store: Store) -> int:
    count: int = store.do(lambda database: database.execute("SELECT count(*) FROM blobs").fetchone()[0])
    return count


async def post(client: httpx.AsyncClient, body: bytes, session: str = "s") -> None:
    await client.post("/agents/sessions", json={"id": session})
    assert (await client.post(f"/agents/sessions/{session}/events", content=body)).status_code == 200


async def test_a_large_string_is_stored_once_and_comes_back_as_it_was(
    client: httpx.AsyncClient, store: Store, make_event: Make, make_body: Make
) -> None:
    events = [make_event(f"e{n}", data={"n": n, "result": {"content": LARGE}, "after": "x"}) for n in range(5)]
    for session in ("s", "t"):
        await post(client, make_body(*events), session)

    content = (await client.get("/api/v1/sessions/t/events")).content
    one = (await client.get("/api/v1/sessions/s/events/e3")).content

    assert content == b'{"events":[' + b",".join(events) + b'],"next":null}'
    assert one == events[3]
    assert blobs(store) == 1
    assert (await client.get("/api/v1/sessions/s/events/nobody")).status_code == 404


async def test_a_list_may_leave_large_strings_out(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    await post(client, make_body(make_event("e", data={"n": 1, "content": LARGE}), make_event("f")))

    answer = await client.get("/api/v1/sessions/s/events?large=omit")

    large = answer.json()["events"][0]["data"]["content"]["$large"]
    assert len(answer.content) < 3000
    assert LARGE.startswith(large["start"])
    assert len(large["start"]) > 100
    assert large["bytes"] == len(json.dumps(LARGE))


async def test_what_two_sessions_hold_goes_with_the_last(
    client: httpx.AsyncClient, store: Store, make_event: Make, make_body: Make
) -> None:
    event = make_event("e", data={"content": LARGE})
    for session in ("s", "t"):
        await post(client, make_body(event), session)

    await client.delete("/api/v1/sessions/s")
    left = blobs(store)
    content = (await client.get("/api/v1/sessions/t/events/e")).content
    await client.delete("/api/v1/sessions/t")

    assert (left, content, blobs(store)) == (1, event, 0)


async def test_large_texts_are_found_and_told(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    message = make_event("m", "user.message", data={"content": "Title of it\n" + LARGE + " needle"})
    await post(client, make_body(message, make_event("x"), make_event("y")))
    await post(client, make_body(rewound=["y"]))

    found = (await client.get("/api/v1/search?q=needle")).json()["results"]

    assert [result["event"] for result in found] == ["m"]
    assert (await client.get("/api/v1/sessions/s")).json()["title"] == "Title of it"


strings = st.sampled_from(["", "a", '"', "\\", '\\\\"', "ü", "\u2028", "{}[],:"]).map(lambda part: part * 20_000)
values = st.recursive(
    strings | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings | st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text of a value but the names of fields."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from texts_in(inner)


@settings(max_examples=200, deadline=None)
@given(value=values, ascii=st.booleans(), gap=st.sampled_from([(",", ":"), (" , ", " : ")]))
def test_any_event_is_put_together_again(value: Any, ascii: bool, gap: tuple[str, str]) -> None:
    body = json.dumps({"id": "e", "data": value}, ensure_ascii=ascii, separators=gap).encode()
    database = open_database(None, print)

    stored, cuts = _put(database, 1, body)

    assert payloads.whole(database, stored, cuts) == body
    assert len(payloads.find(body)) == sum(
        len(json.dumps(text, ensure_ascii=ascii).encode()) >= payloads.LARGE_BYTES for text in texts_in(value)
    )
    assert (cuts is None) == (stored == body)
    json.loads(stored)
    database.close()


def test_a_store_on_disk_is_as_large_as_what_is_different(store_path: Path, make_event: Make) -> None:
    database = open_database(store_path, print)
    database.execute("BEGIN")
    for number in range(100):
        body = make_event(f"e{number}", data={"content": "z" * 200_000})
        _put(database, number, body)
    database.execute("COMMIT")
    database.close()

    assert store_path.stat().st_size < 1_000_000
