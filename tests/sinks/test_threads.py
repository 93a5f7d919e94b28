"""The threads behind the HTTP transport: what they return, how many they are, and that they hold nobody up."""

import asyncio
import subprocess
import sys
import threading
import time

import pytest

from exporter.sinks.threads import CallThreads

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_call_returns_what_it_returned() -> None:
    threads = CallThreads(2, "test")

    assert await threads.call(lambda: 42) == 42
    threads.close()


async def test_a_call_raises_what_it_raised() -> None:
    threads = CallThreads(1, "test")

    def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        await threads.call(fail)
    assert await threads.call(lambda: "still there") == "still there"
    threads.close()


async def test_calls_run_beside_each_other_up_to_the_limit() -> None:
    threads = CallThreads(3, "test")
    meeting = threading.Barrier(3, timeout=60)

    await asyncio.gather(*(threads.call(meeting.wait) for _ in range(3)))

    names = await asyncio.gather(*(threads.call(lambda: threading.current_thread().name) for _ in range(30)))
    assert set(names) <= {"test-0", "test-1", "test-2"}
    threads.close()


async def test_one_call_after_another_needs_one_thread() -> None:
    threads = CallThreads(8, "test")

    names = {await threads.call(lambda: threading.current_thread().name) for _ in range(20)}

    assert names == {"test-0"}
    threads.close()


async def test_a_cancelled_call_gives_its_place_back() -> None:
    threads = CallThreads(1, "test")
    release = threading.Event()
    waiting = asyncio.create_task(threads.call(lambda: release.wait(5)))
    await asyncio.sleep(0)

    waiting.cancel()
    release.set()

    assert await asyncio.wait_for(threads.call(lambda: 1), 5) == 1
    threads.close()


async def test_idle_threads_end_when_closed() -> None:
    threads = CallThreads(2, "closing")
    await threads.call(lambda: None)

    threads.close()

    end = time.monotonic() + 5
    while any(thread.name.startswith("closing-") for thread in threading.enumerate()):
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


HANGING = """
import asyncio, threading
from exporter.sinks.threads import CallThreads

async def main():
    threads = CallThreads(2, "sink")
    task = asyncio.create_task(threads.call(threading.Event().wait))
    await threads.call(lambda: None)
    task.cancel()
    threads.close()

asyncio.run(main())
print("ended")
"""


async def test_a_call_that_hangs_does_not_keep_the_program_from_ending() -> None:
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=90, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")


LATE = """
import asyncio, threading, time
from exporter.sinks.threads import CallThreads

release = threading.Event()
threads = CallThreads(1, "sink")

async def main():
    asyncio.create_task(threads.call(release.wait))
    await asyncio.sleep(0)

asyncio.run(main())
release.set()
time.sleep(0.1)
print("ended")
"""


async def test_an_answer_after_the_loop_has_ended_is_dropped_quietly() -> None:
    ended = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=90, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ended\n", "")
