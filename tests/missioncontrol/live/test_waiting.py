"""Who is waited for by what only live events say: shown while it lasts, and stored nowhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.live.waiting import SESSIONS_MAX, WAITS_MAX, OpenWaits
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.missioncontrol.conftest import Opener

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
QUESTION = "Shall the heron cross?"


@pytest.fixture
def asked(make_event: Make) -> Callable[..., bytes]:
    def make(request: str = "r1", type: str = "user_input", **data: Any) -> bytes:
        said = {"requestId": request, "question": QUESTION, "toolCallId": f"call-{request}", **data}
        return make_event(f"asked-{request}", f"{type}.requested", ephemeral=True, data=said)

    return make


@pytest.fixture
async def working(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> httpx.AsyncClient:
    """A receiver with a session at work."""
    events = (make_event("a", "user.message", data={"content": "Go"}), make_event("b", "assistant.turn_start"))
    await client.post("/agents/sessions/s/events", content=make_body(*events))
    return client


async def state(client: httpx.AsyncClient) -> str:
    return str((await client.get("/api/v1/sessions/s")).json()["state"])


async def waits(client: httpx.AsyncClient, **query: str) -> list[tuple[str, str, str]]:
    answer = (await client.get("/api/v1/notifications", params=query)).json()
    return [(one["type"], one["status"], one["text"]) for one in answer["notifications"]]


async def live(client: httpx.AsyncClient, body: bytes) -> None:
    assert (await client.post("/agents/sessions/s/live", content=body)).status_code == 200


async def test_a_live_question_is_shown_everywhere_until_it_is_answered(
    working: httpx.AsyncClient, asked: Make, make_event: Make, make_body: Make
) -> None:
    await live(working, make_body(asked(choices=["yes", "no"])))
    said = ("user_input", "waiting", f"{QUESTION} · yes / no")

    assert await state(working) == "needs_attention"
    assert await waits(working) == await waits(working, type="wait", status="waiting", session="s") == [said]
    assert await waits(working, type="permission") == await waits(working, status="answered") == []
    counts = (await working.get("/api/v1/notifications")).json()["counts"]
    assert counts == [{"category": "wait", "type": "user_input", "status": "waiting", "count": 1}]
    for page in ("/feed", "/sessions/s"):
        assert QUESTION in (await working.get(page)).text
    assert [one["id"] for one in (await working.get("/api/v1/sessions?state=needs_attention")).json()["sessions"]] == [
        "s"
    ]

    done = make_event("d", "user_input.completed", ephemeral=True, data={"requestId": "r1", "answer": "yes"})
    await live(working, make_body(done))

    assert await state(working) == "working"
    assert await waits(working) == []


@pytest.mark.parametrize(
    ("type", "fields", "still"),
    [
        ("tool.execution_complete", {"data": {"toolCallId": "call-r1"}}, False),
        ("tool.execution_complete", {"data": {"toolCallId": "another"}}, True),
        ("assistant.turn_end", {}, False),
        ("assistant.turn_end", {"agentId": "child"}, True),
        ("session.shutdown", {}, False),
        ("tool.x", {}, True),
    ],
)
async def test_a_wait_whose_answer_was_lost_ends_with_what_follows(
    working: httpx.AsyncClient, asked: Make, make_event: Make, make_body: Make, type: str, fields: Any, still: bool
) -> None:
    await live(working, make_body(asked()))
    await working.post("/agents/sessions/s/events", content=make_body(make_event("n", type, **fields)))

    assert (await waits(working) != []) is still
    assert (await state(working) == "needs_attention") is still


async def test_ephemeral_events_beside_durable_ones_count_too(
    working: httpx.AsyncClient, asked: Make, make_event: Make, make_body: Make
) -> None:
    body = make_body(make_event("n", "tool.x"), asked(type="elicitation", message="Who?"))
    await working.post("/agents/sessions/s/events", content=body)

    assert (await state(working), await waits(working)) == ("needs_attention", [("elicitation", "waiting", "Who?")])


async def test_nothing_of_it_is_stored(
    store_path: Path, open_client: Opener, asked: Make, make_event: Make, make_body: Make
) -> None:
    with Store(store_path) as store:
        async with open_client(store) as client:
            await client.post("/agents/sessions", json={"id": "s"})
            await client.post("/agents/sessions/s/events", content=make_body(make_event("a")))
            await live(client, make_body(asked()))
            assert await waits(client) != []
        async with open_client(store) as client:
            assert await waits(client) == []

    files = list(store_path.parent.iterdir())
    assert files
    assert not [file for file in files if b"heron" in file.read_bytes()]


async def test_live_events_of_an_unknown_or_deleted_session_are_shown_to_nobody(
    working: httpx.AsyncClient, asked: Make, make_body: Make
) -> None:
    await live(working, make_body(asked()))
    await working.delete("/api/v1/sessions/s")
    gone = await waits(working)
    unknown = await working.post("/agents/sessions/unknown/live", content=make_body(asked()))
    deleted = await working.post("/agents/sessions/s/live", content=make_body(asked()))

    assert (gone, unknown.status_code) == ([], 200)
    assert (deleted.status_code, deleted.json()["error"]["kind"]) == (410, "deleted_session")
    assert await waits(working) == []


async def pages(client: httpx.AsyncClient, limit: int, **query: str) -> list[list[str]]:
    """The texts of every page of the feed."""
    found: list[list[str]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = await client.get("/api/v1/notifications", params={"limit": limit, "cursor": cursor, **query})
        found.append([one["text"] for one in answer.json()["notifications"]])
        cursor = answer.json()["next"]
    return found


@pytest.mark.parametrize("limit", range(1, 9))
async def test_pages_are_no_longer_than_asked_and_go_on_without_gap_or_repeat(
    working: httpx.AsyncClient, asked: Make, make_event: Make, make_body: Make, limit: int
) -> None:
    stored = [make_event(f"w{n}", "session.warning", data={"message": f"warning {n}"}) for n in range(3)]
    await working.post("/agents/sessions/s/events", content=make_body(*stored))
    await live(working, make_body(*(asked(f"r{n}", question=f"question {n}") for n in range(4))))

    found = await pages(working, limit)

    assert all(len(page) == limit for page in found[:-1])
    assert 0 < len(found[-1]) <= limit
    told = [*(f"question {n}" for n in (3, 2, 1, 0)), *(f"warning {n}" for n in (2, 1, 0))]
    assert [text for page in found for text in page] == told
    waits_only = await pages(working, limit, status="waiting")
    assert [text for page in waits_only for text in page] == told[:4]
    assert len(waits_only) == -(-4 // limit)


async def test_an_answer_between_two_pages_makes_no_gap(
    working: httpx.AsyncClient, asked: Make, make_event: Make, make_body: Make
) -> None:
    await live(working, make_body(*(asked(f"r{n}", question=f"question {n}") for n in range(4))))
    first = (await working.get("/api/v1/notifications?limit=2")).json()
    done = make_event("d", "user_input.completed", ephemeral=True, data={"requestId": "r2"})
    await live(working, make_body(done, asked("r4", question="new")))

    rest = (await working.get(f"/api/v1/notifications?limit=9&cursor={first['next']}")).json()

    assert [one["text"] for one in first["notifications"]] == ["question 3", "question 2"]
    assert [one["text"] for one in rest["notifications"]] == ["question 1", "question 0"]


def test_what_is_waited_for_is_bounded(asked: Make) -> None:
    waiting = OpenWaits()
    for number in range(SESSIONS_MAX + 10):
        waiting.add_live(f"s{number}", [asked()])
    for number in range(WAITS_MAX + 10):
        waiting.add_live("one", [asked(f"r{number}")])

    assert len(waiting.all()) <= SESSIONS_MAX + WAITS_MAX
    assert sum(wait.session == "one" for wait in waiting.all()) == WAITS_MAX


@pytest.mark.parametrize("data", [[], None, "x", {"requestId": 7}, {"requestId": {}, "question": 3}])
def test_a_request_of_any_shape_is_taken(make_event: Make, data: Any) -> None:
    waiting = OpenWaits()
    event = json.loads(make_event("e", "user_input.requested", ephemeral=True)) | {"data": data}

    assert waiting.add_live("s", [json.dumps(event).encode(), b'{"type":"user_input.requested"'])
    assert not waiting.add_live("s", [json.dumps(event).encode()])
    assert [wait.text for wait in waiting.all()] == [""]
