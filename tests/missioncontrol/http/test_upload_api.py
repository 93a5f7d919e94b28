"""What uploaders may rely on."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

import httpx
import pytest

from exporter.core.events import digest
from exporter.missioncontrol.http.request_intake import RequestLimits
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def post(client: httpx.AsyncClient, body: bytes, session: str = "s", **options: Any) -> httpx.Response:
    return await client.post(f"/agents/sessions/{session}/events", content=body, **options)


async def shown(client: httpx.AsyncClient, session: str = "s") -> list[str]:
    answer = await client.get(f"/agents/sessions/{session}?ids=1")
    return [id for id, _ in answer.json()["items"]]


async def test_registering_twice_gives_the_same_answer(client: httpx.AsyncClient) -> None:
    body = {"id": "new", "agent_task_id": "new", "owner_id": 1, "repo_id": 2}

    first, second = [await client.post("/agents/sessions", json=body) for _ in range(2)]

    assert first.json() == second.json()
    assert (first.json()["id"], first.json()["task_id"]) == ("new", "new")
    assert first.json()["capabilities"]["encodings"] == ["zstd", "gzip"]
    ack = first.json()["ack"]
    assert (ack["count"], ack["digest"], ack["last_event_id"]) == (0, "0" * 64, None)


async def test_the_older_uploader_registers_by_its_task(client: httpx.AsyncClient) -> None:
    remote = {"device_id": "d", "device_display_name": "host", "working_directory": "/w"}

    answer = await client.post("/agents/sessions", json={"agent_task_id": "task", "remote_context": remote})

    assert (answer.json()["id"], answer.json()["task_id"]) == ("task", "task")


async def test_a_batch_is_acknowledged_with_count_digest_and_last_id(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    events = [make_event("a"), make_event("b")]

    answer = (await post(client, make_body(*events))).json()

    expected = digest.total((id, sha256(raw).digest()) for id, raw in zip("ab", events, strict=True))
    assert answer["ack"].pop("epoch") and answer["ack"].pop("changes") == 2  # registered, and stored
    assert answer["ack"] == {
        "count": 2,
        "digest": expected,
        "last_event_id": "b",
        "accepted": 2,
        "duplicates": 0,
        "rejected": [],
    }


async def test_an_id_is_stored_once_and_its_first_bytes_win(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(make_event("a", data={"n": 1})))

    answer = (await post(client, make_body(make_event("a", data={"n": 2}), make_event("b"), make_event("b")))).json()

    assert (answer["ack"]["accepted"], answer["ack"]["duplicates"], answer["ack"]["count"]) == (1, 2, 2)
    events = (await client.get("/api/v1/sessions/s/events")).json()["events"]
    assert [event["data"] for event in events] == [{"n": 1}, {}]


async def test_the_same_id_in_two_sessions_is_two_events(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await client.post("/agents/sessions", json={"id": "fork"})

    for session in ("s", "fork"):
        await post(client, make_body(make_event("a")), session)

    assert await shown(client, "s") == await shown(client, "fork") == ["a"]


async def test_rewound_ids_are_hidden_and_their_fact_is_kept(
    client: httpx.AsyncClient, store: Store, make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(*map(make_event, "abc")))

    answer = (await post(client, make_body(make_event("d"), rewound=["b", "c", "nobody"]))).json()

    kept = digest.total((id, sha256(make_event(id)).digest()) for id in "ad")
    assert (answer["ack"]["count"], answer["ack"]["digest"]) == (2, kept)
    assert await shown(client) == ["a", "d"]
    assert store.do(lambda database: database.execute("SELECT id FROM rewinds ORDER BY id").fetchall()) == [
        ("b",),
        ("c",),
    ]


async def test_the_last_id_goes_back_when_the_end_is_rewound(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(*map(make_event, "abc")))

    answers = [(await post(client, make_body(rewound=ids))).json() for ids in (["c"], ["b", "a"])]

    assert [answer["ack"]["last_event_id"] for answer in answers] == ["b", None]
    assert answers[-1]["ack"]["digest"] == "0" * 64


async def test_a_hidden_id_posted_again_is_shown_at_the_end_with_its_new_bytes(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(*map(make_event, "abc")))
    await post(client, make_body(rewound=["a"]))

    answer = (await post(client, make_body(make_event("a", data={"n": 2})))).json()

    assert (answer["ack"]["accepted"], answer["ack"]["last_event_id"]) == (1, "a")
    assert await shown(client) == ["b", "c", "a"]
    events = (await client.get("/api/v1/sessions/s/events")).json()["events"]
    assert events[-1]["data"] == {"n": 2}


async def test_an_id_both_rewound_and_posted_is_shown(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(make_event("a")))

    await post(client, make_body(make_event("a", data={"n": 2}), rewound=["a"]))

    assert await shown(client) == ["a"]


async def test_ephemeral_events_are_not_stored(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    says_so = make_event("b", data={"text": '"ephemeral":true'})

    answer = (await post(client, make_body(make_event("a", ephemeral=True), says_so))).json()

    assert answer["ack"]["count"] == 1
    assert await shown(client) == ["b"]


async def test_an_empty_batch_is_a_heartbeat(client: httpx.AsyncClient) -> None:
    assert (await post(client, b'{"events":[]}')).status_code == 200


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (b'{"type":"x"}', "#0"),
        (b'{"type":"x","id":7}', "#0"),
        (b'{"type":"x","id":""}', "#0"),
        (b'{"type":"x","id":"\\ud800"}', "#0"),
        (b'"text"', "#0"),
        (b"[1]", "#0"),
        (b"null", "#0"),
    ],
)
async def test_an_event_without_a_usable_id_is_rejected_and_the_rest_is_stored(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, event: bytes, name: str
) -> None:
    answer = await post(client, make_body(event, make_event("good")))

    assert answer.status_code == 200
    assert answer.json()["ack"]["rejected"] == [name]
    assert await shown(client) == ["good"]


async def test_invalid_utf_8_is_rejected(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    broken = make_event("bad").replace(b"tool.x", b"tool.\xff")

    answer = await post(client, make_body(broken, make_event("good")))

    assert len(answer.json()["ack"]["rejected"]) == 1
    assert await shown(client) == ["good"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"7", b"{}", b'{"events":{}}', b'{"events":[}', b'{"events":[]}x', b'{"events":[],"rewound":7}',
     b'{"events":[{"type":"x","id":"a"}', b'{"events":[{"type":"x","id":"a"}],"rewound":[1]}'],
)  # fmt: skip
async def test_a_body_that_is_not_the_wire_is_400_and_stores_nothing(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await post(client, body)

    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad_body")
    assert set(answer.json()["error"]) == {"kind", "message", "hint"}
    assert await shown(client) == []


async def test_an_unknown_session_is_404(client: httpx.AsyncClient) -> None:
    answers = [await post(client, b'{"events":[]}', "nobody"), await client.get("/agents/sessions/nobody")]

    assert [(answer.status_code, answer.json()["error"]["kind"]) for answer in answers] == [
        (404, "unknown_session")
    ] * 2


async def test_a_deleted_session_is_410_until_it_is_restored_on_purpose(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(make_event("a")))
    assert (await client.delete("/api/v1/sessions/s")).status_code == 204

    answers = [
        await post(client, make_body(make_event("b"))),
        await client.get("/agents/sessions/s"),
        await client.post("/agents/sessions", json={"id": "s"}),
    ]
    restored = await client.post("/agents/sessions", json={"id": "s", "restore": True})

    assert [answer.status_code for answer in answers] == [410, 410, 410]
    assert restored.json()["ack"]["count"] == 0


@pytest.mark.parametrize("id", ["..", ".hidden", "a b", "a/b", "a\\b", "<x>", "é", "x" * 300, "a\n"])
async def test_an_id_that_could_be_a_path_is_refused(client: httpx.AsyncClient, id: str) -> None:
    answer = await client.post("/agents/sessions", json={"id": id})

    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad_id")


async def test_too_much_in_one_request_is_413(
    store: Store, open_client: Any, make_event: Make, make_body: Make
) -> None:
    async with open_client(store, limits=RequestLimits(body_bytes=4000, events=3, event_bytes=500)) as client:
        await client.post("/agents/sessions", json={"id": "s"})

        many = await post(client, make_body(*map(make_event, "abcd")))
        long = await post(client, make_body(make_event("a", data={"x": "y" * 5000})))
        one_large = await post(client, make_body(make_event("large", data={"x": "y" * 600}), make_event("b")))

        assert (many.status_code, many.json()["error"]["kind"]) == (413, "too_many_events")
        assert (long.status_code, long.json()["error"]["kind"]) == (413, "too_large")
        assert one_large.json()["ack"]["rejected"] == ["large"]
        assert await shown(client) == ["b"]


async def test_commands_are_always_none(client: httpx.AsyncClient) -> None:
    assert (await client.get("/agents/sessions/s/commands")).json() == {"commands": []}
