"""What the real CLI's own uploader sent, replayed against the receiver."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Redacted
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.shared import REAL

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURES = [*sorted(REAL.glob("captures*/mc_*/mc.jsonl")), *sorted(FIXTURES.glob("**/mc.jsonl"))]


def requests(capture: Path) -> list[tuple[str, str, Any]]:
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    return [(line["m"], line["p"], line["body"]) for line in lines if line.get("p", "").startswith("/agents/sessions")]


def whole(events: Any) -> bool:
    """Some captures kept only a name of each event."""
    return isinstance(events, list) and all(isinstance(event, dict) for event in events)


# An empty list would skip silently, so the made-up capture below is always there too.
MADE_UP = [
    ("POST", "/agents/sessions", {"id": "made-up", "agent_task_id": "made-up", "owner_id": 11, "repo_id": 22}),
    (
        "POST",
        "/agents/sessions/made-up/events",
        {
            "events": [
                {"type": "session.start", "data": {}, "id": "a", "timestamp": "2026-11-18T10:00:00.000Z"},
                {"type": "session.title_changed", "data": {"title": "T"}, "id": "b", "ephemeral": True},
                {"type": "user.message", "data": {"content": "hunter2"}, "id": "c"},
            ],
            "completed_command_ids": [],
        },
    ),
    ("POST", "/agents/sessions/made-up/events", {"events": []}),
]


@pytest.mark.parametrize(
    "exchange", [MADE_UP, *map(requests, CAPTURES)], ids=["made-up", *(path.parent.name for path in CAPTURES)]
)
async def test_the_clis_own_uploader_stores_its_durable_events_once_however_often_it_replays(
    store: Store, open_client: Any, redact: Callable[[bytes], Redacted], exchange: list[tuple[str, str, Any]]
) -> None:
    sessions = {path.split("/")[3] for _, path, _ in exchange if path.endswith("/events")}
    durable: dict[str, dict[str, Any]] = {session: {} for session in sessions}
    for _, path, body in exchange:
        events = (body or {}).get("events") or []
        if path.endswith("/events") and whole(events):
            durable[path.split("/")[3]].update({event["id"]: event for event in events if not event.get("ephemeral")})

    async with open_client(store, redactor=redact, headers={"Authorization": "Bearer of-the-cli"}) as client:
        for session in sessions:
            await client.post("/agents/sessions", json={"id": session, "agent_task_id": session})
        for _ in range(2):
            for method, path, body in exchange:
                await replay(client, method, path, body)
        digests = [(await client.get(f"/api/v1/sessions/{session}/digest")).json() for session in sessions]
        stored = [(await client.get(f"/api/v1/sessions/{session}/events")).json()["events"] for session in sessions]

    for session, events, held in zip(sessions, stored, digests, strict=True):
        assert [event["id"] for event in events] == list(durable[session])
        assert held["count"] == len(events)
        assert b"hunter2" not in json.dumps(events).encode()


async def replay(client: httpx.AsyncClient, method: str, path: str, body: Any) -> None:
    if path.endswith("/events") and not whole(body["events"]):
        return
    content = b"" if body is None else json.dumps(body).encode()
    answer = await client.request(method, path, content=content)
    assert answer.status_code == 200
    if path == "/agents/sessions":
        assert answer.json()["task_id"]
