"""What is saved of a session tells all of it, also of one that is told in several pieces."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
PIECE = 2000
"""How many events are told at a time."""


class Items(HTMLParser):
    """Collects the classes and the text of each entry."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.classes: list[list[str]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "li":
            self.classes.append((dict(attrs).get("class") or "").split())
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data

    def calls(self) -> list[tuple[list[str], str]]:
        """The tool calls."""
        return [told for told in zip(self.classes, self.texts, strict=True) if "tool" in told[0]]


@pytest.fixture
def store() -> Any:
    with Store(":memory:") as opened:
        yield opened


@pytest.fixture
def at(make_event: Make) -> Make:
    def make(second: int, id: str, type: str, **data: Any) -> bytes:
        minutes, seconds = divmod(second, 60)
        return make_event(id, type, timestamp=f"2026-11-18T10:{minutes % 60:02}:{seconds:02}.000Z", data=data)

    return make


async def deliver(client: httpx.AsyncClient, make_body: Make, events: list[bytes]) -> None:
    for start in range(0, len(events), 1000):
        body = make_body(*events[start : start + 1000])
        assert (await client.post("/agents/sessions/s/events", content=body)).status_code == 200


def filling(at: Make, count: int, name: str) -> list[bytes]:
    return [at(second, f"{name}-{second}", "session.info", message="x") for second in range(count)]


async def test_a_call_is_one_entry_however_far_away_its_end_is(
    client: httpx.AsyncClient, make_body: Make, at: Make
) -> None:
    call = {"toolCallId": "long", "toolName": "task", "arguments": {"prompt": "count the buoys"}}
    never = {"toolCallId": "never", "toolName": "bash", "arguments": {"command": "sleep forever"}}
    events = [at(1, "start", "tool.execution_start", **call), at(2, "open", "tool.execution_start", **never)]
    events += filling(at, 2 * PIECE + 100, "a")
    events.append(at(9, "end", "tool.execution_complete", toolCallId="long", result={"content": "seventeen"}))
    await deliver(client, make_body, [*events, *filling(at, PIECE, "b")])

    html, markdown = [(await client.get(f"/sessions/s/export.{form}")).text for form in ("html", "md")]

    (long_classes, long), (open_classes, unfinished) = Items(html).calls()
    assert "seventeen" in long
    assert "8.0 s" in long
    assert "no result" not in long
    assert "no result" in unfinished
    assert "running" not in {*long_classes, *open_classes}
    assert "running" not in html.partition("<body")[2]
    assert "earlier call" not in html + markdown
    assert markdown.count("seventeen") == 1
    assert markdown.count("no result") == 1


async def test_a_turn_has_its_tokens_and_its_end_from_the_next_piece(
    client: httpx.AsyncClient, make_body: Make, at: Make
) -> None:
    used = {"model": "m", "inputTokens": 1234, "outputTokens": 5}
    events = [*filling(at, PIECE - 1, "a"), at(10, "turn", "assistant.turn_start", turnId="7")]
    events += [at(11, "used", "session.usage_record", usage=used), at(14, "done", "assistant.turn_end", turnId="7")]
    events += [at(20, "next", "assistant.turn_start", turnId="8"), at(26, "end", "assistant.turn_end", turnId="8")]
    await deliver(client, make_body, events)

    markdown = (await client.get("/sessions/s/export.md")).text

    assert "### Turn 7 — m, 1,234 in / 5 out, 4.0 s" in markdown
    assert "### Turn 8 — 6.0 s" in markdown


@pytest.mark.parametrize("taken", [[1], [PIECE - 1, PIECE], [PIECE, PIECE + 1], [PIECE + 100], [PIECE + 199]])
async def test_what_was_taken_back_leaves_a_mark_in_what_is_saved(
    client: httpx.AsyncClient, make_body: Make, at: Make, taken: list[int]
) -> None:
    await deliver(client, make_body, filling(at, PIECE + 200, "a"))
    rewound = [f"a-{number}" for number in taken]
    await client.post("/agents/sessions/s/events", content=make_body(rewound=rewound))

    for form in ("html", "md"):
        text = (await client.get(f"/sessions/s/export.{form}")).text

        assert text.count("rewound") == 1
        assert f"{len(taken)} event" in text


async def test_markdown_keeps_an_agent_apart_from_what_it_did(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    event = make_event("a", "assistant.message", data={"content": "x"}, agentId="kid")
    await deliver(client, make_body, [event])

    assert "## (kid) Sub-agent ·" in (await client.get("/sessions/s/export.md")).text
