"""Times say their zone where no script makes them the reader's own, and a timeline its days where they change."""

import re
from collections.abc import Callable

import httpx
import pytest

from exporter.missioncontrol.pages.formats import clock, moment
from tests.missioncontrol.pages.test_pages import read

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
DETAILED = ("/", "/sessions/s", "/feed", "/sessions/s/event?id=a", "/sessions/s/forget", "/sessions/s/export.html")


@pytest.mark.parametrize("path", DETAILED)
async def test_a_time_that_stands_alone_says_that_it_is_in_utc(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, path: str
) -> None:
    event = make_event("a", "session.warning", data={"message": "x"}, timestamp="2026-11-18T23:30:00.000-05:00")
    await client.post("/agents/sessions/s/events", content=make_body(event))

    assert "2026-11-19 04:30:00 UTC" in (await read(client, path)).text


async def test_the_clock_of_an_upload_lag_says_that_it_is_in_utc(client: httpx.AsyncClient) -> None:
    await client.post("/agents/exporters/x", json={"behind": {"s": {"lag_seconds": 61.0, "lag_events": 7}}})

    answer = await client.get("/")

    assert " UTC</time></small>" in answer.text


@pytest.mark.parametrize("path", ["/sessions/s", "/sessions/s/export.html", "/sessions/s/export.md"])
async def test_the_clocks_of_a_timeline_are_said_once_to_be_in_utc(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, path: str
) -> None:
    stamps = ("2026-11-18T10:00:00.000Z", "2026-11-18T11:00:01.000+01:00")
    events = [make_event(f"e{n}", "session.info", timestamp=stamp) for n, stamp in enumerate(stamps)]
    await client.post("/agents/sessions/s/events", content=make_body(*events))

    text = (await client.get(path)).text

    assert text.count("All times are in UTC.") == 1
    assert ("<noscript>" in text) == (path == "/sessions/s")
    assert "10:00:00" in text
    assert "10:00:01" in text
    assert "11:00:01<" not in text
    assert "10:00:00 UTC</time></a>" not in text


@pytest.mark.parametrize("stamp", [None, "", "soon", "2026-11-18T10:00:00", "0001-01-01T00:00:00+14:00", "9" * 40])
def test_what_tells_no_zone_is_not_said_to_be_in_utc(stamp: str | None) -> None:
    assert "UTC" not in moment(stamp)
    assert "UTC" not in clock(stamp, zone=True)


def days_of(html: str) -> list[str]:
    """The days of a timeline, each with the time of the entry that it stands in."""
    found = re.findall(r'<h2 class="day">(\w+) <time>([0-9-]+)</time></h2><a [^>]*><time[^>]*>([0-9:]+)<', html)
    return [" ".join(one) for one in found]


@pytest.fixture
async def nights(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> httpx.AsyncClient:
    """A session over three days: each minute around two midnights, one of them told in another zone."""
    stamps = [f"2026-11-18T23:{minute:02}:00.000Z" for minute in range(57, 60)]
    stamps += [f"2026-11-18T20:{minute:02}:00.000-04:00" for minute in range(3)]
    stamps += [f"2026-11-20T00:{minute:02}:00.000Z" for minute in range(3)]
    told = [make_event(f"e{n}", "session.info", timestamp=stamp) for n, stamp in enumerate(stamps)]
    await client.post("/agents/sessions/s/events", content=make_body(*told, make_event("odd", "x", timestamp="soon")))
    return client


@pytest.mark.parametrize("path", ["/sessions/s", "/sessions/s/export.html"])
async def test_the_day_stands_where_it_changes(nights: httpx.AsyncClient, path: str) -> None:
    told = days_of((await nights.get(path)).text)

    assert told == ["Wednesday 2026-11-18 23:57:00", "Thursday 2026-11-19 00:00:00", "Friday 2026-11-20 00:00:00"]


async def test_the_day_stands_in_markdown_where_it_changes(nights: httpx.AsyncClient) -> None:
    text = (await nights.get("/sessions/s/export.md")).text

    headings = re.findall(r"^## (.*)\n\n- .* · ([0-9:]+)$", text, re.MULTILINE)
    assert headings == [
        ("Wednesday 2026-11-18", "23:57:00"),
        ("Thursday 2026-11-19", "00:00:00"),
        ("Friday 2026-11-20", "00:00:00"),
    ]


async def test_a_page_says_its_day_at_its_first_entry_and_a_part_below_another_does_not_repeat_it(
    nights: httpx.AsyncClient,
) -> None:
    friday = "Friday 2026-11-20 00:00:00"
    for query, first in {
        "after=e3": ["Thursday 2026-11-19 00:01:00", friday],
        "from=e4": ["Thursday 2026-11-19 00:01:00", friday],
        "after=e3&part=1": [friday],
        "from=e4&part=1": [friday],
        "after=e5&part=1": [friday],
        "from=e3&part=1": ["Thursday 2026-11-19 00:00:00", friday],
        "from=e0&part=1": ["Wednesday 2026-11-18 23:57:00", "Thursday 2026-11-19 00:00:00", friday],
        "before=e5&part=1": ["Wednesday 2026-11-18 23:57:00", "Thursday 2026-11-19 00:00:00"],
    }.items():
        assert days_of((await nights.get(f"/sessions/s?{query}")).text) == first, query


async def test_a_saved_session_of_several_pieces_says_each_day_once(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    for start in range(0, 4500, 900):
        batch = [make_event(f"e{number}", "session.info") for number in range(start, start + 900)]
        await client.post("/agents/sessions/s/events", content=make_body(*batch))

    assert len(days_of((await client.get("/sessions/s/export.html")).text)) == 1
