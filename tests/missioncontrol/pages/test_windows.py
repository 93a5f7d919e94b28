"""What stands between two windows of a timeline is in one of them."""

from collections.abc import Callable

import httpx
import pytest

from tests.missioncontrol.pages.test_pages import read

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
Make = Callable[..., bytes]


@pytest.mark.parametrize("edge", ["", "edge=first"])
@pytest.mark.parametrize("taken", [1, 9, 10, 11, 399, 400, 401, 409, 410, 411])
async def test_a_mark_of_what_was_taken_back_is_in_one_window(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, taken: int, edge: str
) -> None:
    """Also where windows of 400 events join, going back from the newest or forth from the oldest."""
    events = [make_event(f"e{number}", "user.message", data={"content": f"said {number}"}) for number in range(811)]
    await client.post("/agents/sessions/s/events", content=make_body(*events))
    await client.post("/agents/sessions/s/events", content=make_body(rewound=[f"e{taken}"]))
    path, marks = f"/sessions/s?{edge}", 0
    while path:
        page = await read(client, path)
        marks += page.text.count("1 event was rewound")
        path = next((link for link in page.links if ("after=" if edge else "before=") in link and "/s?" in link), "")

    assert marks == 1
