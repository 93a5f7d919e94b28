"""Which watcher gets which directory, how network file systems are known, and what only polling has."""

import asyncio
import os
from pathlib import Path

import pytest

from exporter.sources.files.native_watch import NativeWatcher
from exporter.sources.files.watch import (
    FallbackWatcher,
    PollingWatcher,
    best_watcher,
    differing,
    file_system_type,
    is_gone,
    is_remote,
    look,
    pause_after,
)
from tests.sources.files.watch_contract import append, watching

MOUNTINFO = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
36 27 0:41 / /home/dev\\040one rw,nosuid shared:1 master:2 - nfs4 server:/export/a\\040-\\040b rw,vers=4.2
37 27 0:42 / /mnt/ssh rw - fuse.sshfs dev@host: rw
torn line
"""


@pytest.mark.parametrize(
    ("device", "system"),
    [
        (os.makedev(254, 0), "ext4"),
        (os.makedev(0, 41), "nfs4"),
        (os.makedev(0, 42), "fuse.sshfs"),
        (os.makedev(9, 9), None),
    ],
)
def test_the_file_system_of_a_device_is_found(device: int, system: str | None) -> None:
    assert file_system_type(MOUNTINFO, device) == system


@pytest.mark.parametrize(
    "system", ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "vboxsf", "fuse", "fuse.sshfs", "fuse.rclone"]
)
def test_where_others_may_write_is_remote(system: str) -> None:
    assert is_remote(system)


@pytest.mark.parametrize("system", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk", "fuse.gocryptfs", None])
def test_where_only_this_kernel_writes_is_local(system: str | None) -> None:
    assert not is_remote(system)


def test_the_second_watcher_takes_what_the_first_refuses(tmp_path: Path) -> None:
    async def scenario() -> None:
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        for directory in (inside, outside):
            directory.mkdir()
        watcher = FallbackWatcher(NativeWatcher(str(inside)), PollingWatcher(0.02))
        assert watcher.add(str(inside))
        assert watcher.add(str(outside))
        assert watcher.refused == {str(outside)}
        async with watching(watcher) as receiver:
            for directory in (inside, outside):
                append(directory / "events.jsonl", b"one\n")
                await receiver.has(directory, "events.jsonl")
            outside.rename(tmp_path / "away")
            await receiver.has(outside, "")

            assert watcher.refused == frozenset()
            assert not watcher.add(str(outside))

    asyncio.run(scenario())


def test_a_removed_directory_is_no_longer_refused(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    watcher = FallbackWatcher(NativeWatcher(str(root)), PollingWatcher(0.02))
    assert watcher.add(str(tmp_path))
    watcher.remove(str(tmp_path))

    assert watcher.refused == frozenset()
    watcher.close()


def test_the_best_watcher_refuses_nothing_local(tmp_path: Path) -> None:
    watcher = best_watcher(str(tmp_path), 1.0)

    assert watcher.add(str(tmp_path))
    assert watcher.refused == frozenset()
    watcher.close()


def test_a_round_that_takes_long_is_followed_by_a_longer_pause() -> None:
    assert pause_after(0.001, 1.0) == 1.0
    assert pause_after(0.1, 1.0) == pytest.approx(2.0)
    assert pause_after(100.0, 1.0) == 30.0
    assert pause_after(100.0, 60.0) == 60.0


def test_names_that_came_went_or_changed_differ() -> None:
    before = {"same": (1, 2, 3), "grown": (2, 2, 3), "gone": (3, 2, 3), "replaced": (4, 2, 3)}
    now = {"same": (1, 2, 3), "grown": (2, 9, 3), "new": (3, 2, 3), "replaced": (5, 2, 3)}

    assert set(differing(before, now)) == {"grown", "gone", "new", "replaced"}
    assert set(differing(now, now)) == set()


def test_a_look_sees_wanted_files_and_every_directory(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"one\n")
    (tmp_path / "session.db").write_bytes(b"noise")
    (tmp_path / "files").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    assert set(look(str(tmp_path), frozenset({"events.jsonl"})).entries) == {"events.jsonl", "files"}
    assert set(look(str(tmp_path), None).entries) == {"events.jsonl", "session.db", "files", "dangling"}


def test_only_some_errors_mean_that_a_directory_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing", tmp_path / "file", tmp_path / ("x" * 300)):
        with pytest.raises(OSError) as raised:
            look(str(path), None)

        assert is_gone(raised.value)
    for number in (13, 5, 24, 110):  # EACCES, EIO, EMFILE, ETIMEDOUT
        assert not is_gone(OSError(number, ""))
