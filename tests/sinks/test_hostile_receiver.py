"""No receiver, however hostile, is believed wrongly, waited for without end, or given more memory than allowed.

`HOSTILE_SECONDS=600 pytest tests/sinks/test_hostile_receiver.py` runs the fuzzer for so long.
"""

import asyncio
import gzip
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from exporter.core.delivery.verdict import Accepted, Later, Verdict
from exporter.sinks.http_transport import HttpTransport
from exporter.sinks.mission_control import MissionControlSink
from exporter.sinks.sink import Registered
from exporter.sinks.transport import NoAnswerError
from tests.queued import Stopwatch
from tests.sinks.hostile import Answer, HostileServer, answers, at_once, drip, serving

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "0"))
UNTIL = time.monotonic() + SECONDS
TIMEOUT = 0.5
OK = b"HTTP/1.1 200 OK\r\n"
MIB = 1 << 20
Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def server() -> Iterator[HostileServer]:
    with HostileServer() as server:
        yield server


def send(server: HostileServer, timeout_seconds: float = TIMEOUT) -> Verdict:
    """Send one event as the sink at the floor does."""

    async def one() -> Verdict:
        transport = HttpTransport(server.url, connections=1, timeout_seconds=timeout_seconds)
        sink = MissionControlSink("mc", server.url, transport, token=lambda: "the-token-of-this-test")
        try:
            return (await sink.send("r", ["a"], [b'{"id":"a"}'])).verdict
        finally:
            await sink.close()

    return asyncio.run(one())


@settings(
    max_examples=int(SECONDS * 20) or 150,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(answer=answers())
def test_only_an_acceptance_is_taken_for_one(server: HostileServer, answer: Answer) -> None:
    if SECONDS and time.monotonic() > UNTIL:
        return
    server.answer = answer
    watch = Stopwatch()

    judged = send(server)

    assert watch.seconds() < TIMEOUT + 1.5
    if not answer.accepts:
        assert not isinstance(judged, Accepted), answer
    if isinstance(judged, Later):
        assert "the-token-of-this-test" not in judged.reason


@pytest.mark.parametrize("framing", [b"Content-Length: 2\r\n\r\n{}", b"\r\n{}"])
def test_a_sound_answer_is_an_acceptance(framing: bytes) -> None:
    """The control: what is refused above is refused for what is wrong with it."""
    with serving(at_once(OK + framing)) as server:
        assert send(server) == Accepted()


@pytest.mark.parametrize(
    "answer",
    [
        drip(OK + b"Content-Length: 2\r\n\r\n{}", 0.1),
        drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 9, 0.1),
        Answer(((0.0, OK + b"Content-Length: 9000\r\n\r\n"), *((0.1, b"x") for _ in range(100))), "close"),
        Answer(((0.0, b"HTTP/1.1 103 Early\r\n\r\n"), *((0.1, b"HTTP/1.1 103 E\r\n\r\n") for _ in range(99))), "close"),
        Answer(((9.0, b""),), "close"),
    ],
    ids=["head", "continue", "body", "informational", "silence"],
)
def test_an_answer_that_drips_ends_in_time(answer: Answer, record_property: Record) -> None:
    with serving(answer) as server:
        watch = Stopwatch()
        judged = send(server)

    seconds = watch.seconds()
    record_property("seconds", round(seconds, 2))
    assert isinstance(judged, Later)
    assert seconds < TIMEOUT + 1.0


def test_the_clock_of_an_answer_starts_with_the_last_byte_of_the_request() -> None:
    """The answer comes after more than half of the time, to each of two requests on one connection."""
    late = Answer(((0.6 * TIMEOUT, OK + b"Content-Length: 2\r\n\r\n{}"),), "keep")

    async def twice(server: HostileServer) -> list[int]:
        transport = HttpTransport(server.url, connections=1, timeout_seconds=TIMEOUT)
        return [(await transport.request("POST", "/x", {}, b"y" * 100)).status for _ in range(2)]

    with serving(late) as server:
        assert asyncio.run(twice(server)) == [200, 200]


def test_a_request_that_is_not_taken_ends_in_time(record_property: Record) -> None:
    async def one(server: HostileServer) -> None:
        transport = HttpTransport(server.url, connections=1, timeout_seconds=TIMEOUT)
        await transport.request("POST", "/x", {}, b"y" * (32 * MIB))

    with serving(at_once(b""), reads=False) as server:
        watch = Stopwatch()
        with pytest.raises(NoAnswerError):
            asyncio.run(one(server))

    seconds = watch.seconds()
    record_property("seconds", round(seconds, 2))
    assert seconds < 2 * TIMEOUT + 1.0


BOMB = gzip.compress(bytes(300 * MIB), 9)


@pytest.mark.parametrize(
    "head, piece, count",
    [
        (b"\r\n", b"x" * MIB, 200),
        (b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + b"x" * MIB + b"\r\n", 200),
        (b"Content-Encoding: gzip\r\n\r\n", BOMB, 1),
        (b"X: " + b"y" * MIB, b"y" * MIB, 100),
        (b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"{}"), b"x" * MIB, 200),
    ],
    ids=["endless body", "endless chunks", "gzip bomb", "endless header", "endless after gzip"],
)
def test_no_answer_takes_more_memory_than_allowed(
    head: bytes, piece: bytes, count: int, record_property: Record
) -> None:
    answer = Answer(((0.0, OK + head), *((0.0, piece) for _ in range(count))), "close")
    with serving(answer) as server:
        tracemalloc.start()
        try:
            judged = send(server, timeout_seconds=10)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    record_property("MiB at most", round(peak / MIB, 1))
    assert isinstance(judged, Later)
    assert peak < 8 * MIB


def test_a_list_of_ids_above_its_limit_is_no_list() -> None:
    """64 MiB of a list are read; the verdict on a longer one is that nobody knows what is there."""
    items = b'{"items":[' + b",".join(b'["%032x","%064x"]' % (one, one) for one in range(1_000)) + b"]}"

    async def ask(server: HostileServer) -> dict[str, bytes] | Verdict:
        transport = HttpTransport(server.url, connections=1, timeout_seconds=10)
        sink = MissionControlSink("mc", server.url, transport, token=lambda: None)
        return await sink.items("r")

    with serving(at_once(OK + b"\r\n" + items)) as server:
        found = asyncio.run(ask(server))
        assert isinstance(found, dict) and len(found) == 1_000
    long = Answer(((0.0, OK + b"\r\n"), *((0.0, b" " * MIB) for _ in range(70))), "close")
    with serving(long) as server:
        assert isinstance(asyncio.run(ask(server)), Later)


def test_a_session_is_not_registered_without_an_id() -> None:
    async def register(server: HostileServer) -> bool:
        transport = HttpTransport(server.url, connections=1, timeout_seconds=TIMEOUT)
        sink = MissionControlSink("mc", server.url, transport, token=lambda: None)
        return isinstance(await sink.register("s", None), Registered)

    for body, registered in ((b'{"id":"r"}', True), (b"{}", False), (b"", False), (b"<html>", False)):
        with serving(at_once(OK + b"\r\n" + body)) as server:
            assert asyncio.run(register(server)) is registered, body
