"""Many sessions, few descriptors, a large backlog, little memory (F50, F51, F53)."""

import contextlib
import resource
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.program.driver import Machine
from tests.program.session_files import write_large
from tests.program.waiting import until
from tests.queued import Stopwatch

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

MEGABYTE: Final = 1_000_000
RESIDENT_BYTES_MAX: Final = 150 * MEGABYTE
LARGE_BYTES: Final = 300 * MEGABYTE
SMALL_SESSIONS: Final = 999
SMALL_EVENTS: Final = 5


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was seen while a large session and many small ones were delivered."""

    large_events: int
    large_arrived: int
    large_arrived_when_small_were_done: int
    small_arrived: list[int]
    resident_bytes: int
    seconds: float
    alive: bool
    repeated: int


@pytest.fixture(scope="module")
def backlog() -> Iterator[Backlog]:
    """One session of 300 MB and 999 small ones that all start at once."""
    root = Path(tempfile.mkdtemp(prefix="xm-")).resolve()
    machine = Machine(root)
    try:
        yield _deliver_backlog(machine.with_floor(keep_bytes=False))
    finally:
        machine.close()
        shutil.rmtree(root, ignore_errors=True)


def _deliver_backlog(machine: Machine) -> Backlog:
    counting = machine.floor
    assert counting is not None
    large = machine.session()
    large_events = write_large(large, LARGE_BYTES)
    small = [machine.session().write(SMALL_EVENTS) for _ in range(SMALL_SESSIONS)]
    start = time.monotonic()
    running = machine.start()
    until(lambda: all(counting.count(one.id) == SMALL_EVENTS for one in small), "the small sessions", seconds=100)
    when_small_were_done = counting.count(large.id)
    until(lambda: counting.count(large.id) == large_events, "the large session", seconds=100)
    return Backlog(
        large_events=large_events,
        large_arrived=counting.count(large.id),
        large_arrived_when_small_were_done=when_small_were_done,
        small_arrived=[counting.count(one.id) for one in small],
        resident_bytes=running.resident_bytes(),
        seconds=time.monotonic() - start,
        alive=running.alive,
        repeated=counting.repeated(),
    )


def test_small_sessions_are_complete_before_a_huge_one(
    backlog: Backlog, record_property: Callable[[str, object], None]
) -> None:
    record_property(
        "share of the huge one then", f"{backlog.large_arrived_when_small_were_done / backlog.large_events:.0%}"
    )
    assert backlog.small_arrived == [SMALL_EVENTS] * SMALL_SESSIONS
    assert backlog.large_arrived_when_small_were_done < backlog.large_events


def test_a_backlog_of_300_megabytes_needs_at_most_150_megabytes_of_memory(backlog: Backlog) -> None:
    print(f"backlog: {backlog.resident_bytes / MEGABYTE:.0f} MB resident at most, {backlog.seconds:.1f} s in all")

    assert backlog.resident_bytes <= RESIDENT_BYTES_MAX


def test_a_large_backlog_is_delivered_once(backlog: Backlog) -> None:
    assert backlog.large_arrived == backlog.large_events
    assert backlog.repeated == 0
    assert backlog.alive


def _few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def test_1000_sessions_are_followed_with_256_descriptors(machine: Machine) -> None:
    machine.with_floor()
    assert machine.floor is not None
    sessions = [machine.session().write(2) for _ in range(1_000)]
    running = machine.start(prepare=_few_descriptors)
    for session in sessions:
        machine.assert_delivered_to_floor(session)

    for session in sessions:
        session.write(1)

    for session in sessions:
        machine.assert_delivered_to_floor(session)
    assert running.alive
    assert machine.floor.repeated() == 0
    machine.verify()


@pytest.mark.parametrize("descriptors", [64, 48])
def test_with_few_descriptors_everything_is_delivered_and_the_limit_is_said(machine: Machine, descriptors: int) -> None:
    machine.with_floor()
    sessions = [machine.session().write(2) for _ in range(150)]
    running = machine.start(prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
    for session in sessions:
        machine.assert_delivered_to_floor(session)

    for session in sessions:
        session.write(1)

    for session in sessions:
        machine.assert_delivered_to_floor(session)
    assert machine.exporter("status").returncode == 0
    assert "limit of open files is low" in running.text()
    machine.assert_sent_once()


@pytest.mark.parametrize("descriptors", [64, 48])
def test_status_answers_when_no_descriptor_is_left(machine: Machine, descriptors: int) -> None:
    machine.with_floor()
    session = machine.session().write(2)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    running = machine.start(
        *("up", "--no-open", "--port", str(port)),
        prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
    )
    machine.assert_delivered_to_floor(session)

    with contextlib.ExitStack() as connections:
        for _ in range(descriptors):
            connections.enter_context(socket.create_connection(("127.0.0.1", port)))
        running.wait_for_word("too many open files")
        answers = [machine.exporter("status", timeout=90).returncode for _ in range(3)]

    assert answers == [0, 0, 0]
    assert running.text().count("too many open files") == 1
    machine.assert_delivered_to_floor(session.write(3))


def test_a_small_live_session_does_not_wait_for_a_huge_backfill(machine: Machine) -> None:
    machine.with_floor(keep_bytes=False)
    counting = machine.floor
    assert counting is not None
    large, live = machine.session(), machine.session().write(1)
    large_events = write_large(large, 60 * MEGABYTE)
    running = machine.start()
    counting.wait_for_post(2)
    finished = threading.Event()

    while counting.count(large.id) < large_events and not finished.is_set():
        live.write(1)
        wanted = len(live.durable())
        watch = Stopwatch(running.process.pid)
        until(lambda wanted=wanted: counting.count(live.id) >= wanted, "the live event", seconds=60)  # type: ignore[misc]
        assert watch.seconds() < 2.0
        finished.set() if wanted > 200 else None

    until(lambda: counting.count(large.id) == large_events, "the large session", seconds=100)
    assert counting.repeated() == 0


def test_no_core_dump_is_left_behind(machine: Machine) -> None:
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    machine.with_floor().session().write(10)

    running = machine.start(prepare=lambda: resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)))

    until(lambda: resource.prlimit(running.process.pid, resource.RLIMIT_CORE) == (0, hard), "the limit of a dump")
