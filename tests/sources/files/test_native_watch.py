"""What only the library's watcher has: a root, losses it is not told of, and a library that may fail."""

import asyncio
from pathlib import Path

from exporter.sources.files.native_watch import NativeWatcher
from exporter.sources.files.watch import Changed, Lost
from tests.sources.files.watch_contract import append, watching


def test_everything_is_declared_lost_now_and_then(tmp_path: Path) -> None:
    async def scenario() -> None:
        watcher = NativeWatcher(str(tmp_path), lost_seconds=0.05)
        assert watcher.add(str(tmp_path))
        async with watching(watcher) as receiver:
            await receiver.until(lambda: receiver.reports.count(Lost()) == 2)

    asyncio.run(scenario())


def test_a_directory_outside_the_root_is_refused(tmp_path: Path) -> None:
    root, beside = tmp_path / "root", tmp_path / "root-beside"
    for directory in (root, beside):
        directory.mkdir()
    (root / "link").symlink_to(beside)
    watcher = NativeWatcher(str(root))

    assert watcher.add(str(root))
    assert not watcher.add(str(beside))
    assert not watcher.add(str(root / "link"))
    watcher.close()


def test_a_library_that_fails_gives_its_directories_back(tmp_path: Path) -> None:
    async def scenario() -> None:
        watcher = NativeWatcher(str(tmp_path))
        assert watcher.add(str(tmp_path))
        assert watcher._notify is not None
        watcher._notify.close()
        async with watching(watcher) as receiver:
            await receiver.has(tmp_path, "")

            assert receiver.lost
            assert not watcher.add(str(tmp_path))

    asyncio.run(scenario())


def test_a_root_reached_through_a_link_reports_the_names_that_were_added(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "real").mkdir()
        root = tmp_path / "link"
        root.symlink_to(tmp_path / "real")
        watcher = NativeWatcher(str(root))
        assert watcher.add(str(root))
        async with watching(watcher) as receiver:
            append(root / "events.jsonl", b"one\n")
            await receiver.has(root, "events.jsonl")

            assert Changed(str(tmp_path / "real"), "events.jsonl") not in receiver.reports

    asyncio.run(scenario())
