"""The API for people and programs."""

from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def fill(client: httpx.AsyncClient, make_event: Make, make_body: Make, count: int) -> None:
    for number in range(count):
        await client.post("/agents/sessions", json={"id": f"s{number}"})
        at = f"2026-11-{number + 1:02}T10:00:00.000Z"
        message = make_event("e", "user.message", timestamp=at, data={"content": f"Task {number} Größe"})
        await client.post(f"/agents/sessions/s{number}/events", content=make_body(message))


async def test_the_list_has_the_documented_shape(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    usage = {"inputTokens": 3000, "outputTokens": 150, "cost": 0.0}
    events = [
        make_event("a", "session.start", data={"context": {"cwd": "/w", "branch": "main", "repository": "o/r"}}),
        make_event("b", "session.usage_record", data={"usage": usage}),
    ]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    answer = (await client.get("/api/v1/sessions")).json()

    assert answer["next"] is None
    (session,) = answer["sessions"]
    assert (
        session
        | {
            "id": "s",
            "title": None,
            "state": "idle",
            "repository": "o/r",
            "branch": "main",
            "model": None,
            "started": "2026-11-18T10:00:00.000Z",
            "last_activity": "2026-11-18T10:00:00.000Z",
            "events": 2,
            "tokens": {
                "input": {"value": 3000, "source": "usage_record"},
                "output": {"value": 150, "source": "usage_record"},
            },
            "cost": {"value": 0.0, "source": "usage_record"},
            "masked": 0,
            "host": None,
            "last_event_id": "b",
        }
        == session
    )


async def test_sessions_come_newest_first_in_pages_that_miss_none(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await fill(client, make_event, make_body, 7)
    await client.delete("/api/v1/sessions/s")

    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        asked = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/api/v1/sessions", params=asked)).json()
        seen += [session["id"] for session in page["sessions"]]
        cursor = page["next"]

    assert seen == [f"s{number}" for number in reversed(range(7))]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"q": "TASK größe"}, ["s2", "s1", "s0"]),
        ({"q": "task 1"}, ["s1"]),
        ({"q": "100%"}, []),
        ({"state": "working", "since": "2026-11-02T00:00:00Z"}, ["s2", "s1"]),
        ({"state": "working", "since": "2026-11-02T14:00:00+14:00"}, ["s2", "s1"]),
        ({"state": "ended"}, []),
    ],
)
async def test_sessions_are_filtered(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, asked: dict[str, str], found: list[str]
) -> None:
    await fill(client, make_event, make_body, 3)

    answer = (await client.get("/api/v1/sessions", params=asked)).json()

    assert [session["id"] for session in answer["sessions"]] == found


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/sessions?limit=0",
        "/api/v1/sessions?limit=-1",
        "/api/v1/sessions?limit=x",
        "/api/v1/sessions?state=bogus",
        "/api/v1/sessions?since=x",
        "/api/v1/sessions?since=0001-01-01T00:00:00%2B14:00",
        "/api/v1/sessions?limit=²",
        "/api/v1/sessions?cursor=zzz",
        "/api/v1/sessions?cursor=é",
        "/api/v1/sessions/s/events?after=nobody",
        "/api/v1/sessions/%2e%2e",
        "/api/v1/stream?session=%2e%2e%2f",
    ],
)
async def test_what_makes_no_sense_is_400_with_a_hint(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"kind", "message", "hint"}


async def test_unknown_paths_and_methods_answer_in_the_same_shape(client: httpx.AsyncClient) -> None:
    answers = [await client.get("/api/v1/nothing"), await client.patch("/api/v1/sessions/s")]

    assert [answer.status_code for answer in answers] == [404, 405]
    assert [answer.json()["error"]["kind"] for answer in answers] == ["not_found", "method_not_allowed"]
    assert all(answer.json()["error"]["hint"] for answer in answers)


async def test_events_are_filtered_by_type_and_agent(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    events = [make_event("a", "x"), make_event("b", "y"), make_event("c", "x", agentId="sub"), make_event("d", "x")]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    async def ids(query: str) -> list[str]:
        answer = (await client.get(f"/api/v1/sessions/s/events?{query}")).json()
        return [event["id"] for event in answer["events"]]

    assert await ids("type=x") == ["a", "c", "d"]
    assert await ids("type=x&agent=sub") == ["c"]
    assert await ids("type=x&after=a&limit=1") == ["c"]


async def test_a_reader_goes_on_after_an_event_that_was_hidden_meanwhile(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await client.post("/agents/sessions/s/events", content=make_body(*map(make_event, "abc")))
    await client.post("/agents/sessions/s/events", content=make_body(rewound=["b"]))

    answer = (await client.get("/api/v1/sessions/s/events?after=b")).json()

    assert [event["id"] for event in answer["events"]] == ["c"]


@pytest.mark.parametrize("path", ["/api/v1/sessions", "/api/v1/sessions/s", "/api/v1/sessions/s/events", "/"])
async def test_who_polls_gets_304_until_something_changes(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, path: str
) -> None:
    tag = (await client.get(path)).headers["etag"]

    unchanged = await client.get(path, headers={"If-None-Match": tag})
    await client.post("/agents/sessions/s/events", content=make_body(make_event("a")))
    changed = await client.get(path, headers={"If-None-Match": tag})

    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


async def test_a_rewind_takes_its_figures_back(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    def used(id: str) -> bytes:
        return make_event(id, "session.usage_record", data={"usage": {"inputTokens": 10}})

    await client.post("/agents/sessions/s/events", content=make_body(used("a"), used("b"), make_event("c")))
    await client.post("/agents/sessions/s/events", content=make_body(rewound=["b"]))

    session = (await client.get("/api/v1/sessions/s")).json()

    assert (session["tokens"]["input"]["value"], session["events"]) == (10, 2)


async def test_a_deleted_session_is_in_no_answer(
    client: httpx.AsyncClient, store: Store, make_event: Make, make_body: Make
) -> None:
    await client.post("/agents/sessions/s/events", content=make_body(make_event("a"), rewound=["a"]))

    await client.delete("/api/v1/sessions/s")

    assert (await client.get("/api/v1/sessions")).json()["sessions"] == []
    left = "SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM rewinds), (SELECT count(*) FROM sessions)"
    assert store.do(lambda database: database.execute(left).fetchone()) == (0, 0, 0)
    assert (await client.delete("/api/v1/sessions/s")).status_code == 410


async def test_health_and_figures(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    body = make_body(make_event("a"), make_event("a"), make_event("b", ephemeral=True), b"{}")
    await client.post("/agents/sessions/s/events", content=body)

    answers = [await client.get(path) for path in ("/healthz", "/readyz", "/metrics")]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    figures = dict(line.rsplit(" ", 1) for line in answers[2].text.splitlines() if not line.startswith("#"))
    for name in ("stored", "duplicate", "rejected", "ephemeral"):
        assert figures[f"exporter_receiver_events_{name}_total"] == "1"
    assert figures['exporter_receiver_sessions{state="idle"}'] == "1"
    assert answers[2].headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_times_are_those_of_the_clock(open_client: Callable[..., object]) -> None:
    with Store(":memory:") as store:
        opened = open_client(store, clock=lambda: datetime(2026, 1, 2, tzinfo=UTC))
        async with opened as client:  # type: ignore[attr-defined]  # a client of the shared fixture
            await client.post("/agents/sessions", json={"id": "s"})
            session = (await client.get("/api/v1/sessions/s")).json()

    assert session["last_activity"] == "2026-01-02T00:00:00.000Z"
