"""Messages come out whole however they come in, and nothing that comes in makes it hold more than it may."""

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.sources.rpc.framing import HEADER_BYTES_MAX, Framer, FramingError, Message, TooLong, frame

BODIES = st.lists(st.binary(max_size=200), max_size=8)


def feed_all(framer: Framer, content: bytes, chunk_bytes: int) -> list[Message]:
    messages: list[Message] = []
    for at in range(0, len(content), chunk_bytes):
        messages.extend(framer.feed(content[at : at + chunk_bytes]))
    return messages


@given(BODIES, st.integers(1, 300))
def test_messages_come_out_as_they_went_in(bodies: list[bytes], chunk_bytes: int) -> None:
    framer = Framer(200)

    assert feed_all(framer, b"".join(map(frame, bodies)), chunk_bytes) == bodies
    assert framer.held == 0


@given(st.lists(st.binary(max_size=400), max_size=6), st.integers(1, 500))
def test_a_message_that_is_too_long_is_skipped_and_the_next_one_is_not(bodies: list[bytes], chunk_bytes: int) -> None:
    messages = feed_all(Framer(100), b"".join(map(frame, bodies)), chunk_bytes)

    assert messages == [body if len(body) <= 100 else TooLong(len(body), body[:256]) for body in bodies]


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
        b"X: y\r\nContent-Length:\t 2 \r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n",
        b"Content-Length: 0002\r\n\r\n",
    ],
)
def test_headers_are_read_as_leniently_as_they_are_written(header: bytes) -> None:
    assert Framer(10).feed(header + b"{}") == [b"{}"]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 1e3\r\n\r\n",
        b"Content-Length: 99999999999999\r\n\r\n",
        b"Content-Length: 9999999999999\r\n\r\n",
        b"Content-Length: \r\n\r\n",
        b"Content-Length: \xd9\xa3\r\n\r\n",
        b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"\r\n\r\n",
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        b'{"jsonrpc":"2.0"}\n',
        b"\x16\x03\x01" * 100,
        b"Content-Length: 1\n\n{",
        b"x: y\r\n" * HEADER_BYTES_MAX,
    ],
)
def test_what_is_no_framing_is_an_error_at_once(header: bytes) -> None:
    with pytest.raises(FramingError):
        Framer(1 << 20).feed(header)


def test_the_error_says_nothing_of_what_came() -> None:
    with pytest.raises(FramingError) as raised:
        Framer(10).feed(b"Secret-Header hunter2\r\n\r\n")

    assert "hunter2" not in str(raised.value)


@given(st.binary(max_size=3000), st.integers(1, 700))
def test_random_bytes_give_messages_or_an_error(content: bytes, chunk_bytes: int) -> None:
    framer = Framer(100)
    try:
        feed_all(framer, content, chunk_bytes)
    except FramingError:
        return
    assert framer.held <= HEADER_BYTES_MAX + 4


@given(BODIES, st.data())
def test_damage_gives_messages_or_an_error(bodies: list[bytes], data: st.DataObject) -> None:
    content = bytearray(b"".join(map(frame, bodies)))
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    framer = Framer(100)
    try:
        feed_all(framer, bytes(content), data.draw(st.integers(1, 100)))
    except FramingError:
        return
    assert framer.held <= HEADER_BYTES_MAX + 4


@pytest.mark.parametrize("announced", [10**6, 10**9, 10**12])
def test_memory_is_bounded_whatever_is_announced_and_sent(announced: int) -> None:
    framer, chunk = Framer(1 << 16), random.Random(1).randbytes(1 << 18)
    framer.feed(b"Content-Length: %d\r\n\r\n" % announced)
    tracemalloc.start()
    for _ in range(min(200, announced // len(chunk))):
        framer.feed(chunk)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 1 << 20
    assert framer.held <= 256


def test_a_message_that_never_ends_holds_no_more_than_it_may() -> None:
    framer = Framer(1000)
    framer.feed(b"Content-Length: 1000\r\n\r\n" + b"x" * 999)

    assert framer.held == 999
    assert framer.feed(b"x") == [b"x" * 1000]
    assert framer.held == 0
