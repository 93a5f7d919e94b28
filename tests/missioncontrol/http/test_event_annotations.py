"""What the API says of each event: whose it is, and what it is to the model and the screen."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.wiring.event_views import project
from tests.missioncontrol.conftest import Opener
from tests.shared import REAL

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
EVENTS = "/api/v1/sessions/s/events"


def _captures() -> list[Any]:
    """Each capture's lines, with the notifications that were looked for in what its model was sent."""
    found = []
    for log in sorted(REAL.glob("captures*/*/events.jsonl")):
        notifications = json.loads(log.with_name("meta.json").read_bytes()).get("notifications") or {}
        expected = {id: one["model_visible"] for id, one in notifications.items()}
        if expected:
            found.append(pytest.param(log.read_bytes().splitlines(), expected, id="/".join(log.parts[-3:-1])))
    return found or [pytest.param([], {}, marks=pytest.mark.skip(reason=f"there are no captures in {REAL}"))]


@pytest.fixture
async def joined(store: Store, open_client: Opener) -> AsyncIterator[httpx.AsyncClient]:
    """A receiver as the program joins it."""
    async with open_client(store, project=project) as opened:
        await opened.post("/agents/sessions", json={"id": "s"})
        yield opened


async def told(client: httpx.AsyncClient, **asked: str) -> dict[str, Any]:
    answer: dict[str, Any] = (await client.get(EVENTS, params={"about": "1", **asked})).json()
    assert answer["root"] == "s"
    assert len(answer["about"]) == len(answer["events"])
    return answer


async def test_each_event_has_its_agents_and_its_meaning(
    joined: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    kinds = ("shell_completed", "instruction_discovered")
    events = [
        make_event("u", "user.message"),
        make_event("a", "subagent.started", data={"toolCallId": "c"}, agentId="outer"),
        make_event("b", "subagent.started", data={"toolCallId": "d", "parentId": "outer"}, agentId="inner"),
        make_event("r", "session.usage_record", agentId="inner"),
        *(make_event(kind, "system.notification", data={"kind": {"type": kind}}) for kind in kinds),
        make_event("x", "nobody.knows"),
    ]
    await joined.post("/agents/sessions/s/events", content=make_body(*events))

    answer = await told(joined)

    assert [(one["agent_path"], one["model_visible"], one["ui_visible"]) for one in answer["about"]] == [
        ([], True, True),
        (["outer"], False, True),
        (["outer", "inner"], False, True),
        (["outer", "inner"], False, False),
        ([], True, True),
        ([], False, True),
        ([], False, False),
    ]
    assert all(one["durable"] for one in answer["about"])


async def test_only_what_the_model_or_a_person_sees_is_given(
    joined: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    types = ("user.message", "session.usage_record", "assistant.message", "session.warning", "session.warning")
    body = make_body(*(make_event(f"e{number}", type) for number, type in enumerate(types)))
    await joined.post("/agents/sessions/s/events", content=body)

    async def ids(**asked: str) -> tuple[list[str], str | None]:
        answer = await told(joined, **asked)
        return [event["id"] for event in answer["events"]], answer["next"]

    assert await ids(visible="model") == (["e0", "e2"], None)
    assert await ids(visible="screen", limit="2") == (["e0", "e2"], "e2")
    assert await ids(visible="screen", limit="2", after="e2") == (["e3", "e4"], None)
    assert (await joined.get(f"{EVENTS}?visible=nobody")).status_code == 400


async def test_without_the_table_nothing_is_said_of_it(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await client.post("/agents/sessions/s/events", content=make_body(make_event("a", agentId="x")))

    assert (await told(client))["about"] == [{"agent_path": ["x"]}]
    assert (await client.get(f"{EVENTS}?visible=model")).status_code == 400


async def test_what_is_not_asked_for_is_not_there(joined: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    await joined.post("/agents/sessions/s/events", content=make_body(make_event("a")))

    assert set((await joined.get(EVENTS)).json()) == {"events", "next"}


@pytest.mark.parametrize(("lines", "expected"), _captures())
async def test_the_api_says_what_the_model_of_a_capture_was_told(
    joined: httpx.AsyncClient, make_body: Make, lines: list[bytes], expected: dict[str, bool]
) -> None:
    await joined.post("/agents/sessions/s/events", content=make_body(*lines))

    answer = await told(joined, type="system.notification", limit="5000")

    said = zip(answer["events"], answer["about"], strict=True)
    assert {event["id"]: one["model_visible"] for event, one in said} == expected
