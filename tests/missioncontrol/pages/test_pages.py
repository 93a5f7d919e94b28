"""The pages show what is there, with its source, and in windows."""

import json
import re
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.pages.rendering import static_file
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.wiring.event_views import make_trace
from tests.missioncontrol.conftest import Opener

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
DEMO = Path(__file__).resolve().parents[3] / "exporter/demo/session.jsonl"
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures/sessions"
ALL_BYTES_MAX = 80 * 1024
"""What the script, the style and the icon may weigh together."""


class Elements(HTMLParser):
    """Collects elements, attributes, links and text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.classes: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.classes.append(given.get("class") or "")
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        if tag in ("script", "link", "img"):
            self.loaded.append(given.get("src") or given.get("href") or "")

    def handle_data(self, data: str) -> None:
        self.text += data


async def read(client: httpx.AsyncClient, path: str) -> Elements:
    answer = await client.get(path)
    assert answer.status_code == 200, (path, answer.text)
    elements = Elements()
    elements.feed(answer.text)
    return elements


def demo() -> Iterator[list[bytes]]:
    """The demo session's lines, in batches."""
    lines = DEMO.read_bytes().splitlines()
    for start in range(0, len(lines), 50):
        yield lines[start : start + 50]


@pytest.fixture
async def shown(store: Store, open_client: Opener, make_body: Make) -> Any:
    """A receiver with the demo session and the bridge."""
    async with open_client(store, make_trace=make_trace) as opened:
        await opened.post("/agents/sessions", json={"id": "s", "agent_task_id": "s"})
        for batch in demo():
            await opened.post("/agents/sessions/s/events", content=make_body(*batch))
        yield opened


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


async def test_the_sessions_page_filters_by_words_and_state(shown: httpx.AsyncClient) -> None:
    assert "/sessions/s" not in (await read(shown, "/?q=nothing-like-this")).links
    assert "/sessions/s" not in (await read(shown, "/?state=working")).links
    assert "/sessions/s" in (await read(shown, "/?state=ended&q=lighthouse")).links


async def test_every_column_of_the_sessions_has_a_heading_and_a_cell(shown: httpx.AsyncClient) -> None:
    text = (await shown.get("/")).text
    headings = re.findall(r'<th scope="col">([^<]*)</th>', text)
    rows = re.findall(r"<tr data-key.*?</tr>", text, re.DOTALL)

    assert rows
    assert [["Session", *re.findall(r'data-name="([^"]*)"', row)] for row in rows] == [headings] * len(rows)


async def test_a_search_finds_sessions_and_what_was_said_in_them(shown: httpx.AsyncClient) -> None:
    page = await read(shown, "/?q=StopIteration")

    assert any(link.startswith("/sessions/s?at=") for link in page.links)


@pytest.mark.parametrize("words", ['"', "%", "%%%", '" . "', "_"])
@pytest.mark.parametrize("path", ["/", "/sessions/s"])
async def test_a_search_for_nothing_that_can_be_found_says_so(client: httpx.AsyncClient, path: str, words: str) -> None:
    answer = await client.get(path, params={"q": words})

    page = Elements()
    page.feed(answer.text)
    assert f"No searchable words in “{words}”" in page.text


@pytest.mark.parametrize("path", ["/", "/sessions/s"])
async def test_without_words_nothing_is_said_of_a_search(client: httpx.AsyncClient, path: str) -> None:
    for words in ("", "  "):
        assert 'class="found' not in (await client.get(path, params={"q": words})).text


