"""Tokens and cost on the pages and in what is saved: sources are equal only when their numbers are."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.missioncontrol.pages.test_pages import read

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


def usage(input: float, output: float, cost: float) -> dict[str, Any]:
    return {"usage": {"inputTokens": input, "outputTokens": output, "cost": cost}}


def totals(input: float, output: float, cost: float) -> dict[str, Any]:
    counted = {"inputTokens": input, "outputTokens": output}
    return {"modelMetrics": {"m": {"usage": counted, "requests": {"cost": cost}}}}


async def tell(client: httpx.AsyncClient, make_event: Make, make_body: Make, *records: Any, end: Any) -> None:
    events = [make_event(f"r{n}", "session.usage_record", data=data) for n, data in enumerate(records)]
    await client.post(
        "/agents/sessions/s/events", content=make_body(*events, make_event("end", "session.shutdown", data=end))
    )


async def said(client: httpx.AsyncClient, path: str) -> str:
    return " ".join((await read(client, path)).text.split())


async def test_sources_that_differ_by_one_token_are_not_told_to_be_equal(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    await tell(client, make_event, make_body, usage(18_201, 950, 1.001), end=totals(18_200, 950, 1.002))

    listed, page, saved = [await said(client, path) for path in ("/", "/sessions/s", "/sessions/s/export.html")]

    assert "18,201 in · 950 out records" in listed
    assert "18,200 in · 950 out at end" in listed
    assert "1.001 records" in listed
    assert "1.002 at end" in listed
    assert "=" not in listed.partition("18,20")[2]
    for told in (page, saved):
        assert "18,201 input · 950 output usage records" in told
        assert "18,200 input · 950 output end of session" in told
        assert "1.001 usage records" in told
        assert "1.002 end of session" in told


async def test_sources_that_say_the_same_are_named_together(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    """Three times 0.33 is not quite 0.99 for a computer, but nobody has told another number."""
    records = [usage(6_000, 300, 0.33)] * 3
    await tell(client, make_event, make_body, *records, end=totals(18_000, 900, 0.99))

    listed, page = await said(client, "/"), await said(client, "/sessions/s")

    assert "18.0k in · 900 out records = at end" in listed
    assert "0.99 records = at end" in listed
    assert "18.0k input · 900 output usage records = end of session" in page


@pytest.mark.parametrize("path", ["/", "/sessions/s", "/sessions/s/export.html"])
async def test_a_shortened_number_has_all_its_digits_at_hand(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, path: str
) -> None:
    await tell(client, make_event, make_body, usage(1_234_567, 950, 1.5), end=totals(900, 950, 3))

    html = (await client.get(path)).text

    assert '<b title="1,234,567">1.2M</b>' in html
    assert '<b title="1.5">1.50</b>' in html
