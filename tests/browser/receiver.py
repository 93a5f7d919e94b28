"""A receiver that a browser talks to: in this process, on a port of its own, with sessions of every kind in it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from exporter.missioncontrol.http.app import create_app
from exporter.missioncontrol.http.server import serve_http
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.wiring.event_views import make_trace, project

DEMO = Path(__file__).resolve().parents[2] / "exporter/demo/session.jsonl"
SECRETS = {
    "AKIAQ7MZ3XLH5TWD2RVK": "[REDACTED:aws-access-key-id:3f2a9c11]",
    "ghp_Vb3xKq9TzR2mWc7LnD5sYh8JpF4gA6uE1tQo": "[REDACTED:github-pat-classic:8b01d7e4]",
}
_START_SECONDS = 20


class Receiver:
    """Runs in a thread until closed; `post` and `put` are what an exporter would do."""

    def __init__(self, directory: Path) -> None:
        self.url = ""
        self._store = Store(directory / "store.db")
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._started.wait(_START_SECONDS)
        self._client = httpx.Client(base_url=self.url, headers={"Session-Exporter": "0.1.0"}, timeout=30)

    def close(self) -> None:
        """Stop it."""
        self._client.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._store.close()

    def _run(self) -> None:
        async def serve() -> None:
            app = create_app(self._store, make_trace=make_trace, project=project)
            server = await serve_http(app, "127.0.0.1", 18_411, explicit_port=False)
            self.url = server.url
            self._started.set()
            await self._stop.wait()
            await server.stop()

        self._loop.run_until_complete(serve())

    def post(self, session: str, events: Iterable[dict[str, Any]]) -> None:
        """Register a session if need be, and deliver events to it."""
        self._ok(self._client.post("/agents/sessions", json={"id": session, "agent_task_id": session}))
        waiting = list(events)
        for start in range(0, len(waiting), 1000):
            body = {"events": waiting[start : start + 1000]}
            self._ok(self._client.post(f"/agents/sessions/{session}/events", json=body))

    def rewind(self, session: str, ids: list[str]) -> None:
        """Take events back."""
        self._ok(self._client.post(f"/agents/sessions/{session}/events", json={"events": [], "rewound": ids}))

    def live(self, session: str, events: list[dict[str, Any]]) -> None:
        """Pass ephemeral events on."""
        self._ok(self._client.post(f"/agents/sessions/{session}/live", json={"events": events}))

    def report(self, session: str, **report: Any) -> None:
        """Report on a session."""
        self._ok(self._client.put(f"/agents/sessions/{session}", json=report))

    def report_exporter(self, name: str, **report: Any) -> None:
        """Report on an exporter."""
        self._ok(self._client.post(f"/agents/exporters/{name}", json=report))

    @staticmethod
    def _ok(answer: httpx.Response) -> None:
        assert answer.is_success, answer.text


def event(number: int, type: str, data: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """An event, `number` seconds after the session's beginning."""
    at = datetime(2026, 11, 18, 9, tzinfo=UTC) + timedelta(seconds=number)
    stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"type": type, "data": data or {}, "id": f"event-{number}", "timestamp": stamp, **fields}


def demo(moved: timedelta = timedelta()) -> list[dict[str, Any]]:
    """The demo session's events, redacted as the exporter does it, moved in time."""
    events = []
    for line in DEMO.read_text(encoding="utf-8").splitlines():
        for secret, marker in SECRETS.items():
            line = line.replace(secret, marker)  # noqa: PLW2901  one line, step by step
        read: dict[str, Any] = json.loads(line)
        for told, name in ((read, "timestamp"), (read["data"], "startTime")):
            if name in told:
                at = datetime.fromisoformat(told[name]) + moved
                told[name] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        events.append(read)
    return events


def fill(receiver: Receiver) -> None:
    """Put sessions of every state in: the demo, one that waits, one that works, one that crashed, many that ended."""
    now = datetime.now(UTC)
    receiver.post("demo", demo(now - timedelta(minutes=12) - datetime(2026, 11, 18, 9, 30, tzinfo=UTC)))
    days = {(now - timedelta(days=back)).strftime("%Y-%m-%d"): back for back in range(6)}
    counts = {
        day: {"github-pat-classic": 1 + 3 * back % 7, "aws-access-key-id": 1 + back % 3, "jwt": back % 4 or 1}
        for day, back in days.items()
    }
    named = {"host": "desk", "title": "Why the tide table fails at night (demo)"}
    receiver.report("demo", **named, redactions=counts)
    for number, (name, title, state) in enumerate(_OTHERS):
        receiver.post(name, _story(now - timedelta(minutes=7 * number), title, state))
        receiver.report(
            name, host=("desk", "build-7")[number % 2], **({"state": "crashed"} if state == "crashed" else {})
        )
    late = {"name": "mission_control.team", "lag_events": 42, "lag_seconds": 8.5, "last_error": "connection refused"}
    fresh = {"name": "local", "lag_events": 0, "lag_seconds": 0.0, "last_error": None}
    receiver.report_exporter("3f6c", version="0.1.0", host="desk", sinks=[fresh], quarantined=0)
    receiver.report_exporter(
        "9b1e",
        version="0.1.0",
        host="build-7",
        sinks=[fresh, late],
        quarantined=2,
        quarantine={"refused_400": 1, "out_of_time": 1},
    )


_OTHERS = (
    ("waits", "Move the harbour lights to the new scheduler", "needs_attention"),
    ("works", "Port the fog horn to asyncio", "working"),
    ("crash", "Bisect the flaky anchor test", "crashed"),
    ("ended-1", "Explain how the ferry timetable is cached", "ended"),
    ("ended-2", "Upgrade to Python 3.13", "ended"),
    ("ended-3", "Write the release notes for 4.2", "ended"),
)


def _story(began: datetime, title: str, state: str) -> list[dict[str, Any]]:
    def at(seconds: float, type: str, **data: Any) -> dict[str, Any]:
        stamp = (began + timedelta(seconds=seconds - 60)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return {"type": type, "data": data, "id": f"{type}-{seconds}", "timestamp": stamp}

    context = {"cwd": "/home/dana/harbour", "repository": "harbour-works/harbour", "branch": "main"}
    usage = {"inputTokens": 18_200, "outputTokens": 940, "cost": 1}
    told = [
        at(0, "session.start", selectedModel="demo-model-1", copilotVersion="1.0.102", context=context),
        at(1, "user.message", content=title),
        at(2, "assistant.turn_start", turnId="0"),
        at(3, "session.usage_record", usage=usage),
        at(4, "assistant.message", content="I look at the code first.", messageId="m1"),
        at(5, "tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "make test"}),
    ]
    if state == "working" or state == "crashed":
        return told
    told.append(at(9, "tool.execution_complete", toolCallId="c1", success=True, result={"content": "12 passed"}))
    if state == "needs_attention":
        request = {"kind": "shell", "fullCommandText": "git push --force", "intention": "Publish the branch"}
        return [*told, at(10, "permission.requested", requestId="r1", permissionRequest=request)]
    totals = {"usage": {"inputTokens": 19_100, "outputTokens": 940}, "requests": {"cost": 1}}
    return [*told, at(10, "assistant.turn_end", turnId="0"), at(12, "session.shutdown", modelMetrics={"m": totals})]
