"""Events that hold half of a surrogate pair, or a number beyond all bounds, tell what they tell all the same."""

from collections.abc import Callable

import httpx
import pytest

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


@pytest.fixture(params=[rb'"cut \ud83d"', b"1e400", b"9" * 5000])
def odd(request: pytest.FixtureRequest, make_event: Make) -> Callable[..., bytes]:
    """Makes events whose data hold an odd value beside what the test says."""

    def make(id: str, type: str, **fields: object) -> bytes:
        data = fields.pop("data", {})
        event = make_event(id, type, data={**data, "odd": "here"}, **fields)  # type: ignore[dict-item]
        return event.replace(b'"here"', request.param)

    return make


async def post(client: httpx.AsyncClient, body: bytes, to: str = "events") -> None:
    assert (await client.post(f"/agents/sessions/s/{to}", content=body)).status_code == 200


async def feed(client: httpx.AsyncClient) -> list[tuple[str, str, str | None]]:
    entries = (await client.get("/api/v1/notifications")).json()["notifications"]
    return [(entry["type"], entry["text"], entry["status"]) for entry in entries]


async def test_an_answer_ends_a_wait(client: httpx.AsyncClient, make_event: Make, make_body: Make, odd: Make) -> None:
    asked = odd("p", "permission.requested", data={"requestId": "r"})
    await post(client, make_body(asked, odd("a", "permission.completed", data={"requestId": "r"})))

    assert await feed(client) == [("permission", "", "answered")]
    assert (await client.get("/api/v1/sessions/s")).json()["state"] == "working"


async def test_a_live_question_is_told_and_its_answer_ends_it(
    client: httpx.AsyncClient, make_body: Make, odd: Make
) -> None:
    said = {"requestId": "r", "question": "Shall we?"}
    await post(client, make_body(odd("p", "user_input.requested", data=said, ephemeral=True)), "live")
    while_open = await feed(client)
    await post(client, make_body(odd("a", "user_input.completed", data=said, ephemeral=True)), "live")

    assert while_open == [("user_input", "Shall we?", "waiting")]
    assert await feed(client) == []


async def test_notifications_titles_and_usage_are_told(client: httpx.AsyncClient, make_body: Make, odd: Make) -> None:
    await post(
        client,
        make_body(
            odd("n", "system.notification", data={"content": "Done", "kind": {"type": "agent_completed"}}),
            odd("t", "session.title_changed", data={"title": "Otters"}),
            odd("u", "session.usage_record", data={"usage": {"inputTokens": 7}}),
        ),
    )

    session = (await client.get("/api/v1/sessions/s")).json()
    assert (session["title"], session["tokens"]["input"]["value"]) == ("Otters", 7)
    assert await feed(client) == [("agent_completed", "Done", None)]


async def test_a_sub_agent_is_described(client: httpx.AsyncClient, make_body: Make, odd: Make) -> None:
    start = odd("b", "subagent.started", data={"agentName": "diver", "toolCallId": "c"}, agentId="c")
    end = odd("e", "subagent.failed", data={"totalTokens": 5, "durationMs": 1.5, "error": "No air"}, agentId="c")
    await post(client, make_body(start, end))

    (agent,) = (await client.get("/api/v1/sessions/s/tree")).json()["agents"]

    assert (agent["name"], agent["state"], agent["error"]) == ("diver", "failed", "No air")
    assert (agent["tokens"], agent["duration_ms"]) == (5, 1.5)


async def test_a_figure_of_the_wrong_type_hides_nothing_else_of_a_sub_agent(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    data = {"agentName": "diver", "toolCallId": "c", "totalTokens": "many", "durationMs": True}
    await post(client, make_body(make_event("b", "subagent.completed", data=data, agentId="c")))

    (agent,) = (await client.get("/api/v1/sessions/s/tree")).json()["agents"]

    assert (agent["name"], agent["tokens"], agent["duration_ms"]) == ("diver", None, None)


async def test_its_words_are_found_and_shown_as_they_are_meant(
    client: httpx.AsyncClient, make_body: Make, odd: Make
) -> None:
    await post(client, make_body(odd("m", "user.message", data={"content": "one\nneedle"})))

    (found,) = (await client.get("/api/v1/search?q=needle")).json()["results"]
    page = await client.get("/sessions/s")

    assert found["snippet"]["text"].startswith("one\nneedle")
    assert page.status_code == 200
    assert "needle" in page.text
