"""The session page scoped to agents, and to what the model was given."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.wiring.event_views import project
from tests.missioncontrol.conftest import Opener
from tests.missioncontrol.ingest.test_agent_attribution import STORY
from tests.missioncontrol.pages.test_pages import read

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
PAGE = "/sessions/s"


@pytest.fixture
async def joined(store: Store, open_client: Opener) -> AsyncIterator[httpx.AsyncClient]:
    """A receiver as the program joins it."""
    async with open_client(store, project=project) as opened:
        await opened.post("/agents/sessions", json={"id": "s"})
        yield opened


def entries(ids: list[str]) -> set[str]:
    return {id.removeprefix("e-") for id in ids if id.startswith("e-")}


@pytest.mark.parametrize(
    ("scope", "below"),
    [
        ("agent=outer", [("outer",), ("outer", "inner")]),
        ("agent=inner", [("outer", "inner")]),
        ("agent=c3", [("c3",)]),
        ("main=1", [()]),
        ("", [(), ("outer",), ("outer", "inner"), ("c3",), ("third",)]),
    ],
)
@pytest.mark.parametrize("at_once", [1, 100])
async def test_a_scope_holds_what_its_agents_did_and_nothing_else(
    joined: httpx.AsyncClient, make_body: Make, scope: str, below: list[tuple[str, ...]], at_once: int
) -> None:
    """Events before a start, hooks that name no agent, and late ones are there too."""
    for start in range(0, len(STORY.lines), at_once):
        body = make_body(*STORY.lines[start : start + at_once])
        await joined.post("/agents/sessions/s/events", content=body)

    page = await read(joined, f"{PAGE}?all=1&{scope}")

    assert entries(page.ids) == {id for id, path in STORY.paths if path in below}


async def test_a_nested_agent_shows_who_is_above_it_and_how_it_ended(
    joined: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    def start(id: str, agent: str, name: str, **data: Any) -> bytes:
        said = {"toolCallId": f"c-{agent}", "agentDisplayName": name, **data}
        return make_event(id, "subagent.started", data=said, agentId=agent)

    events = [
        make_event("z", "assistant.message", data={"content": "Hm"}, agentId="lost"),
        start("a", "o", "Outer", executionMode="background"),
        start("b", "i", "Inner", parentId="o"),
        make_event("c", "assistant.message", data={"content": "Deep down"}, agentId="i"),
        make_event("d", "subagent.failed", data={"toolCallId": "c-i", "error": "Out of <luck>"}, agentId="i"),
    ]
    await joined.post("/agents/sessions/s/events", content=make_body(*events))

    page, scoped = await read(joined, PAGE), await read(joined, f"{PAGE}?agent=i")

    assert "Outer → Inner" in page.text
    assert " · background · " in page.text
    assert "Out of <luck>" in page.text
    assert "start unknown" in page.text
    assert "Main agent → Outer → Inner" in scoped.text
    assert f"{PAGE}?agent=o" in scoped.links


async def test_what_the_model_was_given_can_be_looked_at_alone(
    joined: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    def notified(id: str, kind: str) -> bytes:
        return make_event(id, "system.notification", data={"kind": {"type": kind}, "content": id})

    events = [
        make_event("u", "user.message", data={"content": "Go"}),
        make_event("y", "system.message", data={"content": "Be good"}),
        make_event("w", "session.warning", data={"message": "Careful"}),
        make_event("t", "tool.execution_start", data={"toolCallId": "1", "toolName": "bash"}),
        make_event("r", "tool.execution_complete", data={"toolCallId": "1", "result": {"content": "done"}}),
        notified("n", "shell_completed"),
        notified("i", "instruction_discovered"),
        make_event("m", "model.turn_started"),
        make_event("x", "nobody.knows"),
    ]
    await joined.post("/agents/sessions/s/events", content=make_body(*events))

    page, given = await read(joined, PAGE), await read(joined, f"{PAGE}?model=1")

    assert entries(page.ids) == {"u", "w", "t", "r", "n", "i", "x"}
    assert entries(given.ids) == {"u", "y", "t", "r", "n"}
    assert page.text.count("not visible to the model") == 1
    assert f"{PAGE}?model=1" in page.links
    assert "m" in entries((await read(joined, f"{PAGE}?all=1")).ids)
    assert "i" in entries((await read(joined, f"{PAGE}?model=1&at=i")).ids)


async def test_an_event_says_whose_it_is_and_who_sees_it(joined: httpx.AsyncClient, make_body: Make) -> None:
    await joined.post("/agents/sessions/s/events", content=make_body(*STORY.lines))

    inner, main = await read(joined, f"{PAGE}/event?id=e10"), await read(joined, f"{PAGE}/event?id=e0")

    assert "Main agent → explore → inner · not visible to the model · not visible on screen" in inner.text
    assert "Main agent · not visible to the model · visible on screen" in main.text


async def test_what_is_found_says_whose_it_is(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    events = [
        make_event("a", "assistant.message", data={"content": "zebra crossing", "parentToolCallId": "c"}),
        make_event("b", "subagent.started", data={"remoteSessionId": "child", "toolCallId": "c"}),
    ]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    (found,) = (await client.get("/api/v1/search?q=zebra")).json()["results"]

    assert (found["event"], found["agent"]) == ("a", "child")


async def test_without_the_table_there_is_no_such_choice(client: httpx.AsyncClient, make_body: Make) -> None:
    await client.post("/agents/sessions/s/events", content=make_body(*STORY.lines))

    page = await read(client, f"{PAGE}?all=1&model=1")

    assert entries(page.ids) == {json.loads(line)["id"] for line in STORY.lines}
    assert not [link for link in page.links if link.endswith("?model=1")]


async def test_a_text_that_is_kept_apart_is_shown_as_far_as_any_other(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await client.post(
        "/agents/sessions/s/events",
        content=make_body(make_event("a", "user.message", data={"content": "word " * 3_900 + "the end"})),
    )

    assert "the end" in (await read(client, PAGE)).text
