"""Times say their zone where no script makes them the reader's own, and a timeline its days where they change."""

from collections.abc import Callable

import httpx
import pytest

from exporter.missioncontrol.web.markup import moment
from tests.missioncontrol.test_pages import read

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
    for short in (True, False):
        assert "UTC" not in moment(stamp, short=short)
