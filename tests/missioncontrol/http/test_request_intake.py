"""What is wrong, too large or hostile: a clear answer, nothing stored in part, and no memory for the asking."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard

from exporter.missioncontrol.http.request_intake import RequestLimits
from exporter.missioncontrol.store.sqlite.store import SqliteStore as Store
from tests.missioncontrol.http.test_request_body import bomb_gzip, bomb_zstd
from tests.missioncontrol.serving import SERVE

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]
MIB = 1 << 20

WRONG = {
    "no JSON": b"{",
    "text": b"hello",
    "nothing": b"",
    "an array": b"[]",
    "no events": b"{}",
    "events of a wrong type": b'{"events":{}}',
    "events null": b'{"events":null}',
    "a half body": b'{"events":[{"type":"x","id":"half-1"},{"type":"x","id":',
    "text behind": b'{"events":[{"type":"x","id":"a"}]} {',
    "rewound of a wrong type": b'{"events":[{"type":"x","id":"a"}],"rewound":[1]}',
    "not UTF-8": b'{"events":[{"type":"x","id":"a","data":"\xff"}],',
    "deep": b'{"events":' + b"[" * 100_000,
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
async def test_a_body_that_is_wrong_is_400_and_nothing_of_it_is_stored(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/agents/sessions/s/events", content=body)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert all(error[name] for name in ("kind", "message", "hint"))
    assert (await client.get("/api/v1/sessions/s/digest")).json()["count"] == 0


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"id":7}', b'{"id":"../x"}', b'{"id":"' + b"x" * 300 + b'"}'])
async def test_a_registration_that_is_wrong_is_400(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/agents/sessions", content=body)

    assert answer.status_code == 400
    assert all(answer.json()["error"][name] for name in ("kind", "message", "hint"))


@pytest.mark.parametrize("body", [{"title": 7}, {"redactions": {"day": 1}}, {"redactions": {"d": {"r": "x"}}}, []])
async def test_a_report_that_is_wrong_is_400(client: httpx.AsyncClient, body: object) -> None:
    answer = await client.put("/agents/sessions/s", json=body)

    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad_body")


async def test_events_without_a_usable_id_are_named_and_the_others_stored(
    client: httpx.AsyncClient, make_event: Make, make_body: Make
) -> None:
    body = make_body(b"7", b'{"type":"x"}', make_event("a"), b'{"id":""}', b"null")

    answer = (await client.post("/agents/sessions/s/events", content=body)).json()["ack"]

    assert (answer["count"], answer["rejected"]) == (1, ["#0", "#1", "#3", "#4"])


def memory_mb(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) // 1024


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
async def test_bombs_and_huge_bodies_cost_a_real_receiver_little_memory(store_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(store_path)], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).decode().strip()
        async with httpx.AsyncClient(base_url=url, headers={"Session-Exporter": "1"}, timeout=60) as client:
            await client.post("/agents/sessions", json={"id": "s"})
            before = memory_mb(process.pid)
            statuses = [
                await post(client, bomb_zstd(1024 * MIB), "zstd"),
                await post(client, bomb_gzip(512 * MIB), "gzip"),
                await post(client, zstandard.compress(bytes(512 * MIB)), "zstd"),
                await post(client, bytes(100 * MIB), "identity"),
                *await asyncio.gather(*(post(client, bomb_zstd(256 * MIB), "zstd") for _ in range(4))),
            ]
            after = memory_mb(process.pid)
            held = json.loads((await client.get("/api/v1/sessions/s/digest")).content)
    finally:
        process.kill()
        process.wait()

    assert statuses == [413] * 8
    assert after - before < 80
    assert held["count"] == 0


async def post(client: httpx.AsyncClient, body: bytes, encoding: str) -> int | str:
    answer = await client.post("/agents/sessions/s/events", content=body, headers={"Content-Encoding": encoding})
    assert answer.json()["error"]["kind"] == "too_large"
    return answer.status_code


async def test_bodies_that_are_too_much_together_are_sent_again_later(store: Store, open_client: Any) -> None:
    waiting, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield bytes(3000)
        waiting.set()
        await go_on.wait()

    async with open_client(store, limits=RequestLimits(body_bytes=5000, bodies_bytes=5000)) as client:
        first = asyncio.create_task(client.post("/agents/sessions", content=slow()))
        await waiting.wait()
        refused = await client.post("/agents/sessions", content=bytes(3000))
        go_on.set()
        await first
        after = await client.post("/agents/sessions", json={"id": "s"})

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert after.status_code == 200


async def test_a_body_that_stands_still_is_given_up(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporter.missioncontrol.http.request_intake._CHUNK_SECONDS", 0.05)

    async def stalled() -> AsyncIterator[bytes]:
        yield b'{"events":['
        await asyncio.sleep(30)

    answer = await client.post("/agents/sessions/s/events", content=stalled())

    assert (answer.status_code, answer.json()["error"]["kind"]) == (408, "slow_body")
