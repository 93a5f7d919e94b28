"""What one client sends on purpose costs a real receiver little memory, and others wait for it only shortly."""

import asyncio
import gzip
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from exporter.core.events.json_scanner import TooManyError
from exporter.missioncontrol.ingest.batch import REWOUND_MAX, read_elements
from tests.missioncontrol.http.test_request_intake import memory_mb
from tests.missioncontrol.serving import SERVE

pytestmark = [pytest.mark.slow, pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]
MIB = 1 << 20
EVENTS = "/agents/sessions/s/events"
# A machine that does much else at the same time must not fail these; what they are about took 4 to 18 seconds.
WAITED_SECONDS_MAX = 1.5


class Flood:
    """A real receiver, somebody who sends to it what the tests are about, and somebody else who waits."""

    def __init__(self, client: httpx.AsyncClient, pid: int) -> None:
        self.client = client
        self.waited_seconds_max = 0.0
        self._pid = pid
        self.memory_mb = 0
        self._memory_before_mb = memory_mb(pid)

    async def send(self, *bodies: bytes, encoding: str = "zstd") -> list[int]:
        """Send all of these at once, and return how they were answered."""
        packed = {"Content-Encoding": encoding}
        sending = asyncio.gather(*(self.client.post(EVENTS, content=body, headers=packed) for body in bodies))
        number = 0
        while not sending.done():
            number += 1
            event = b'{"type":"x","id":"other-%d","data":"%s"}' % (number, b"y" * 70_000)
            started = time.monotonic()
            answer = await self.client.post("/agents/sessions/other/events", content=b'{"events":[' + event + b"]}")
            self.waited_seconds_max = max(self.waited_seconds_max, time.monotonic() - started)
            assert answer.status_code in (200, 503)
            await asyncio.sleep(0.01)
        self.memory_mb = memory_mb(self._pid) - self._memory_before_mb
        return [answer.status_code for answer in await sending]


