"""Every watcher keeps the promises of `exporter.sources.files.watch`, with real files."""

# ruff: noqa: ASYNC240 - the scenarios change files between two waits; nothing else runs on their loop

import asyncio
import os
from pathlib import Path

import pytest

from exporter.sources.files.watch import Changed
from tests.sources.files.watch_contract import MAKERS, Make, append, replace, watching


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    directory = tmp_path / "session"
    directory.mkdir()
    return directory


def test_an_append_is_reported(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        append(session / "events.jsonl", b"one\n")
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            append(session / "events.jsonl", b"two\n")
            await receiver.has(session, "events.jsonl")

            assert receiver.names_in(session) == {"events.jsonl"}

    asyncio.run(scenario())


def test_a_change_between_add_and_start_is_reported(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        append(session / "events.jsonl", b"one\n")
        async with watching(watcher) as receiver:
            await receiver.has(session, "events.jsonl")

    asyncio.run(scenario())


def test_directory_file_and_first_byte_may_come_in_any_distance(make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(tmp_path))
        async with watching(watcher) as receiver:
            session = tmp_path / "late"
            session.mkdir()
            await receiver.has(tmp_path, "late")
            assert watcher.add(str(session))
            (session / "events.jsonl").touch()
            await receiver.has(session, "events.jsonl")
            receiver.forget()
            append(session / "events.jsonl", b"one\n")
            await receiver.has(session, "events.jsonl")

    asyncio.run(scenario())


def test_an_atomic_replacement_is_reported(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        (session / "events.jsonl").write_bytes(b"one\ntwo\n")
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            replace(session / "events.jsonl", b"one\nnew\n")
            await receiver.has(session, "events.jsonl")

    asyncio.run(scenario())


def test_a_truncation_and_a_deletion_are_reported(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        events = session / "events.jsonl"
        events.write_bytes(b"one\ntwo\n")
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            events.write_bytes(b"one\n")
            await receiver.has(session, "events.jsonl")
            # The truncation may be reported more than once; what follows the next file's report is the deletion.
            append(session / "quiet", b"1")
            await receiver.has(session, "quiet")
            receiver.forget()
            events.unlink()
            await receiver.has(session, "events.jsonl")

    asyncio.run(scenario())


def test_only_wanted_files_are_reported_but_every_directory(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), frozenset({"events.jsonl", "same"}))
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            append(session / "session.db", b"noise")
            (session / "files").mkdir()
            append(session / "files" / "events.jsonl", b"below")
            append(session / "events.jsonl", b"one\n")
            await receiver.has(session, "files")
            await receiver.has(session, "events.jsonl")

            assert receiver.names_in(session) == {"files", "events.jsonl"}

    asyncio.run(scenario())


def test_a_deleted_directory_is_reported_and_may_come_back(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(tmp_path))
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            session.rmdir()
            await receiver.has(session, "")
            await receiver.has(tmp_path, "session")
            assert not watcher.add(str(session))
            receiver.forget()
            session.mkdir()
            await receiver.has(tmp_path, "session")
            assert watcher.add(str(session))
            append(session / "events.jsonl", b"one\n")
            await receiver.has(session, "events.jsonl")

    asyncio.run(scenario())


def test_a_deleted_directory_that_somebody_still_has_open_is_reported(
    make: Make, tmp_path: Path, session: Path
) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(tmp_path))
        assert watcher.add(str(session))
        descriptor = os.open(session, os.O_RDONLY)
        try:
            async with watching(watcher) as receiver:
                session.rmdir()
                await receiver.has(session, "")
                receiver.forget()
                session.mkdir()
                await receiver.has(tmp_path, "session")
                assert watcher.add(str(session))
                append(session / "events.jsonl", b"one\n")
                await receiver.has(session, "events.jsonl")
        finally:
            os.close(descriptor)

    asyncio.run(scenario())


def test_a_directory_moved_away_and_back_is_reported_each_time(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        away = tmp_path / "away"
        (session / "events.jsonl").write_bytes(b"one\n")
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(tmp_path))
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            session.rename(away)
            await receiver.has(session, "")
            await receiver.has(tmp_path, "session")
            await receiver.has(tmp_path, "away")
            receiver.forget()
            away.rename(session)
            await receiver.has(tmp_path, "session")
            assert watcher.add(str(session))
            append(session / "events.jsonl", b"two\n")
            await receiver.has(session, "events.jsonl")

            assert Changed(str(away), "") not in receiver.reports

    asyncio.run(scenario())


def test_a_directory_moved_and_added_under_its_new_name_stays_watched(
    make: Make, tmp_path: Path, session: Path
) -> None:
    async def scenario() -> None:
        renamed = tmp_path / "renamed"
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(tmp_path))
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            session.rename(renamed)
            assert watcher.add(str(renamed))
            await receiver.has(session, "")
            append(renamed / "events.jsonl", b"one\n")
            await receiver.has(renamed, "events.jsonl")

            assert Changed(str(renamed), "") not in receiver.reports
            assert Changed(str(session), "events.jsonl") not in receiver.reports

    asyncio.run(scenario())


def test_what_is_below_a_moved_directory_is_reported_too(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        below = session / "one" / "two"
        below.mkdir(parents=True)
        watcher = make(str(tmp_path), None)
        for directory in (tmp_path, session, below):
            assert watcher.add(str(directory))
        async with watching(watcher) as receiver:
            session.rename(tmp_path / "away")
            await receiver.has(session, "")
            await receiver.has(below, "")

    asyncio.run(scenario())


def test_the_root_itself_may_vanish(make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        root = tmp_path / "root"
        root.mkdir()
        watcher = make(str(root), None)
        assert watcher.add(str(root))
        async with watching(watcher) as receiver:
            root.rename(tmp_path / "away")
            await receiver.has(root, "")
            assert not watcher.add(str(root))
            root.mkdir()
            assert watcher.add(str(root))
            receiver.forget()
            (root / "session").mkdir()
            await receiver.has(root, "session")

    asyncio.run(scenario())


def test_adding_again_is_harmless(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        for _ in range(3):
            assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            assert watcher.add(str(session))
            append(session / "events.jsonl", b"one\n")
            await receiver.has(session, "events.jsonl")
            watcher.remove(str(session))
            watcher.remove(str(session))

    asyncio.run(scenario())


def test_a_removed_directory_is_silent(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        other = tmp_path / "other"
        other.mkdir()
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        assert watcher.add(str(other))
        async with watching(watcher) as receiver:
            watcher.remove(str(session))
            append(session / "events.jsonl", b"one\n")
            append(other / "events.jsonl", b"one\n")
            await receiver.has(other, "events.jsonl")

            assert receiver.names_in(session) == set()

    asyncio.run(scenario())


def test_two_paths_of_one_directory_are_both_reported(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        link = tmp_path / "link"
        link.symlink_to(session)
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        assert watcher.add(str(link))
        async with watching(watcher) as receiver:
            append(session / "events.jsonl", b"one\n")
            await receiver.has(session, "events.jsonl")
            await receiver.has(link, "events.jsonl")
            watcher.remove(str(session))
            receiver.forget()
            append(session / "more.jsonl", b"two\n")
            await receiver.has(link, "more.jsonl")

    asyncio.run(scenario())


def test_what_is_not_a_directory_cannot_be_added(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    watcher = make(str(tmp_path), None)

    assert not watcher.add(str(tmp_path / "missing"))
    assert not watcher.add(str(tmp_path / "file"))
    assert not watcher.add(str(tmp_path / "loop"))
    watcher.close()


def test_names_that_are_not_utf8_or_ascii_survive(make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        session = tmp_path / "größe 日本 \n"
        session.mkdir()
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            append(session / "événements", b"one\n")
            await receiver.has(session, "événements")

    asyncio.run(scenario())


@pytest.mark.alone
def test_two_hundred_directories_are_watched(make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        sessions = [tmp_path / f"session-{number}" for number in range(200)]
        for session in sessions:
            session.mkdir()
            assert watcher.add(str(session))
        async with watching(watcher) as receiver:
            for session in sessions:
                append(session / "events.jsonl", b"one\n")
            await receiver.until(lambda: all("events.jsonl" in receiver.names_in(session) for session in sessions))
            receiver.forget()
            for session in sessions:
                (session / "events.jsonl").unlink()
                session.rmdir()
            await receiver.until(lambda: all("" in receiver.names_in(session) for session in sessions))

    asyncio.run(scenario())


def test_after_20000_small_changes_a_follower_knows_every_final_size(make: Make, tmp_path: Path) -> None:
    async def scenario() -> None:
        watcher = make(str(tmp_path), None)
        files = []
        for number in range(20):
            session = tmp_path / f"session-{number}"
            session.mkdir()
            files.append(session / "events.jsonl")
            assert watcher.add(str(session))
        known: dict[Path, int] = {}
        async with watching(watcher) as receiver:
            for count in range(1000):
                for path in files:
                    append(path, b"x" * 10)
                if count % 100 == 0:
                    await asyncio.sleep(0)

            def follower_knows_all() -> bool:
                for report in receiver.reports:
                    assert isinstance(report, Changed)
                    path = Path(report.directory, report.name)
                    known[path] = path.stat().st_size
                receiver.forget()
                return all(known.get(path) == 10_000 for path in files)

            await receiver.until(follower_knows_all)

    asyncio.run(scenario())


def test_nothing_is_delivered_after_close(make: Make, tmp_path: Path, session: Path) -> None:
    async def scenario() -> None:
        witness = make(str(tmp_path), None)
        watcher = make(str(tmp_path), None)
        assert watcher.add(str(session))
        assert witness.add(str(session))
        async with watching(witness) as seen, watching(watcher) as receiver:
            append(session / "events.jsonl", b"one\n")
            watcher.close()
            watcher.close()
            await seen.has(session, "events.jsonl")

            assert receiver.reports == []
            assert not watcher.add(str(session))

    asyncio.run(scenario())
