"""Finding events by their words, and that a deleted session's words are in no file."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.search import fts5
from exporter.missioncontrol.search.search_query import understand
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def store_texts(client: httpx.AsyncClient, make_event: Make, make_body: Make, *texts: str, s: str = "s") -> None:
    await client.post("/agents/sessions", json={"id": s})
    events = [make_event(f"e{n}", "user.message", data={"content": text}) for n, text in enumerate(texts)]
    await client.post(f"/agents/sessions/{s}/events", content=make_body(*events))


async def find(client: httpx.AsyncClient, q: str, **asked: Any) -> list[str]:
    answer = await client.get("/api/v1/search", params={"q": q, **asked})
    assert answer.status_code == 200, answer.text
    return [f"{result['session']}/{result['event']}" for result in answer.json()["results"]]


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("fox", ["s/e0"]),
        ("QUICK fo", ["s/e0"]),
        ("line_number", ["s/e1"]),
        ("number", ["s/e2", "s/e1"]),
        ("größe", ["s/e3"]),
        ("src/app.py", ["s/e2"]),
        ('"brown fox"', ["s/e0"]),
        ('"fox brown"', []),
        ("nothing-here", []),
        ('" OR *', []),
        ("NOT fox", []),
        ("text:fox", []),
        ("日本", ["s/e3"]),
    ],
)
async def test_words_find_the_events_that_hold_them(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, q: str, found: list[str]
) -> None:
    texts = ["The quick brown fox", "line_number = 1", "src/app.py: number of the line", "Größe 日本語"]
    await store_texts(client, make_event, make_body, *texts)

    if understand(q) is None:
        assert (await client.get("/api/v1/search", params={"q": q})).status_code == 400
    else:
        assert await find(client, q) == found


async def test_a_result_names_its_place_and_shows_the_words(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await store_texts(client, make_event, make_body, "x " * 200 + "the <b>needle</b> is here " + "y " * 200)

    (result,) = (await client.get("/api/v1/search?q=needle")).json()["results"]

    snippet = result["snippet"]
    assert [snippet["text"][start:end] for start, end in snippet["marks"]] == ["needle"]
    assert snippet["cut"] == [True, True]
    assert len(snippet["text"]) < 300
    assert (result["session"], result["event"], result["type"]) == ("s", "e0", "user.message")


async def test_what_is_for_machines_alone_is_neither_found_nor_shown(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    call = {"toolCallId": "c", "name": "view", "arguments": {"path": "buoys.py"}, "type": "function"}
    said = {"model": "gpt-5", "currentModel": "gpt-5", "toolRequests": [call], "content": "the function of buoys"}
    await client.post("/agents/sessions", json={"id": "s"})
    events = [make_event("e0", "assistant.message", data=said), make_event("e1", data={"toolRequests": [call]})]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    assert await find(client, "buoys") == ["s/e1", "s/e0"]
    assert await find(client, "function") == ["s/e0"]
    assert await find(client, "gpt-5") == []
    (first, _) = (await client.get("/api/v1/search?q=view")).json()["results"]
    assert first["snippet"]["text"] == "view\nbuoys.py"


async def test_results_come_in_pages_newest_first_and_of_one_session(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await store_texts(client, make_event, make_body, *["word"] * 7)
    await store_texts(client, make_event, make_body, *["word"] * 3, s="t")

    seen: list[str] = []
    cursor: str | None = None
    while True:
        asked = {"q": "word", "limit": "4"} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/api/v1/search", params=asked)).json()
        seen += [f"{result['session']}/{result['event']}" for result in page["results"]]
        cursor = page["next"]
        if cursor is None:
            break

    assert seen == [f"t/e{n}" for n in (2, 1, 0)] + [f"s/e{n}" for n in (6, 5, 4, 3, 2, 1, 0)]
    assert await find(client, "word", session="t") == ["t/e2", "t/e1", "t/e0"]


async def test_what_was_rewound_is_not_found_until_it_comes_again(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await store_texts(client, make_event, make_body, "apple", "pear")
    await client.post("/agents/sessions/s/events", content=make_body(rewound=["e1"]))
    rewound = await find(client, "pear")
    await client.post(
        "/agents/sessions/s/events", content=make_body(make_event("e1", data={"content": "pear and plum"}))
    )

    assert (rewound, await find(client, "plum pear")) == ([], ["s/e1"])


@pytest.mark.parametrize("q", ["", "   ", "***", "-"])
async def test_a_query_without_words_is_400(client: httpx.AsyncClient, q: str) -> None:
    assert (await client.get("/api/v1/search", params={"q": q})).status_code == 400


async def test_an_odd_event_is_found_too(client: httpx.AsyncClient, make_body: Make) -> None:
    odd = b'{"type":"x","id":"odd","data":{"t":"needle \\ud83d"}}'
    await client.post("/agents/sessions/s/events", content=make_body(odd))

    assert await find(client, "needle") == ["s/odd"]


def search_path(store_path: Path) -> Path:
    return store_path.with_name("mission-control-search.db")


async def test_after_a_restart_the_index_goes_on_where_it_was(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make
) -> None:
    for number in range(3):
        with Store(store_path) as store:
            async with open_client(store) as client:
                await store_texts(client, make_event, make_body, f"word{number}", s=f"s{number}")
                found = [await find(client, f"word{earlier}") for earlier in range(number + 1)]

        assert found == [[f"s{earlier}/e0"] for earlier in range(number + 1)]


@pytest.mark.parametrize("damage", [None, b"", b"no database " * 1000, b"\0" * 50_000])
async def test_an_index_that_is_lost_is_built_again(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make, damage: bytes | None
) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await store_texts(client, make_event, make_body, "needle")
            await find(client, "needle")
    for name in ("", "-wal", "-shm"):
        search_path(store_path).with_name(search_path(store_path).name + name).unlink(missing_ok=True)
    if damage is not None:
        search_path(store_path).write_bytes(damage)

    with Store(store_path) as store:
        async with open_client(store) as client:
            assert await find(client, "needle") == ["s/e0"]


async def test_an_index_of_another_store_is_not_believed(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make
) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await store_texts(client, make_event, make_body, "needle")
            await find(client, "needle")
    for path in store_path.parent.glob("mission-control.db*"):
        path.unlink()

    with Store(store_path) as store:
        async with open_client(store) as client:
            await store_texts(client, make_event, make_body, "other")
            assert await find(client, "needle") == []
            assert await find(client, "other") == ["s/e0"]


async def test_a_deleted_sessions_text_is_in_no_file(
    store_path: Path, open_client: Any, make_event: Make, make_body: Make
) -> None:
    secret = "xylophonequartz"
    with Store(store_path) as store:
        async with open_client(store) as client:
            await store_texts(client, make_event, make_body, "kept word", s="kept")
            await store_texts(client, make_event, make_body, *[f"{secret} {n}" * 50 for n in range(40)])
            big = make_event("big", "system.notification", data={"content": f"{secret} " * 100_000})
            gone = make_event("gone", data={"t": secret})
            await client.post("/agents/sessions/s/events", content=make_body(big, gone))
            await client.post("/agents/sessions/s/events", content=make_body(rewound=["gone"]))
            await client.post("/agents/sessions/s/events", content=make_body(make_event("gone", data={"t": "x"})))
            await client.put("/agents/sessions/s", json={"title": secret, "branch": secret})
            assert len(await find(client, secret)) == 41
            assert {name.partition(".")[0] for name in holding(store_path, secret)} == {
                "mission-control", "mission-control-search",
            }  # fmt: skip

            assert (await client.delete("/api/v1/sessions/s")).status_code == 204

            while_open = holding(store_path, secret)
            assert await find(client, "kept") == ["kept/e0"]
            assert await find(client, secret) == []
    assert while_open == []
    assert holding(store_path, secret) == []
    for path in (store_path, search_path(store_path)):
        with sqlite3.connect(path) as database:
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def holding(store_path: Path, word: str) -> list[str]:
    """Return the files that hold the word, or the first part of it as an index might keep it."""
    halves = (word.encode(), word[: len(word) - 4].encode(), word[4:].encode())
    return [path.name for path in store_path.parent.iterdir() if any(half in path.read_bytes() for half in halves)]


async def test_a_session_deleted_and_sent_again_is_found_again(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await store_texts(client, make_event, make_body, "needle")
    await client.delete("/api/v1/sessions/s")
    await client.post("/agents/sessions", json={"id": "s", "restore": True})
    await store_texts(client, make_event, make_body, "needle", "other")

    assert await find(client, "needle") == ["s/e0"]


async def test_index_files_are_private(store_path: Path, open_client: Any, make_event: Make, make_body: Make) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await store_texts(client, make_event, make_body, "needle")
            await find(client, "needle")
            modes = {path.name: path.stat().st_mode & 0o777 for path in store_path.parent.iterdir()}

    assert search_path(store_path).name in modes
    assert set(modes.values()) == {0o600}


async def test_many_stores_at_once_are_all_found(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    await asyncio.gather(
        *(store_texts(client, make_event, make_body, *["many words"] * 20, s=f"s{number}") for number in range(20))
    )

    assert len(await find(client, "many", limit=200)) == 200


@pytest.mark.parametrize("limit", [3, 100])
async def test_an_index_of_many_parts_answers_as_one_does(
    monkeypatch: pytest.MonkeyPatch, client: httpx.AsyncClient, make_event: Make, make_body: Make, limit: int
) -> None:
    monkeypatch.setattr(fts5, "_PART_BITS", 3)
    texts = [f"every word{n}" + (" seldom" if n % 10 == 8 else "") for n in range(40)]
    await store_texts(client, make_event, make_body, *texts)
    await store_texts(client, make_event, make_body, "every seldom", s="t")

    async def pages(q: str) -> list[str]:
        seen: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            page = (await client.get(f"/api/v1/search?q={q}&limit={limit}&cursor={cursor}")).json()
            seen += [f"{result['session']}/{result['event']}" for result in page["results"]]
            cursor = page["next"]
        return seen

    assert await pages("every") == ["t/e0"] + [f"s/e{n}" for n in range(39, -1, -1)]
    assert await pages("seldom") == ["t/e0"] + [f"s/e{n}" for n in (38, 28, 18, 8)]
    assert await pages("word7") == ["s/e7"]
    assert (await client.delete("/api/v1/sessions/s")).status_code == 204
    assert await pages("seldom") == ["t/e0"]
