"""Every session below a directory is found and followed, by the real watcher, without waiting for the next rescan."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from exporter.core.delivery.position import START
from exporter.sources.files.session_file import OpenFiles, Reader, SessionFile
from exporter.sources.files.source import RESCAN_SECONDS, FileSource
from exporter.sources.files.watch import Changed, FallbackWatcher, Lost, PollingWatcher, Report, Watcher, best_watcher

PATIENCE_SECONDS: Final = 20.0  # less than a rescan, so that nothing is found by that
NEVER_SECONDS: Final = 3600.0


class Source(FileSource):
    """A file source that says what it told, and waits for what it will tell."""

    def __init__(self, root: Path, *, only: tuple[str, ...] = (), poll_seconds: float = NEVER_SECONDS) -> None:
        self.told: list[SessionFile] = []
        self.workspaces: list[str] = []
        self.files = OpenFiles(8)
        self.watcher = best_watcher(str(root), poll_seconds)
        self._something = asyncio.Event()
        super().__init__(
            lambda: [root],
            self.watcher,
            self.files,
            self._tell,
            self._tell_workspace,
            poll_seconds=poll_seconds,
            only=only,
        )

    def _tell(self, file: SessionFile) -> None:
        self.told.append(file)
        self._something.set()

    def _tell_workspace(self, file: SessionFile) -> None:
        self.workspaces.append(file.session)
        self._something.set()

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not fact():
                self._something.clear()
                await self._something.wait()

    async def size(self, session: str, size: int) -> None:
        await self.until(lambda: session in self.sessions and self.sessions[session].size == size)

    async def gone(self, session: str) -> None:
        await self.until(lambda: self.sessions[session].gone)


@asynccontextmanager
async def following(
    root: Path, *, only: tuple[str, ...] = (), poll_seconds: float = NEVER_SECONDS
) -> AsyncIterator[Source]:
    source = Source(root, only=only, poll_seconds=poll_seconds)
    source.start()
    try:
        yield source
    finally:
        source.close()


def run(scenario: Callable[[Path], Awaitable[None]], root: Path) -> None:
    async def whole() -> None:
        await scenario(root)

    asyncio.run(whole())


def append(path: Path, content: bytes = b"{}\n") -> None:
    with path.open("ab") as file:
        file.write(content)


def session(root: Path, name: str, content: bytes = b"{}\n") -> Path:
    (root / name).mkdir()
    (root / name / "events.jsonl").write_bytes(content)
    return root / name / "events.jsonl"


def test_patience_ends_before_a_rescan() -> None:
    assert PATIENCE_SECONDS < RESCAN_SECONDS


def test_what_is_there_is_told_at_once(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        session(root, "one")
        session(root, "two", b"")
        (root / "three").mkdir()
        async with following(root) as source:
            assert {file.session for file in source.told} == {"one", "two", "three"}
            assert set(source.workspaces) == {"one", "two", "three"}
            assert {name: file.gone for name, file in source.sessions.items()} == {
                "one": False,
                "two": False,
                "three": True,
            }

    run(scenario, tmp_path)


def test_what_changed_last_is_told_first(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        for name, written in (("old", 1_000), ("newest", 3_000), ("newer", 2_000)):
            os.utime(session(root, name), (written, written))
        async with following(root) as source:
            assert [file.session for file in source.told] == ["newest", "newer", "old"]

    run(scenario, tmp_path)


def test_the_root_may_come_later(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        async with following(root / "session-state", poll_seconds=0.01) as source:
            assert source.sessions == {}
            (root / "session-state").mkdir()
            path = session(root / "session-state", "one")
            await source.size("one", 3)
            append(path)
            await source.size("one", 6)

    run(scenario, tmp_path)


def test_the_directory_comes_before_the_file_and_the_file_before_its_first_byte(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        async with following(root) as source:
            (root / "one").mkdir()
            await source.until(lambda: "one" in source.sessions)
            assert source.sessions["one"].gone
            path = root / "one" / "events.jsonl"
            path.touch()
            await source.until(lambda: not source.sessions["one"].gone)
            for size in (3, 6, 9):
                append(path)
                await source.size("one", size)

    run(scenario, tmp_path)


def test_a_session_moved_in_whole_is_found_and_followed(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        (root / "elsewhere").mkdir()
        (root / "state").mkdir()
        session(root / "elsewhere", "one")
        async with following(root / "state") as source:
            (root / "elsewhere" / "one").rename(root / "state" / "one")
            await source.size("one", 3)
            append(root / "state" / "one" / "events.jsonl")
            await source.size("one", 6)

    run(scenario, tmp_path)


def test_a_replaced_file_is_a_new_generation_and_followed_on(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        path = session(root, "one", b"{}\n" * 3)
        async with following(root) as source:
            path.with_name("new").write_bytes(b"{}\n")
            path.with_name("new").rename(path)
            await source.until(lambda: source.sessions["one"].generation == 1)
            assert source.sessions["one"].size == 3
            append(path)
            await source.size("one", 6)

    run(scenario, tmp_path)


def test_a_file_that_vanishes_is_gone_and_drained_and_may_return(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        path = session(root, "one")
        async with following(root) as source:
            reader = Reader(source.sessions["one"], source.files, START, 1000)
            assert reader.past_is_same()
            path.unlink()
            await source.gone("one")
            assert reader.fill()
            path.write_bytes(b"[]\n[]\n")
            await source.until(lambda: not source.sessions["one"].gone)
            await source.size("one", 6)
            assert source.sessions["one"].generation == 1

    run(scenario, tmp_path)


def test_a_directory_moved_away_and_back_goes_on(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        (root / "away").mkdir()
        (root / "state").mkdir()
        path = session(root / "state", "one")
        async with following(root / "state") as source:
            (root / "state" / "one").rename(root / "away" / "one")
            await source.gone("one")
            append(root / "away" / "one" / "events.jsonl")
            (root / "away" / "one").rename(root / "state" / "one")
            await source.size("one", 6)
            assert (source.sessions["one"].generation, source.sessions["one"].gone) == (0, False)
            append(path)
            await source.size("one", 9)

    run(scenario, tmp_path)


@pytest.mark.parametrize("how", ["deleted and made again", "moved away and back", "another moved in"])
def test_a_directory_that_changed_faster_than_anybody_looked_is_followed_on(tmp_path: Path, how: str) -> None:
    async def scenario(root: Path) -> None:
        (root / "state").mkdir()
        (root / "away").mkdir()
        path = session(root / "state", "one")
        session(root / "away", "two", b"{}\n" * 2)
        async with following(root / "state") as source:
            if how == "deleted and made again":
                shutil.rmtree(root / "state" / "one")
                session(root / "state", "one", b"{}\n" * 2)
            elif how == "moved away and back":
                (root / "state" / "one").rename(root / "away" / "one")
                (root / "away" / "one").rename(root / "state" / "one")
                append(path)
            else:
                (root / "state" / "one").rename(root / "away" / "one")
                (root / "away" / "two").rename(root / "state" / "one")
            await source.size("one", 6)
            await asyncio.sleep(0)  # whatever was delivered with it is delivered
            append(path)
            await source.size("one", 9)
            append(path)
            await source.size("one", 12)

    run(scenario, tmp_path)


def test_names_that_no_session_has_are_ignored(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        for name in [".hidden", "one.bak", "one.lock", "-x", "x" * 129, "a b", "\u00e9", "one~"]:
            session(root, name)
        (root / "file").write_bytes(b"{}\n")
        os.mkfifo(root / "pipe")
        (root / "loop").symlink_to("loop")
        async with following(root) as source:
            assert source.sessions == {}
            session(root, "late.bak")
            session(root, "good")
            await source.size("good", 3)
            assert set(source.sessions) == {"good"}

    run(scenario, tmp_path)


def test_only_those_asked_for_are_followed(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        for name in ("one", "two"):
            session(root, name)
        async with following(root, only=("two", "three")) as source:
            session(root, "four")
            session(root, "three")
            await source.size("three", 3)
            assert set(source.sessions) == {"two", "three"}

    run(scenario, tmp_path)


def test_what_is_no_file_is_told_as_a_problem_and_hinders_nobody(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        for name in ("pipe", "loop", "directory"):
            (root / name).mkdir()
        os.mkfifo(root / "pipe" / "events.jsonl")
        (root / "loop" / "events.jsonl").symlink_to("events.jsonl")
        (root / "directory" / "events.jsonl").mkdir()
        path = session(root, "good")
        async with following(root) as source:
            append(path)
            await source.size("good", 6)
            assert {file.session for file in source.sessions.values() if file.problem} == {"pipe", "loop", "directory"}
            (root / "directory" / "events.jsonl").rmdir()
            append(root / "directory" / "events.jsonl")
            await source.size("directory", 3)
            assert source.sessions["directory"].problem is None

    run(scenario, tmp_path)


def test_a_new_workspace_file_is_told(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        session(root, "one")
        async with following(root) as source:
            told = len(source.workspaces)
            (root / "one" / "workspace.yaml").write_text("name: x\n")
            await source.until(lambda: len(source.workspaces) > told)
            assert source.workspaces[-1] == "one"

    run(scenario, tmp_path)


def test_a_look_that_finds_nothing_new_is_not_told(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        session(root, "one")
        async with following(root) as source:
            told = len(source.told)
            source.scan()
            assert len(source.told) == told

    run(scenario, tmp_path)


class Deaf(Watcher):
    """A watcher of which everything was lost: it watches as it is asked to, and hears nothing by itself."""

    def __init__(self) -> None:
        self.added: list[str] = []
        self.refuses = False
        self.deliver: Callable[[list[Report]], None] = lambda reports: None

    def add(self, directory: str) -> bool:
        self.added.append(directory)
        return not self.refuses

    def remove(self, directory: str) -> None:
        pass

    def start(self, deliver: Callable[[list[Report]], None]) -> None:
        self.deliver = deliver

    def close(self) -> None:
        pass


async def until(fact: Callable[[], bool]) -> None:
    """Wait for what no callback tells."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not fact():  # noqa: ASYNC110  nothing could set an event
            await asyncio.sleep(0.001)


