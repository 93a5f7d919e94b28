"""Bodies: their encodings, and what happens to those that would not fit."""

import gzip
import tracemalloc
from collections.abc import AsyncIterator, Callable

import httpx
import pytest
import zstandard

pytestmark = pytest.mark.anyio
Make = Callable[..., bytes]

MIB = 1 << 20


async def post(client: httpx.AsyncClient, body: bytes, encoding: str) -> httpx.Response:
    return await client.post("/agents/sessions/s/events", content=body, headers={"Content-Encoding": encoding})


def zstd_in_pieces(body: bytes) -> bytes:
    """Frames without a content size, as a streaming compressor writes them."""
    half = len(body) // 2
    packed = b""
    for part in (body[:half], body[half:]):
        compressor = zstandard.ZstdCompressor().compressobj()
        packed += compressor.compress(part) + compressor.flush()
    return packed


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("identity", bytes),
        ("gzip", gzip.compress),
        ("gzip", lambda body: gzip.compress(body[:20]) + gzip.compress(body[20:])),
        ("zstd", zstandard.ZstdCompressor(level=3).compress),
        ("ZSTD", zstd_in_pieces),
        ("zstd", lambda body: zstandard.compress(body[:20]) + zstandard.compress(body[20:])),
        ("zstd", lambda body: b"\x50\x2a\x4d\x18\0\0\0\0" + zstandard.compress(b"") + zstandard.compress(body)),
    ],
)
@pytest.mark.parametrize("size", [10, 700_000])
async def test_every_encoding_offered_is_understood(
    client: httpx.AsyncClient,
    make_event: Make,
    make_body: Make,
    encoding: str,
    pack: Callable[[bytes], bytes],
    size: int,
) -> None:
    event = make_event("a", data={"x": "y" * size})

    answer = await post(client, pack(make_body(event)), encoding)

    assert answer.json()["ack"]["accepted"] == 1
    assert event in (await client.get("/api/v1/sessions/s/events")).content


async def test_an_unknown_encoding_is_415_and_says_what_is_understood(client: httpx.AsyncClient) -> None:
    answer = await post(client, b"x", "br")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (415, "unknown_encoding")
    assert answer.headers["accept-encoding"] == "zstd, gzip"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("zstd", b"not zstd"),
        ("gzip", b"not gzip"),
        ("zstd", zstandard.compress(b'{"events":[]}')[:-4]),
        ("gzip", gzip.compress(b'{"events":[]}', mtime=0)[:-9]),
        ("zstd", b""),
        ("zstd", zstandard.compress(b'{"events":[]}') + b"garbage"),
        ("zstd", zstandard.compress(b'{"events":[]}') + zstandard.compress(b"{}")[:-1]),
        ("zstd", zstd_in_pieces(b'{"events":[]}')[:-1]),
        ("zstd", zstd_in_pieces(b'{"events":[]}')[:-3]),
        ("gzip", gzip.compress(b'{"events":[]}', mtime=0) + b"garbage"),
        ("gzip", b""),
    ],
)
async def test_a_broken_encoding_is_400(client: httpx.AsyncClient, encoding: str, body: bytes) -> None:
    assert (await post(client, body, encoding)).status_code == 400


async def test_a_second_frame_is_part_of_the_body(client: httpx.AsyncClient) -> None:
    packed = zstandard.compress(b'{"events":[]}') + zstandard.compress(b'{"events":[]}')

    answer = await post(client, packed, "zstd")

    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "bad_body")


def bomb_zstd(size: int) -> bytes:
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join(compressor.compress(bytes(MIB)) for _ in range(size // MIB)) + compressor.flush()


def bomb_gzip(size: int) -> bytes:
    return gzip.compress(bytes(size), compresslevel=9)


@pytest.mark.parametrize(("encoding", "make"), [("zstd", bomb_zstd), ("gzip", bomb_gzip)])
async def test_a_bomb_is_413_and_costs_no_more_memory_than_the_ceiling(
    client: httpx.AsyncClient, encoding: str, make: Callable[[int], bytes]
) -> None:
    bomb = make(192 * MIB)
    assert len(bomb) < MIB

    tracemalloc.start()
    answer = await post(client, bomb, encoding)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large")
    assert peak < 70 * MIB


async def test_a_bomb_that_admits_its_size_is_413_at_once(client: httpx.AsyncClient) -> None:
    assert (await post(client, zstandard.compress(bytes(100 * MIB)), "zstd")).status_code == 413


async def test_a_declared_length_above_the_ceiling_is_413_before_it_is_read(client: httpx.AsyncClient) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += MIB
            yield bytes(MIB)

    declared = {"Content-Length": str(65 * MIB)}
    answer = await client.post("/agents/sessions/s/events", content=endless(), headers=declared)
    chunked = await client.post("/agents/sessions/s/events", content=endless())

    assert (answer.status_code, chunked.status_code) == (413, 413)
    assert read <= 67 * MIB
