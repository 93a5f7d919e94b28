"""What only inotify has: a queue that overflows, limits of the kernel, records to read."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.sources.files.inotify import HEADER, IN_CREATE, IN_ISDIR, IN_MODIFY, InotifyWatcher, unpack
from exporter.sources.files.watch import Changed, Lost
from tests.sources.files.watch_contract import append, watching

ROOT = Path(__file__).parents[3]


def record(watch: int, mask: int, name: bytes) -> bytes:
    padded = name + b"\0" * (16 - len(name) % 16) if name else b""
    return HEADER.pack(watch, mask, 0, len(padded)) + padded


def overflow(directory: Path) -> None:
    """Makes more reports than the kernel's queue holds; equal ones that follow each other would be joined."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    files = [os.open(directory / name, os.O_WRONLY | os.O_CREAT) for name in ("a", "b")]
    for _ in range(limit // 2 + 100):
        for file in files:
            os.pwrite(file, b"x", 0)
    for file in files:
        os.close(file)


def test_an_overflow_is_reported_as_lost_and_watching_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        watcher = InotifyWatcher()
        assert watcher.add(str(tmp_path))
        async with watching(watcher) as receiver:
            overflow(tmp_path)
            await receiver.until(lambda: receiver.lost)
            receiver.forget()
            append(tmp_path / "events.jsonl", b"one\n")
            await receiver.has(tmp_path, "events.jsonl")

            assert Changed(str(tmp_path), "") not in receiver.reports

    asyncio.run(scenario())


def test_a_directory_that_vanishes_or_is_replaced_during_an_overflow_is_reported(tmp_path: Path) -> None:
    async def scenario() -> None:
        gone, replaced, kept = (tmp_path / name for name in ("gone", "replaced", "kept"))
        watcher = InotifyWatcher()
        for directory in (gone, replaced, kept):
            directory.mkdir()
            assert watcher.add(str(directory))
        async with watching(watcher) as receiver:
            overflow(kept)
            gone.rmdir()
            replaced.rmdir()
            replaced.mkdir()
            await receiver.has(gone, "")
            await receiver.has(replaced, "")

            assert receiver.lost
            assert Changed(str(kept), "") not in receiver.reports
            assert watcher.add(str(replaced))
            append(replaced / "events.jsonl", b"one\n")
            await receiver.has(replaced, "events.jsonl")

    asyncio.run(scenario())


def test_one_instance_serves_every_directory(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    watcher = InotifyWatcher()
    for number in range(200):
        directory = tmp_path / str(number)
        directory.mkdir()
        assert watcher.add(str(directory))

    assert descriptors() == before + 1
    watcher.close()
    assert descriptors() == before


@pytest.mark.parametrize("limit", ["watches", "descriptors"])
def test_what_is_beyond_a_limit_is_polled(limit: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.sources.files.watch_limits", limit, str(tmp_path)]

    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_directory_on_a_network_file_system_is_refused(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    mountinfo = tmp_path / "mountinfo"
    line = f"36 35 {os.major(device)}:{os.minor(device)} / {tmp_path} rw,relatime shared:1 - TYPE server:/home rw\n"
    for system, watched in (("nfs4", False), ("9p", False), ("fuse.sshfs", False), ("ext4", True)):
        mountinfo.write_text(line.replace("TYPE", system))
        watcher = InotifyWatcher(mountinfo=str(mountinfo))

        assert watcher.add(str(tmp_path)) is watched
        watcher.close()


def test_repeated_records_are_one_and_unwanted_files_are_none() -> None:
    records = (
        record(1, IN_MODIFY, b"events.jsonl") * 3
        + record(1, IN_CREATE, b"other")
        + record(2, IN_MODIFY, b"events.jsonl")
        + record(1, IN_CREATE | IN_ISDIR, b"other")
        + record(-1, 0x4000, b"")
    )

    assert list(unpack(records, frozenset({b"events.jsonl"}))) == [
        (1, IN_MODIFY, b"events.jsonl"),
        (2, IN_MODIFY, b"events.jsonl"),
        (1, IN_CREATE | IN_ISDIR, b"other"),
        (-1, 0x4000, b""),
    ]
    assert len(list(unpack(records, None))) == 5


def test_every_write_of_a_burst_is_followed_by_a_report(tmp_path: Path) -> None:
    """Reports are gathered when they come fast; the last write must not wait for another one."""

    async def scenario() -> None:
        watcher = InotifyWatcher()
        assert watcher.add(str(tmp_path))
        async with watching(watcher) as receiver:
            for _ in range(300):
                receiver.forget()
                append(tmp_path / "events.jsonl", b"one\n")
                await receiver.has(tmp_path, "events.jsonl")

            assert Lost() not in receiver.reports

    asyncio.run(scenario())
