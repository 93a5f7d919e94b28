"""The pages show what is there, and nothing that is there runs."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import httpx
import pytest

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


async def read(client: httpx.AsyncClient, path: str) -> Elements:
    answer = await client.get(path)
    assert answer.status_code == 200
    elements = Elements()
    elements.feed(answer.text)
    return elements


async def test_the_sessions_page_shows_each_session(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await client.post(
        "/agents/sessions/s/events",
        content=make_body(make_event("a", "user.message", data={"content": "Fix the door"})),
    )

    page = await read(client, "/")

    assert "Fix the door" in page.text
    assert "/sessions/s" in page.links
    assert "working" in page.text


async def test_the_sessions_page_filters(client: httpx.AsyncClient) -> None:
    assert "/sessions/s" not in (await read(client, "/?q=nothing-like-this")).links


async def test_a_session_page_shows_its_events_in_pages(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    events = [make_event(f"e{number}", "tool.x", data={"n": number}) for number in range(250)]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    first = await read(client, "/sessions/s")
    (following,) = [link for link in first.links if "after=" in link]
    second = await read(client, following)

    assert ("#e0" in first.links, "#e199" in first.links, "#e200" in first.links) == (True, True, False)
    assert ("#e200" in second.links, "#e249" in second.links) == (True, True)


@pytest.mark.parametrize("type", ["user.message", "assistant.message", HOSTILE])
async def test_hostile_text_in_every_place_stays_text(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, type: str
) -> None:
    context = {"cwd": HOSTILE, "branch": HOSTILE, "repository": HOSTILE}
    events = [
        make_event("a", "session.start", data={"context": context, "selectedModel": HOSTILE, "startTime": HOSTILE}),
        make_event(
            HOSTILE, type, data={"content": HOSTILE, HOSTILE: HOSTILE}, agentId=HOSTILE, timestamp="20" + HOSTILE
        ),
        make_event("\ufeff\u202e\0", type, data={"content": "\udc00 lone"}),
    ]
    await client.post("/agents/sessions/s/events", content=make_body(*events))
    report = dict.fromkeys(("title", "repository", "branch", "host"), HOSTILE)
    await client.put("/agents/sessions/s", json=report)

    pages = [await read(client, path) for path in ("/sessions/s", "/", f"/?q={HOSTILE}&state={HOSTILE}")]

    for page in pages:
        assert not page.names & {"script", "img", "iframe", "object", "style"}
        assert not any(name.startswith("on") or name == "style" for name in page.attributes)
        assert all(re.match(r"[/#]", link) for link in page.links)
    assert HOSTILE in pages[0].text
    assert HOSTILE in pages[1].text


@pytest.mark.parametrize("path", ["/", "/sessions/s"])
async def test_pages_may_load_nothing_but_our_style(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src" not in policy
    assert (await client.get("/style.css")).headers["content-type"].startswith("text/css")


async def test_a_large_event_is_cut_on_the_page(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    await client.post("/agents/sessions/s/events", content=make_body(make_event("a", data={"x": "y" * 500_000})))

    assert len((await client.get("/sessions/s")).content) < 100_000
