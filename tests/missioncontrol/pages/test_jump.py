"""Going from one error or notification to the next, with links alone; the script jumps to the same entries."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.wiring.event_views import project
from tests.missioncontrol.conftest import Opener

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def walk(client: httpx.AsyncClient, kind: str, steps: int) -> list[str]:
    """The events that a person comes to who has no script and presses the same button again and again."""
    path, seen = "/sessions/s", []
    for _ in range(steps):
        page = (await client.get(path)).text
        (link,) = re.findall(rf'<a class="button jump" data-kind="{kind}" href="([^"]+)"', page)
        path = (await client.get(unescape(link))).headers["location"].partition("#")[0]
        seen.append(str(httpx.URL(path).params.get("at", "")))
    return seen


async def tell(client: httpx.AsyncClient, make_body: Make, *events: bytes) -> None:
    assert (await client.post("/agents/sessions/s/events", content=make_body(*events))).status_code == 200


async def test_without_the_script_the_buttons_go_on_from_where_one_is(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    def call(number: int, **end: Any) -> list[bytes]:
        start = make_event(f"start-{number}", "tool.execution_start", data={"toolCallId": str(number)})
        return [start, make_event(f"end-{number}", "tool.execution_complete", data={"toolCallId": str(number), **end})]

    notes = [make_event(f"note-{number}", "system.notification", data={"content": "x"}) for number in range(2)]
    failed = [line for number in range(3) for line in call(number, success=False)]
    await tell(client, make_body, *failed, *notes)

    assert await walk(client, "error", 4) == ["start-0", "start-1", "start-2", "start-0"]
    assert await walk(client, "note", 3) == ["note-0", "note-1", "note-0"]


async def test_a_call_that_ends_behind_those_within_it_is_come_to_once(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    def failing(name: str, *inside: bytes) -> list[bytes]:
        start = make_event(f"start-{name}", "tool.execution_start", data={"toolCallId": name})
        end = make_event(f"end-{name}", "tool.execution_complete", data={"toolCallId": name, "success": False})
        return [start, *inside, end]

    await tell(client, make_body, *failing("outer", *failing("inner")), *failing("later"))

    assert await walk(client, "error", 6) == ["start-outer", "start-inner", "start-later"] * 2


def shell(code: int) -> dict[str, Any]:
    return {"kind": {"type": "shell_completed", "exitCode": code}, "content": "x"}


HAPPENED: list[tuple[str, dict[str, Any]]] = [
    ("session.info", {"message": "x"}),
    ("skill.invoked", {"name": "x"}),
    ("session.warning", {"message": "x"}),
    ("session.custom_notification", {"message": "x"}),
    ("system.notification", shell(0)),
    ("system.notification", shell(1)),
    ("system.notification", {"kind": {"type": "agent_completed", "status": "failed"}, "content": "x"}),
    ("session.error", {"message": "x"}),
    ("model.call_failure", {}),
    ("abort", {"reason": "x"}),
    ("permission.completed", {"result": {"kind": "denied-by-rules"}}),
    ("hook.end", {"hookType": "preToolUse", "success": False, "error": {"message": "The guard said no"}}),
    ("hook.end", {"hookType": "preToolUse", "success": True}),
    ("subagent.failed", {"error": "x"}),
    ("session.compaction_complete", {"success": False}),
    ("session.compaction_complete", {"success": True}),
    ("tool.execution_complete", {"toolCallId": "earlier", "success": False}),
    ("tool.execution_start", {"toolCallId": "fails", "toolName": "bash"}),
    ("tool.execution_complete", {"toolCallId": "fails", "success": False}),
    ("tool.execution_start", {"toolCallId": "exits", "toolName": "bash"}),
    ("tool.execution_complete", {"toolCallId": "exits", "success": True, "shellExecution": {"exitCode": 2}}),
    ("tool.execution_start", {"toolCallId": "works", "toolName": "bash"}),
    ("tool.execution_complete", {"toolCallId": "works", "success": True}),
    ("tool.execution_start", {"toolCallId": "runs", "toolName": "bash"}),
    ("nobody.knows", {"success": False}),
    ("session.shutdown", {"shutdownType": "error"}),
    ("session.shutdown", {"shutdownType": "routine"}),
]
NOTES = {"session.warning", "session.custom_notification", "system.notification"}


@pytest.mark.parametrize("kind", ["error", "note"])
@pytest.mark.parametrize("options", [{}, {"project": project}], ids=["alone", "joined"])
async def test_an_entry_is_marked_exactly_when_the_next_of_its_kind_stops_there(
    store: Store, open_client: Opener, make_event: Make, make_body: Make, kind: str, options: dict[str, Any]
) -> None:
    async with open_client(store, **options) as client:
        await client.post("/agents/sessions", json={"id": "s"})
        told = [make_event(f"n{n}", type, data=data) for n, (type, data) in enumerate(HAPPENED)]
        await tell(client, make_body, *told)
        page = (await client.get("/sessions/s")).text

        visited = await walk(client, kind, len(HAPPENED))

    marked = [item for item in page.split("<li ") if re.search(rf'^[^>]*data-stop="[^"]*\b{kind}\b', item)]
    stops = list(dict.fromkeys(visited))
    assert len(marked) == len(stops)
    for item, event in zip(marked, stops, strict=True):
        assert f'id="e-{event}"' in item
    if kind == "note":
        assert {HAPPENED[int(event[1:])][0] for event in stops} == NOTES
    else:
        assert any("The guard said no" in item for item in marked)


async def test_who_stands_at_a_call_that_failed_is_led_on_from_it(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    call, end = ("tool.execution_start", {"toolCallId": "c"}), {"toolCallId": "c", "success": False}
    events = [make_event("start", call[0], data=call[1]), make_event("end", "tool.execution_complete", data=end)]
    await tell(client, make_body, *events, make_event("worse", "session.error", data={"message": "x"}))

    answer = await client.get("/sessions/s/next?kind=error&after=start")

    assert httpx.URL(answer.headers["location"]).params["at"] == "worse"
