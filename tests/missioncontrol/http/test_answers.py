"""What commands print is masked in batches of uploaders that do not redact, whatever came with which request."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import httpx
import pytest

from config.settings import Settings
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from exporter.wiring.redactor import make_redaction
from tests.shared import CACHE

pytestmark = pytest.mark.anyio

SECRET = "amber jetty lagoon"
BIG = "x" * 100_000


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    settings = Settings(state_dir=str(tmp_path_factory.mktemp("state")), cache_dir=str(CACHE))
    redaction = make_redaction(settings)
    yield {"redactor": redaction.event, "commands": redaction.commands, "headers": {}}


@pytest.fixture
async def floor(store: Store, open_client: Any, options: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(store, **options) as opened:
        await opened.post("/agents/sessions", json={"id": "s"})
        yield opened


def event(n: int, kind: str, parent: int | None = None, **data: Any) -> dict[str, Any]:
    above = f"e{n - 1 if parent is None else parent}" if n > 1 else None
    return {"type": kind, "data": data, "id": f"e{n}", "timestamp": f"2026-11-18T10:00:{n:02d}.000Z", "parentId": above}


def start(n: int, call: str, command: str, **more: Any) -> dict[str, Any]:
    return event(n, "tool.execution_start", toolCallId=call, arguments={"command": command, **more})


def answer(n: int, call: str, text: str = SECRET) -> dict[str, Any]:
    return event(n, "tool.execution_complete", toolCallId=call, success=True, result={"content": text})


def piece(call: str) -> dict[str, Any]:
    made = event(1, "tool.execution_partial_result", toolCallId=call, partialOutput=SECRET)
    return {**made, "id": f"p{call}", "ephemeral": True}


async def send(client: httpx.AsyncClient, *events: dict[str, Any], path: str = "events") -> Any:
    answered = await client.post(f"/agents/sessions/s/{path}", json={"events": events})
    assert answered.status_code == 200, answered.text
    return answered.json()


async def stored(client: httpx.AsyncClient) -> dict[str, str]:
    events = (await client.get("/api/v1/sessions/s/events?limit=500")).json()["events"]
    return {one["id"]: json.dumps(one) for one in events}


BATCHES = [
    [[1, 2, 3]],
    [[1], [2], [3]],
    [[1, 2], [2, 3], [3]],
    [[1, 3], [2]],  # out of order: the start is placed before by its parent
]


@pytest.mark.parametrize("batches", BATCHES)
async def test_a_call_is_known_from_the_batch_or_from_the_store(
    floor: httpx.AsyncClient, batches: Sequence[Sequence[int]]
) -> None:
    events = {1: event(1, "user.message"), 2: start(2, "c", "pass show a", note=BIG), 3: answer(3, "c")}

    for batch in batches:
        await send(floor, *(events[n] for n in batch))

    found = await stored(floor)
    assert list(found) == ["e1", "e2", "e3"]
    is_late = batches == BATCHES[-1]  # nothing said by then what the answer is of
    assert (SECRET in found["e3"]) is is_late
    assert ("[REDACTED:printed.pass:" in found["e3"]) is not is_late
    counted = (await floor.get("/metrics")).text
    assert f"calls_unknown_total {int(is_late)}\n" in counted


async def test_the_latest_start_before_an_answer_counts_and_what_is_stored_is_what_is_acknowledged(
    floor: httpx.AsyncClient, store: Store
) -> None:
    await send(floor, start(1, "c", "ls"), answer(2, "c"), start(3, "c", "openssl rand -hex 4"))
    said = await send(floor, answer(4, "c"), start(5, "c", "ls"), answer(6, "c"), answer(7, "d"))

    found = await stored(floor)
    assert [SECRET in found[f"e{n}"] for n in (2, 4, 6, 7)] == [True, False, True, True]
    assert said["accepted"] == 4
    items = (await floor.get("/agents/sessions/s?ids=1")).json()["items"]
    digest = hashlib.sha256((await floor.get("/sessions/s/export.jsonl")).content.split(b"\n")[3]).hexdigest()
    assert digest in json.dumps(items)
    search = await floor.get("/api/v1/search?q=jetty")
    assert {one["event"] for one in search.json()["results"]} == {"e2", "e6", "e7"}


@pytest.mark.parametrize("path", ["events", "live"])
async def test_pieces_are_masked_before_they_are_shown(
    path: str, store: Store, open_client: Callable[..., Any], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_client(store, **options) as floor:
        await floor.post("/agents/sessions", json={"id": "s"})
        receiver = floor._transport.app.state.receiver
        shown: list[bytes] = []
        monkeypatch.setattr(receiver.live, "publish_events", lambda _, events, **how: shown.extend(events))
        await send(floor, start(1, "c", "pass show a"), start(2, "d", "ls"))

        await send(floor, piece("c"), piece("d"), path=path)

        pieces = [line for line in shown if b"partialOutput" in line]
        assert [SECRET.encode() in line for line in pieces] == [False, True]


async def test_a_hook_after_a_tool_is_masked_by_the_command_that_it_holds(floor: httpx.AsyncClient) -> None:
    def hook(n: int, command: str) -> dict[str, Any]:
        given = {"toolArgs": {"command": command}, "toolResult": {"textResultForLlm": SECRET, "sessionLog": SECRET}}
        return event(n, "hook.start", hookType="postToolUse", input=given)

    await send(floor, hook(1, "pass show a"), hook(2, "ls"))

    found = await stored(floor)
    assert [SECRET in found[id] for id in ("e1", "e2")] == [False, True]


async def test_what_an_exporter_has_redacted_stays_as_it_is(
    store: Store, open_client: Callable[..., Any], options: dict[str, Any]
) -> None:
    declared = {**options, "headers": {"Session-Exporter": "1"}}
    async with open_client(store, **declared) as client:
        await client.post("/agents/sessions", json={"id": "s"})

        await send(client, start(1, "c", "pass show a"), answer(2, "c"))

        assert SECRET in (await stored(client))["e2"]
