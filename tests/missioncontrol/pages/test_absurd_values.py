"""No number that can be stored makes a page, an export or an answer fail."""

import json
import random
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx
import pytest

from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.sources.event_types import KNOWN
from exporter.wiring.event_views import make_trace
from tests.missioncontrol.pages.test_pages import DEMO

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
HUGE: Final = 10**400 - 1
VALUES: Final[tuple[Any, ...]] = (
    *(HUGE, -HUGE, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 1.7e308, -1e308, 5e-324, -1, 0, 1.5),
    *(True, None, "", "7", "1e999", [], [1], {}, {"a": 1}),
)
NUMBERS: Final = {
    "totalToolCalls": 1,
    "totalTokens": 1,
    "durationMs": 1,
    "preCompactionTokens": 1,
    "postCompactionTokens": 1,
    "messagesRemoved": 1,
    "eventCount": 1,
    "codeChanges": {"linesAdded": 1, "linesRemoved": 1},
    "kind": {"type": "shell_completed", "exitCode": 1},
    "usage": {"inputTokens": 1, "outputTokens": 1, "cacheReadTokens": 1, "reasoningTokens": 1, "cost": 1},
    "modelMetrics": {"m": {"usage": {"inputTokens": 1, "outputTokens": 1}, "requests": {"cost": 1, "count": 1}}},
    "toolTelemetry": {"metrics": {"resultLength": 1}},
    "result": {"exitCode": 1},
}
LAG: Final = {"lag_seconds": 1, "lag_events": 1, "retries": 1, "at": 1}
REPORT: Final = {
    "host": "h",
    "sinks": [{"name": "n", **LAG}, LAG],
    "quarantined": 1,
    "quarantine": {"not_json": 1},
}
PATHS: Final = (
    *("/", "/feed", "/health", "/sessions/s", "/sessions/s?all=1", "/sessions/s/waterfall"),
    *("/sessions/s/export.html", "/sessions/s/export.md", "/sessions/s/export.jsonl", "/sessions/s/event?id=e1"),
    *("/api/v1/sessions", "/api/v1/sessions/s", "/api/v1/sessions/s/events?about=1", "/api/v1/sessions/s/tree"),
    *("/api/v1/sessions/s/trace", "/api/v1/notifications", "/api/v1/redactions?by=rule,day", "/api/v1/exporters"),
    *("/api/v1/search?q=a", "/metrics", "/readyz"),
)


@pytest.fixture
async def client(store: Store, open_client: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(store, make_trace=make_trace) as opened:
        await opened.post("/agents/sessions", json={"id": "s"})
        yield opened


def spoilt(value: object, choose: Callable[[], Any]) -> Any:
    """Return the value with something else in place of each of its numbers."""
    if isinstance(value, dict):
        return {name: spoilt(one, choose) for name, one in value.items()}
    if isinstance(value, list):
        return [spoilt(one, choose) for one in value]
    return choose() if isinstance(value, int | float) and not isinstance(value, bool) else value


def events(choose: Callable[[], Any]) -> list[bytes]:
    made: list[dict[str, Any]] = [json.loads(line) for line in DEMO.read_bytes().splitlines()]
    for number, type in enumerate(sorted(KNOWN)):
        at = f"2026-11-18T10:00:00.{number:03}Z"
        event = {"type": type, "id": f"e{number}", "timestamp": at, "data": {**NUMBERS, "toolCallId": "t"}}
        made.append(event if number % 2 else {**event, "agentId": "agent"})
    return [json.dumps({**event, "data": spoilt(event["data"], choose)}).encode() for event in made]


async def fill(client: httpx.AsyncClient, choose: Callable[[], Any]) -> None:
    told = events(choose)
    for start in range(0, len(told), 50):
        body = b'{"events":[' + b",".join(told[start : start + 50]) + b"]}"
        answer = await client.post("/agents/sessions/s/events", content=body)
        assert answer.status_code == 200, answer.text
    for report in (REPORT, {**REPORT, "host": "i", "behind": {"s": LAG}}):
        said = json.dumps(spoilt(report, choose)).encode()
        answer = await client.post(f"/agents/exporters/{report['host']}", content=said)
        assert answer.status_code in (200, 400), answer.text
    await client.put("/agents/sessions/s", json={"host": "h"})


async def check(client: httpx.AsyncClient, *, stored: bool = True) -> None:
    for path in PATHS:
        answer = await client.get(path)
        assert answer.status_code == (200 if stored or "?id=" not in path else 404), (path, answer.text[:500])


@pytest.mark.parametrize("value", VALUES, ids=lambda value: str(value)[:12])
async def test_no_value_makes_anything_fail(client: httpx.AsyncClient, value: Any) -> None:
    await fill(client, lambda: value)

    await check(client)


@pytest.mark.parametrize("seed", range(5))
async def test_no_values_together_make_anything_fail(client: httpx.AsyncClient, seed: int) -> None:
    chance = random.Random(seed)
    await fill(client, lambda: chance.choice(VALUES))

    await check(client)


async def test_sums_of_what_was_masked_end_somewhere(client: httpx.AsyncClient) -> None:
    for session in ("s", "t"):
        await client.post("/agents/sessions", json={"id": session})
        days = {"2026-11-18": {"a": 2**52, "b": -1}, "2026-11-17": {"a": 2**52, "b": 0}}
        for name in ("a", "b"):
            told = {day: {name: rules[name]} for day, rules in days.items()}
            await client.put(f"/agents/sessions/{session}", json={"redactions": told})

    await check(client, stored=False)


async def test_a_sum_beyond_64_bits_is_the_most_there_can_be(client: httpx.AsyncClient, store: Store) -> None:
    rows = [(day, f"2026-11-{day:02}") for day in range(1, 5)]
    store.do(
        lambda database: database.executemany(
            "INSERT INTO redactions (session, day, rule, source, count) SELECT n, ?, 'r', 'here', ? FROM sessions",
            [(day, 2**63 - 1) for _, day in rows],
        )
    )

    await check(client, stored=False)
    assert (await client.get("/api/v1/redactions")).json()["redactions"][0]["count"] == 2**53


@pytest.mark.parametrize("path", ["/", "/api/v1/sessions"])
async def test_a_query_of_very_many_words_is_answered(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path, params={"q": "s " * 1500})

    assert answer.status_code == 200


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64, -(2**63) - 1, HUGE])
async def test_a_cursor_with_a_number_that_was_never_given_out_is_no_defect(
    client: httpx.AsyncClient, number: int
) -> None:
    cursor = urlsafe_b64encode(json.dumps(["2026", number]).encode()).decode()

    answer = await client.get("/api/v1/notifications", params={"cursor": cursor})

    assert answer.status_code == (400 if number != 2**63 - 1 else 200)