def deaf_source(
    root: Path, watcher: Deaf | FallbackWatcher, poll_seconds: float = NEVER_SECONDS
) -> tuple[FileSource, list[str]]:
    told: list[str] = []
    source = FileSource(
        lambda: [root],
        watcher,
        OpenFiles(8),
        lambda file: told.append(file.session),
        lambda file: None,
        poll_seconds=poll_seconds,
    )
    return source, told


def test_after_lost_reports_everything_is_looked_at_and_watched_again(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        watcher = Deaf()
        path = session(root, "one")
        source, told = deaf_source(root, watcher)
        source.start()
        append(path)
        session(root, "two")
        watcher.added.clear()
        told.clear()
        watcher.deliver([Lost(), Changed(str(root), "two")])
        source.close()

        assert source.watcher_lost == 1
        assert sorted(told) == ["one", "two"]
        assert set(watcher.added) == {str(root), str(root / "one"), str(root / "two")}

    run(scenario, tmp_path)


def test_a_directory_that_cannot_be_watched_is_looked_at_again_and_again(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        watcher = Deaf()
        watcher.refuses = True
        path = session(root, "one")
        source, told = deaf_source(root, watcher, poll_seconds=0.001)
        source.start()
        append(path)
        await until(lambda: source.sessions["one"].size == 6)
        source.close()

        assert told == ["one", "one"]

    run(scenario, tmp_path)


def test_a_poller_in_place_of_the_kernel_follows_as_well(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        path = session(root, "one")
        deaf = Deaf()
        deaf.refuses = True
        source, _ = deaf_source(root, FallbackWatcher(deaf, PollingWatcher(0.005)))
        source.start()
        append(path)
        session(root, "two")
        await until(lambda: source.sessions["one"].size == 6 and "two" in source.sessions)
        source.close()

    run(scenario, tmp_path)


def test_a_root_that_goes_and_comes_back_is_found_again(tmp_path: Path) -> None:
    async def scenario(root: Path) -> None:
        state = root / "session-state"
        state.mkdir()
        session(state, "one")
        async with following(state, poll_seconds=0.01) as source:
            shutil.rmtree(state)
            await source.gone("one")
            state.mkdir()
            path = session(state, "one", b"{}\n" * 2)
            await source.size("one", 6)
            append(path)
            await source.size("one", 9)

    run(scenario, tmp_path)
