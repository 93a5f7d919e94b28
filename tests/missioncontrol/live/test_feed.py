"""The feed across sessions, the sub-agent tree, the trace's seam and the counts of what was masked."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import httpx
import pytest

from exporter.core.events.redaction import Redacted
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.shared import REAL

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]


async def post(client: httpx.AsyncClient, body: bytes, session: str = "s") -> None:
    await client.post("/agents/sessions", json={"id": session})
    assert (await client.post(f"/agents/sessions/{session}/events", content=body)).status_code == 200


async def feed(client: httpx.AsyncClient, **asked: Any) -> list[tuple[Any, ...]]:
    entries = (await client.get("/api/v1/notifications", params=asked)).json()["notifications"]
    return [(entry["event"], entry["category"], entry["type"], entry["status"]) for entry in entries]


@pytest.fixture
def told(make_event: Make) -> list[bytes]:
    def at(second: int, id: str, type: str, **data: Any) -> bytes:
        return make_event(id, type, timestamp=f"2026-11-18T10:00:0{second}.000Z", data=data)

    shell = {"type": "shell_completed", "shellId": "1", "exitCode": 5}
    text = "<system_notification>\nShell done\n</system_notification>"
    return [
        at(1, "n", "system.notification", kind=shell, content=text),
        at(2, "w", "session.warning", warningType="interrupted_tools", message="Look"),
        at(3, "e", "session.error", errorType="query", message="Failed"),
        at(4, "p", "permission.requested", requestId="r1"),
        at(5, "q", "user_input.requested", requestId="r2", question="Which?"),
        at(6, "done", "permission.completed", requestId="r1"),
    ]


async def test_the_feed_tells_what_happened_newest_first(
    client: httpx.AsyncClient, told: list[bytes], make_body: Make
) -> None:
    await post(client, make_body(*told))

    assert await feed(client) == [
        ("q", "wait", "user_input", "waiting"),
        ("p", "wait", "permission", "answered"),
        ("e", "error", "query", "failed"),
        ("w", "warning", "interrupted_tools", None),
        ("n", "notification", "shell_completed", "failed"),
    ]
    assert await feed(client, type="wait", status="waiting") == [("q", "wait", "user_input", "waiting")]
    assert await feed(client, type="shell_completed") == [("n", "notification", "shell_completed", "failed")]
    (entry,) = (await client.get("/api/v1/notifications?type=notification")).json()["notifications"]
    assert (entry["text"], entry["session"]) == ("Shell done", "s")


async def test_the_feed_goes_across_sessions_in_pages(
    client: httpx.AsyncClient, told: list[bytes], make_body: Make
) -> None:
    for session in ("s", "t"):
        await post(client, make_body(*told), session)

    seen, cursor = 0, None
    while True:
        asked = {"limit": "3"} | ({"cursor": cursor} if cursor else {})
        page = (await client.get("/api/v1/notifications", params=asked)).json()
        seen += len(page["notifications"])
        cursor = page["next"]
        if cursor is None:
            break

    assert seen == 10
    assert len(await feed(client, session="t")) == 5
    assert {"category": "error", "type": "query", "status": "failed", "count": 2} in page["counts"]
    assert (await client.get("/api/v1/notifications?cursor=x")).status_code == 400


async def test_what_is_rewound_leaves_the_feed_and_a_session_that_goes_on_waits_for_nobody(
    client: httpx.AsyncClient, told: list[bytes], make_event: Make, make_body: Make
) -> None:
    await post(client, make_body(*told))
    await post(client, make_body(rewound=["e", "done"]))
    rewound = await feed(client)
    await post(client, make_body(make_event("r", "session.resume")))

    assert [(id, status) for id, _, _, status in rewound] == [
        ("q", "waiting"), ("p", "waiting"), ("w", None), ("n", "failed"),
    ]  # fmt: skip
    assert [status for *_, status in await feed(client, type="wait")] == ["dropped", "dropped"]
    await client.delete("/api/v1/sessions/s")
    assert await feed(client) == []


async def test_the_failure_of_a_sub_agent_is_one_entry(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    def of_agent(id: str, type: str, **data: str) -> bytes:
        return bytes(make_event(id, type, data={"toolCallId": "c", **data}, agentId="agent"))

    before = of_agent("b", "session.error", errorType="network", message="Tried again")
    error = of_agent("e", "session.error", errorType="query", message="Execution failed: 400 mock failure")
    failed = of_agent("f", "subagent.failed", agentName="task", error="400 mock failure")
    start = of_agent("s", "subagent.started", agentName="task")

    await post(client, make_body(start, before, error))
    await post(client, make_body(failed))

    assert sorted(await feed(client)) == [("b", "error", "network", "failed"), ("f", "error", "task", "failed")]


@pytest.mark.parametrize("data", [[], "x", {"kind": 7, "content": {}}, {"kind": {"type": {}, "exitCode": "x"}}, None])
async def test_a_notification_of_any_shape_is_told(
    client: httpx.AsyncClient, make_event: Make, make_body: Make, data: Any
) -> None:
    await post(client, make_body(make_event("n", "system.notification", data=data)))

    assert await feed(client) == [("n", "notification", "unclassified", None)]


async def test_the_tree_says_who_started_whom(client: httpx.AsyncClient, make_event: Make, make_body: Make) -> None:
    def call(id: str, call: str, **fields: Any) -> bytes:
        return make_event(id, "tool.execution_start", data={"toolCallId": call, "toolName": "task"}, **fields)

    def start(id: str, call: str, agent: str) -> bytes:
        data = {"toolCallId": call, "agentName": "explore", "agentDisplayName": "Explore"}
        return make_event(id, "subagent.started", data=data, agentId=agent)

    done = make_event("f", "subagent.failed", data={"toolCallId": "c2"}, agentId="inner")
    events = [make_event("a"), call("b", "c1"), start("c", "c1", "outer"), call("d", "c2", agentId="outer")]
    await post(client, make_body(*events, start("e", "c2", "inner"), done, make_event("g", agentId="stray")))

    found = (await client.get("/api/v1/sessions/s/tree")).json()

    outer, stray = found["agents"]
    (inner,) = outer["agents"]
    assert (found["events"], outer["id"], outer["parent"], outer["events"]) == (2, "outer", None, 2)
    assert (inner["id"], inner["parent"], inner["state"], inner["name"]) == ("inner", "outer", "failed", "explore")
    assert (outer["state"], outer["tool_call_id"], outer["display_name"]) == ("running", "c1", "Explore")
    assert (stray["id"], stray["name"], stray["agents"]) == ("stray", None, [])


async def test_agents_that_start_each_other_end_somewhere(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    events = [
        make_event(f"{kind}{agent}", kind, data={"toolCallId": call}, agentId=agent)
        for kind, call, agent in (
            ("subagent.started", "c1", "x"), ("subagent.started", "c2", "y"),
            ("tool.execution_start", "c1", "y"), ("tool.execution_start", "c2", "x"),
        )
    ]  # fmt: skip
    await post(client, make_body(*events))

    text = (await client.get("/api/v1/sessions/s/tree")).text

    assert text.count('"id":"x"') == text.count('"id":"y"') == 1


@pytest.mark.parametrize("version", ["captures", "captures-1.0.48"])
async def test_the_real_clis_sub_agent_is_in_the_tree(client: httpx.AsyncClient, make_body: Make, version: str) -> None:
    file = REAL / version / "sub_bg" / "events.jsonl"
    if not file.exists():
        pytest.skip("the captures are not here")
    await post(client, make_body(*file.read_bytes().splitlines()))

    (agent,) = (await client.get("/api/v1/sessions/s/tree")).json()["agents"]

    assert (agent["name"], agent["parent"], agent["state"]) == ("explore", None, "completed")


async def test_the_trace_is_made_of_the_stored_lines_in_order(
    store: Store, open_client: Any, make_event: Make, make_body: Make
) -> None:
    def make_trace(session_id: str, lines: Iterable[bytes], begun_by: str | None = None) -> bytes:
        return json.dumps({"session": session_id, "ids": [json.loads(line)["id"] for line in lines]}).encode()

    async with open_client(store, make_trace=make_trace) as client:
        await post(client, make_body(make_event("a"), make_event("b")))
        answer = await client.get("/api/v1/sessions/s/trace")
        unknown = await client.get("/api/v1/sessions/t/trace")

    assert answer.json() == {"session": "s", "ids": ["a", "b"]}
    assert unknown.status_code == 404


async def test_without_a_bridge_there_is_no_trace(client: httpx.AsyncClient) -> None:
    answer = await client.get("/api/v1/sessions/s/trace")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (501, "no_bridge")


async def test_what_was_masked_is_counted_by_rule_session_and_day(
    store: Store, open_client: Any, make_event: Make, make_body: Make, redact: Callable[[bytes], Redacted]
) -> None:
    async with open_client(store, redactor=redact, headers={}) as client:
        await post(client, make_body(*(make_event(id, data={"p": "hunter2"}) for id in "ab")))
        days = {"2026-11-18": {"aws": 2, "password": 1}, "2026-11-17": {"aws": 5}}
        for told in ({"2026-11-18": {"aws": 1}}, days):
            await client.put("/agents/sessions/s", json={"redactions": told}, headers={"Session-Exporter": "1"})

        async def counted(by: str) -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = (await client.get(f"/api/v1/redactions?by={by}")).json()["redactions"]
            return found

        assert await counted("rule") == [
            {"rule": "aws", "count": 7, "reported": 7, "here": 0, "sessions": 1},
            {"rule": "password", "count": 3, "reported": 1, "here": 2, "sessions": 1},
        ]
        assert await counted("session") == [{"session": "s", "count": 10, "reported": 8, "here": 2}]
        assert [(row["day"], row["count"]) for row in await counted("day")] == [("2026-11-18", 5), ("2026-11-17", 5)]
        assert [(row["day"], row["rule"], row["count"]) for row in await counted("day,rule")] == [
            ("2026-11-18", "password", 3), ("2026-11-18", "aws", 2), ("2026-11-17", "aws", 5),
        ]  # fmt: skip
        assert (await client.get("/api/v1/redactions?by=secret")).status_code == 400
        page = (await client.get("/api/v1/redactions?limit=1")).json()
        rest = (await client.get(f"/api/v1/redactions?limit=1&cursor={page['next']}")).json()
        assert [row["rule"] for row in page["redactions"] + rest["redactions"]] == ["aws", "password"]
        await client.delete("/api/v1/sessions/s")
        assert await counted("rule") == []
