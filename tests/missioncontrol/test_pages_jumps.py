"""Going from one error or notification to the next, with links alone; the script jumps to the same entries."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import httpx
import pytest

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

    assert await walk(client, "error", 4) == ["end-0", "end-1", "end-2", "end-0"]
    assert await walk(client, "note", 3) == ["note-0", "note-1", "note-0"]