@asynccontextmanager
async def flooded(store_path: Path) -> AsyncIterator[Flood]:
    process = subprocess.Popen([sys.executable, "-c", SERVE, str(store_path)], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        url = (await asyncio.to_thread(process.stdout.readline)).decode().strip()
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(
            base_url=url, headers={"Session-Exporter": "1"}, timeout=120, limits=limits
        ) as client:
            for id in ("s", "other"):
                await client.post("/agents/sessions", json={"id": id})
            yield Flood(client, process.pid)
    finally:
        process.kill()
        process.wait()


def pack(body: bytes) -> bytes:
    return zstandard.compress(body)


async def test_a_body_of_millions_of_elements_is_413_before_they_are_made(store_path: Path) -> None:
    body = pack(b'{"events":[' + b"1," * (31 * MIB // 2) + b"1]}")

    async with flooded(store_path) as flood:
        statuses = await flood.send(body)

    assert statuses == [413]
    assert flood.memory_mb < 150
    assert flood.waited_seconds_max < WAITED_SECONDS_MAX


async def test_bodies_that_wait_to_be_sorted_out_are_limited_together(store_path: Path) -> None:
    body = pack(b'{"events":["' + b"x" * (31 * MIB) + b'"]}')

    async with flooded(store_path) as flood:
        statuses = await flood.send(*[body] * 40)

    assert set(statuses) == {200, 503}
    assert flood.memory_mb < 400
    assert flood.waited_seconds_max < WAITED_SECONDS_MAX


async def test_a_body_of_many_empty_parts_is_refused_at_once(store_path: Path) -> None:
    empty = gzip.compress(b"")
    frames = (zstandard.compress(b""), b"\x50\x2a\x4d\x18\0\0\0\0")

    async with flooded(store_path) as flood:
        statuses = await flood.send(empty * (4_000_000 // len(empty)), encoding="gzip")
        statuses += await flood.send(*(frame * (4_000_000 // len(frame)) for frame in frames))

    assert statuses == [400] * 3
    assert flood.waited_seconds_max < WAITED_SECONDS_MAX


@pytest.mark.parametrize(
    "event",
    [
        b"[" * (15 * MIB) + b"]" * (15 * MIB),
        b'{"type":"x","id":"deep","data":' + b"[" * (7 * MIB) + b"]" * (7 * MIB) + b"}",
        b'{"type":"x","id":"wide","data":["\\ud800"' + b",[[[]]]" * (2 * MIB) + b"]}",
        b'"\\ud800",' + b"[[[]]]," * 4000 + b"[" + b"[[[]]]," * (4 * MIB) + b"1]",
    ],
    ids=["deep", "deep event", "wide event", "many"],
)
async def test_events_that_take_long_to_read_are_not_read(store_path: Path, event: bytes) -> None:
    body = pack(b'{"events":[' + event + b"]}")

    async with flooded(store_path) as flood:
        statuses = await flood.send(*[body] * 3)

    assert statuses == [400] * 3
    assert flood.waited_seconds_max < 2 * WAITED_SECONDS_MAX


async def test_the_slowest_events_that_are_stored_are_shown_soon(store_path: Path) -> None:
    deep = b"[" * 9_000 + b"]" * 9_000
    wide = b'["\\ud800"' + b",[[[]]]" * 60_000 + b"]"
    text = b'"' + b"\\ud800" * (2 * MIB) + b'"'
    async with flooded(store_path) as flood:
        for id, data in {"deep": deep, "wide": wide, "text": text}.items():
            event = b'{"type":"x","id":"%s","data":%s}' % (id.encode(), data)
            answer = await flood.client.post(EVENTS, content=b'{"events":[' + event + b"]}")
            assert answer.json()["ack"]["accepted"] == 1

        for path in ("event?id=deep", "event?id=wide", "event?id=text", "", "export.md"):
            began = time.monotonic()
            answer = await flood.client.get(f"/sessions/s/{path}".rstrip("/"))
            assert answer.status_code == 200
            assert time.monotonic() - began < 2 * WAITED_SECONDS_MAX, path


async def test_millions_of_rewound_ids_are_413_and_do_not_reach_the_writer(store_path: Path) -> None:
    body = pack(b'{"events":[],"rewound":[' + b",".join(b'"%x"' % number for number in range(3_000_000)) + b"]}")

    async with flooded(store_path) as flood:
        statuses = await flood.send(body)

    assert statuses == [413]
    assert flood.waited_seconds_max < WAITED_SECONDS_MAX


ELEMENTS = st.sampled_from(
    [
        b"1",
        b"[]",
        b'{"a":[1,{"b":","}]}',
        b'"],["',
        b"null",
        b'"\\ud800"',
        b" [ 1 , 2 ] ",
        b'"\\""',
        b'{"events":[1,2]}',
    ]
)


@given(st.lists(ELEMENTS, max_size=8))
@pytest.mark.parametrize("scanned", [False, True])
def test_what_is_in_elements_is_not_counted(scanned: bool, raws: list[bytes]) -> None:
    raws = [b'"\\ud800"', *raws] if scanned else raws
    body = b'{"x":[1,2,3,4,5,6,7,8,9,10],"events":[' + b",".join(raws) + b"]}"

    found = read_elements(body, max(len(raws), 1))

    assert found.events == [raw.strip() for raw in raws]
    if len(raws) > 1:
        with pytest.raises(TooManyError):
            read_elements(body, len(raws) - 1)


@pytest.mark.parametrize("id", ["a", '\\"' * 3, "\\\\"])
def test_as_many_rewound_ids_as_are_taken_pass_whatever_is_in_them(id: str) -> None:
    def body(count: int) -> bytes:
        return b'{"events":[],"rewound":[' + b",".join([f'"{id}"'.encode()] * count) + b"]}"

    assert len(read_elements(body(REWOUND_MAX)).rewound) == REWOUND_MAX
    with pytest.raises(TooManyError):
        read_elements(body(REWOUND_MAX + 1))
