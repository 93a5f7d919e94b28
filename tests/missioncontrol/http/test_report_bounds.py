"""Reports that hold what cannot be: a clear answer, nothing kept of them, and no page that breaks."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from exporter.missioncontrol.store.amounts import AMOUNT_MAX

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
DAY = "2026-11-01"
PATHS = ("/", "/feed", "/health", "/sessions/s", "/metrics", "/api/v1/sessions", "/api/v1/exporters")
COUNTS = ("/api/v1/redactions", "/api/v1/redactions?by=day,rule", "/health", "/", "/sessions/s", "/api/v1/sessions/s")
ODD: tuple[Any, ...] = (
    2**63,
    -1,
    10**400,
    1e308,
    0.5,
    True,
    None,
    "x",
    [],
    {},
    [[1]],
    {"x": {"y": []}},
    [None],
    {"": None},
)


@pytest.mark.parametrize(
    "redactions",
    [
        {DAY: {"r": 2**63}},
        {DAY: {"r": 2**53 + 1}},
        {DAY: {"r": -1}},
        {DAY: {"r": "1"}},
        {DAY: {"r" * 201: 1}},
        {DAY: {"": 1}},
        {DAY: {str(n): 1 for n in range(5001)}},
        {str(n): {} for n in range(5000)},
        {"junk": {"r": 1}},
        {"": {"r": 1}},
        {DAY + "\n": {"r": 1}},
        {"\uff12026-11-01": {"r": 1}},
        {DAY: [1]},
        [1],
        2**63,
    ],
    ids=lambda redactions: str(redactions)[:40],
)
async def test_counts_that_cannot_be_are_refused_and_nothing_is_kept(
    client: httpx.AsyncClient, redactions: object
) -> None:
    await client.put("/agents/sessions/s", json={"redactions": {DAY: {"r": 1}}})

    answer = await client.put("/agents/sessions/s", json={"title": "T", "redactions": redactions})

    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"kind", "message", "hint"}
    assert (await client.get("/api/v1/sessions/s")).json()["masked"] == 1


async def test_the_highest_counts_can_be_summed_and_shown(client: httpx.AsyncClient) -> None:
    days = {
        f"{year}-{day:02}-01": {f"r{n}": 2**53 for n in range(100)} for year in range(1000, 1004) for day in range(10)
    }
    assert (await client.put("/agents/sessions/s", json={"redactions": days})).status_code == 200

    answers = [await client.get(path) for path in COUNTS]

    assert [answer.status_code for answer in answers] == [200] * len(COUNTS)
    (row,) = (await client.get("/api/v1/redactions?by=session")).json()["redactions"]
    assert row["count"] == AMOUNT_MAX


async def test_counts_of_everyday_size_are_summed_to_the_last_one(client: httpx.AsyncClient) -> None:
    days = {DAY: {"r": 2**52 + 1}, "2026-11-02": {"r": 3, "s": 0}}
    await client.put("/agents/sessions/s", json={"redactions": days})

    (row,) = (await client.get("/api/v1/redactions?by=session")).json()["redactions"]

    assert (row["count"], row["reported"], row["here"]) == (2**52 + 4, 2**52 + 4, 0)


@pytest.mark.parametrize("odd", [*ODD, "\0", "a\udc00"], ids=lambda odd: repr(odd)[:20])
@pytest.mark.slow
async def test_no_odd_value_anywhere_in_a_report_breaks_a_page(client: httpx.AsyncClient, odd: object) -> None:
    sink = {"name": "n", "lag_events": 1, "lag_seconds": 1.0, "last_error": None, "retries": 0}
    behind = {"lag_events": 1, "lag_seconds": 1.5}
    usual: dict[str, Any] = {
        "version": "1", "host": "h", "sinks": [sink], "quarantined": 1, "quarantine": {"r": 1}, "behind": {"s": behind},
    }  # fmt: skip
    reports = [{**usual, name: odd} for name in usual]
    reports += [{**usual, "sinks": [{**sink, name: odd}]} for name in sink]
    reports += [{**usual, "behind": {"s": {**behind, name: odd}}} for name in behind]
    reports += [{**usual, "quarantine": {"r": odd}}, {**usual, "sinks": [odd]}, {**usual, "behind": {"s": odd}}]
    reports += [{**usual, "new": odd}, {**usual, "reported_at": odd}, {**usual, "id": odd, "token": odd}]
    await client.put("/agents/sessions/s", json={"host": "h"})
    for report in reports:
        answer = await client.post("/agents/exporters/x", content=json.dumps(report))

        assert answer.status_code in (200, 400), (report, answer.text)
        for path in PATHS if answer.status_code == 200 else ():
            page = await client.get(path)
            assert page.status_code == 200, (path, report)
    for name in ("title", "repository", "branch", "host", "state"):
        answer = await client.put("/agents/sessions/s", content=json.dumps({name: odd}))

        assert answer.status_code in (200, 400), (name, answer.text)
        for path in PATHS:
            assert (await client.get(path)).status_code == 200, (path, name)


async def test_a_report_that_nests_deep_is_refused(client: httpx.AsyncClient) -> None:
    answer = await client.post("/agents/exporters/x", content=b'{"sinks":' + b"[" * 900 + b"]" * 900 + b"}")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad_report")