async def test_figures_stand_beside_their_sources_and_are_never_added(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    usage = {"usage": {"inputTokens": 100, "outputTokens": 10, "cost": 1}}
    totals = {"modelMetrics": {"m": {"usage": {"inputTokens": 300, "outputTokens": 30}, "requests": {"cost": 3}}}}
    await client.post(
        "/agents/sessions/s/events",
        content=make_body(
            make_event("a", "session.usage_record", data=usage), make_event("b", "session.shutdown", data=totals)
        ),
    )

    text = " ".join((await read(client, "/sessions/s")).text.split())

    assert "100 input · 10 output usage records" in text
    assert "300 input · 30 output end of session" in text
    assert "1.00 usage records" in text
    assert "3.00 end of session" in text
    assert "400" not in text


async def test_a_timeline_has_turns_and_tool_calls_with_their_ends(shown: httpx.AsyncClient) -> None:
    page = await read(shown, "/sessions/s")

    assert "Turn 4" in page.text
    assert "exit 1" in page.text
    assert "2.4 s" in page.text
    assert "shell finished" in page.text
    assert any("tool" in classes.split() and "warning" in classes.split() for classes in page.classes)
    assert "running" not in {name for classes in page.classes for name in classes.split()}


async def test_a_redaction_marker_says_its_rule(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    said = "The key is [REDACTED:aws-access-key-id:0123abcd], keep it."
    await client.post(
        "/agents/sessions/s/events", content=make_body(make_event("a", "user.message", data={"content": said}))
    )

    answer = await client.get("/sessions/s")

    assert re.search(r"<mark title=\"[^\"]*aws-access-key-id[^\"]*\">aws-access-key-id</mark>", answer.text)


async def test_an_agent_scopes_the_timeline(shown: httpx.AsyncClient) -> None:
    page = await read(shown, "/sessions/s")
    (agent,) = {link for link in page.links if "?agent=" in link}

    child, main = await read(shown, agent), await read(shown, "/sessions/s?main=1")

    assert "List every caller" in child.text
    assert "Lovely. Add a line" not in child.text
    assert "Lovely. Add a line" in main.text
    assert "Two callers. board.py wants" in child.text
    assert "Two callers. board.py wants" not in main.text


async def test_the_waterfall_of_an_interaction_links_to_its_events(shown: httpx.AsyncClient) -> None:
    page = await read(shown, "/sessions/s")
    first, second = (link for link in page.links if "/waterfall?at=" in link)

    falls = await read(shown, first)

    assert "execute_tool bash" in falls.text
    assert "invoke_agent explore" in falls.text
    assert {link.partition("#")[2] for link in falls.links if "#" in link and link != "#main"} <= set(
        (await read(shown, "/sessions/s?all=1")).ids
    )
    assert "execute_tool bash" not in (await read(shown, second)).text


async def test_without_a_bridge_the_waterfall_says_so(client: httpx.AsyncClient) -> None:
    assert "no trace bridge" in (await read(client, "/sessions/s/waterfall")).text


async def test_any_event_is_there_as_json_and_at_its_place(shown: httpx.AsyncClient) -> None:
    lines = DEMO.read_bytes().splitlines()
    for line in lines[::7]:
        id = json.loads(line)["id"]

        assert (await shown.get("/sessions/s/event", params={"id": id, "raw": 1})).content == line
        place = await shown.get("/sessions/s", params={"at": id})
        assert place.status_code == 200
        assert f'id="e-{id}"' in place.text
    assert (await shown.get("/sessions/s/event?id=none")).status_code == 404
    assert (await shown.get("/sessions/s?at=none")).status_code == 404


async def test_what_was_taken_back_leaves_a_mark(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    events = [make_event(id, "user.message", data={"content": f"said {id}"}) for id in "abc"]
    await client.post("/agents/sessions/s/events", content=make_body(*events))
    await client.post("/agents/sessions/s/events", content=make_body(rewound=["b", "c"]))

    page = await read(client, "/sessions/s")

    assert "2 events were rewound" in page.text
    assert "said a" in page.text
    assert "said b" not in page.text


async def test_the_next_error_goes_round(shown: httpx.AsyncClient) -> None:
    first = await shown.get("/sessions/s/next?kind=error")
    seen = [first.headers["location"]]
    for _ in range(3):
        id = httpx.URL(seen[-1]).params["at"]
        seen.append((await shown.get(f"/sessions/s/next?kind=error&after={id}")).headers["location"])

    assert seen[0] in seen[1:]
    assert len(set(seen)) == 2
    assert (await shown.get("/sessions/s/next?kind=other")).status_code == 400


async def test_a_long_session_comes_in_windows_that_join(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    events = [make_event(f"e{number}", "session.info", data={"message": f"m{number}"}) for number in range(1000)]
    await client.post("/agents/sessions/s/events", content=make_body(*events))
    seen: list[str] = []
    path = "/sessions/s"
    while path:
        page = await read(client, path)
        seen[:0] = [id for id in page.ids if id.startswith("e-e")]
        path = next((link for link in page.links if "before=" in link), "")

    assert seen == [f"e-e{number}" for number in range(1000)]


async def test_a_session_of_20000_events_opens_in_time(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    types = ["assistant.turn_start", "assistant.message", "tool.execution_start", "tool.execution_complete"]
    for start in range(0, 20_000, 1000):
        batch = [
            make_event(
                f"e{n}", types[n % 4], data={"toolCallId": f"c{n // 2}", "content": "x" * 300, "toolName": "bash"}
            )
            for n in range(start, start + 1000)
        ]
        await client.post("/agents/sessions/s/events", content=make_body(*batch))
    await client.get("/sessions/s")
    for path in ("/sessions/s", "/sessions/s?at=e10000", "/sessions/s?edge=first"):
        took = []
        for _ in range(3):  # a pause of the machine is no cost of the page
            started = time.perf_counter()
            answer = await client.get(path)
            took.append(time.perf_counter() - started)
        assert len(answer.content) < 1 << 20

        # Measured at a tenth of this; a loaded machine is no reason to fail.
        assert min(took) < 1.0, path


async def test_the_feed_filters_and_counts(shown: httpx.AsyncClient) -> None:
    everything, warnings = await read(shown, "/feed"), await read(shown, "/feed?type=warning")

    assert "Notifications 3" in everything.text
    assert "Whole suite" in everything.text
    assert "credentials" in warnings.text
    assert "Whole suite" not in warnings.text


async def test_health_shows_rules_by_day_and_exporters(shown: httpx.AsyncClient) -> None:
    await shown.put("/agents/sessions/s", json={"redactions": {"2026-11-18": {"aws-access-key-id": 3}}})
    sink = {"name": "local", "lag_events": 7, "lag_seconds": 12.0, "last_error": "it said no"}
    report = {"version": "9.8.7", "host": "desk", "sinks": [sink], "quarantined": 2}
    await shown.post("/agents/exporters/x", json=report)

    text = " ".join((await read(shown, "/health")).text.split())

    for said in (
        "aws-access-key-id",
        "11-18",
        "9.8.7",
        "desk",
        "12.0 s behind, 7 events",
        "it said no",
        "2 events are quarantined",
    ):
        assert said in text


async def test_health_shows_what_is_held_back_and_how_often_it_was_tried(client: httpx.AsyncClient) -> None:
    sinks = [{"name": "local", "retries": 4}, {"name": "team", "retries": 0}]
    for id, reasons in (("x", {"refused_400": 2, "not_json": 1}), ("y", {"not_json": 5, "odd": "many"})):
        report = {"host": f"desk-{id}", "sinks": sinks, "quarantined": 3, "quarantine": reasons}
        await client.post(f"/agents/exporters/{id}", json=report)

    page = await read(client, "/health")
    told = (await client.get("/api/v1/exporters")).json()["exporters"]

    text = " ".join(re.sub("(?<=[a-z0-9])(?=desk)", " ", page.text).split())
    assert "6 events are quarantined" in text
    for said in ("refused 4002 desk-x", "not json1 desk-x", "not json5 desk-y", "local up to date, 4 retries"):
        assert said in text
    assert {one["id"]: (one["quarantine"], one["sinks"]) for one in told}["x"] == (
        {"refused_400": 2, "not_json": 1},
        sinks,
    )


async def test_each_session_has_the_lag_that_its_exporter_tells(client: httpx.AsyncClient) -> None:
    for id, host in (("s", "desk"), ("level", "desk"), ("old", "shelf"), ("nobody", "none")):
        await client.post("/agents/sessions", json={"id": id})
        await client.put(f"/agents/sessions/{id}", json={"host": host})
    sink = {"name": "team", "lag_seconds": 90.0, "lag_events": 12}
    behind = {"s": {"lag_seconds": 61.0, "lag_events": 7}, "elsewhere": {"lag_seconds": "x"}}
    await client.post("/agents/exporters/x", json={"host": "desk", "sinks": [sink], "behind": behind})
    await client.post("/agents/exporters/y", json={"host": "shelf", "sinks": [sink]})

    page = (await client.get("/")).text
    cells = {
        id: re.search(rf'data-key="{id}".*?data-name="Upload lag">(.*?)</td>', page).group(1)  # type: ignore[union-attr]
        for id in ("s", "level", "old", "nobody")
    }

    assert re.fullmatch(r"1 min 01 s · 7 events <small>as of <time.*", cells["s"])
    assert (cells["level"], cells["old"], cells["nobody"]) == ("none", "1 min 30 s · 12 events", "")
    assert "1 min 01 s · 7 events" in (await client.get("/sessions/s")).text


async def test_an_export_holds_the_session(shown: httpx.AsyncClient) -> None:
    lines = await shown.get("/sessions/s/export.jsonl")
    markdown = await shown.get("/sessions/s/export.md")
    page = await shown.get("/sessions/s/export.html")

    assert lines.content.splitlines() == DEMO.read_bytes().splitlines()
    assert "attachment" in lines.headers["content-disposition"]
    assert "The tide table test fails" in markdown.text
    assert "next_high_tide" in markdown.text
    elements = Elements()
    elements.feed(page.text)
    assert "The tide table test fails" in elements.text
    assert not elements.loaded
    assert all(link.startswith("#") for link in elements.links)
    assert (await shown.get("/sessions/s/export.pdf")).status_code == 404


@pytest.mark.parametrize("path", ["/", "/sessions/s", "/feed", "/health", "/sessions/s/waterfall"])
async def test_pages_may_load_nothing_but_our_own_three_files(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    page = await read(client, path)

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert sorted(page.loaded) == ["/icon.svg", "/script.js", "/style.css"]
    for loaded in page.loaded:
        assert (await client.get(loaded)).status_code == 200


def test_script_style_and_icon_are_small() -> None:
    assert sum(len(static_file(name)) for name in ("script.js", "style.css", "icon.svg")) < ALL_BYTES_MAX


async def test_a_large_event_is_cut_on_the_page(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    events = [
        make_event("a", data={"x": "y" * 500_000}),
        make_event("b", "user.message", data={"content": "y" * 500_000}),
        make_event("c", "tool.execution_start", data={"toolCallId": "1", "arguments": {"command": "y" * 500_000}}),
        make_event("d", "tool.execution_complete", data={"toolCallId": "1", "result": {"content": "y" * 500_000}}),
    ]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    assert len((await client.get("/sessions/s")).content) < 100_000


async def test_a_browser_gets_an_error_as_a_page(client: httpx.AsyncClient) -> None:
    answer = await client.get("/sessions/none", headers={"Accept": "text/html,*/*"})

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "There is no session none." in answer.text


@pytest.mark.parametrize("path", ["/nope", "/sessions", "/sessions/s/nope", "/healthz.html", "/apian"])
async def test_a_browser_gets_a_page_at_an_address_that_leads_nowhere(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, headers={"Accept": "text/html,*/*"})

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    page = Elements()
    page.feed(answer.text)
    assert "Page not found." in page.text
    assert "/" in page.links


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/nope", "application/json"),
        ("/nope", "*/*"),
        ("/api/v1/nope", "text/html"),
        ("/agents/nope", "text/html"),
        ("/metrics/nope", "text/html"),
        ("/readyz/nope", "text/html"),
    ],
)
async def test_a_program_gets_json_at_an_address_that_leads_nowhere(
    client: httpx.AsyncClient, path: str, accept: str
) -> None:
    answer = await client.get(path, headers={"Accept": accept})

    assert answer.status_code == 404
    assert answer.json()["error"]["kind"] == "not_found"


@pytest.mark.parametrize(
    ("name", "said"),
    [("compact", "Conversation compacted"), ("resume", "Session resumed"), ("sub_bg", "Sub-agent started")],
)
async def test_what_the_real_cli_wrote_has_its_marks(
    client: httpx.AsyncClient, make_body: Make, name: str, said: str
) -> None:
    lines = (FIXTURES / name / "events.jsonl").read_bytes().splitlines()
    await client.post("/agents/sessions/s/events", content=make_body(*lines))

    page, everything = await read(client, "/sessions/s"), await read(client, "/sessions/s?all=1")

    assert said in page.text
    for line in lines:
        assert f"e-{json.loads(line)['id']}" in everything.ids


async def test_a_large_text_is_shown_from_its_beginning_and_whole_as_json(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    event = make_event("a", "user.message", data={"content": "The beginning. " + "y" * 300_000})
    await client.post("/agents/sessions/s/events", content=make_body(event))

    page = await read(client, "/sessions/s")

    assert "The beginning. yyy" in page.text
    assert "/sessions/s/event?id=a" in page.links
    assert (await client.get("/sessions/s/event?id=a&raw=1")).content == event
