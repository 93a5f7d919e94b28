"""The tap's extension is put and removed without touching anything of others; the listener takes what comes."""

import asyncio
import hashlib
import json
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exporter.sources.tap.source as module
from exporter.errors import UsageError
from exporter.sources.local_socket import socket_path
from exporter.sources.remote import Callbacks, SourceEvent, Want
from exporter.sources.tap.extension import (
    EXPERIMENTAL,
    MARKER,
    NAME,
    POINTER,
    PROGRAM,
    NotOursError,
    install,
    look,
    program,
    project_directory,
    project_root,
    uninstall,
    user_directory,
)
from exporter.sources.tap.source import SOCKET_NAME, TapSource

SESSION = "the-session"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return user_directory(tmp_path / "copilot")


def test_it_is_written_once_and_removed_without_a_trace(directory: Path, tmp_path: Path) -> None:
    assert look(directory).state == "absent"
    assert install(directory, state_dir=tmp_path / "state")
    assert not install(directory, state_dir=tmp_path / "state")

    assert sorted(path.name for path in directory.iterdir()) == sorted((MARKER, PROGRAM, POINTER))
    assert (directory / PROGRAM).read_bytes() == program()
    assert look(directory).state == "installed"
    assert look(directory).notes == (EXPERIMENTAL,)
    assert uninstall(directory)
    assert not uninstall(directory)
    assert not directory.exists()
    assert directory.parent.exists()


def test_what_a_project_holds_tells_nothing_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "repository" / "deep" / "down").mkdir(parents=True)
    directory = project_directory(project_root(tmp_path / "repository" / "deep" / "down"))
    install(directory, state_dir=None)

    assert directory == tmp_path / "repository" / ".github" / "extensions" / NAME
    assert sorted(path.name for path in directory.iterdir()) == sorted((MARKER, PROGRAM))
    for path in directory.iterdir():
        assert str(tmp_path).encode() not in path.read_bytes()
        assert str(Path.home()).encode() not in path.read_bytes()
    assert any("GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS" in note for note in look(directory, is_project=True).notes)


def test_a_project_is_a_git_repository(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no git repository"):
        project_root(tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        {PROGRAM: b"theirs"},
        {"other.mjs": b"theirs"},
        {PROGRAM: b"theirs", MARKER: b"{}"},
        {PROGRAM: b"theirs", MARKER: b"[" * 10},
        {PROGRAM: b"theirs", MARKER: b'{"by":"somebody else","sha256":""}'},
    ],
)
def test_what_is_not_ours_is_neither_overwritten_nor_removed(directory: Path, files: dict[str, bytes]) -> None:
    directory.mkdir(parents=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)

    assert look(directory).state == "foreign"
    with pytest.raises(NotOursError, match="not ours"):
        install(directory, state_dir=None)
    with pytest.raises(NotOursError, match="not ours"):
        uninstall(directory)
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == files


def test_a_link_is_not_ours(directory: Path, tmp_path: Path) -> None:
    directory.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    directory.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(NotOursError):
        install(directory, state_dir=None)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_was_changed_since_is_left(directory: Path) -> None:
    install(directory, state_dir=None)
    (directory / PROGRAM).write_bytes(program() + b"// mine")

    assert look(directory).state == "changed"
    with pytest.raises(NotOursError, match="was changed"):
        install(directory, state_dir=None)
    with pytest.raises(NotOursError, match="was changed"):
        uninstall(directory)
    assert (directory / PROGRAM).read_bytes().endswith(b"// mine")


def test_an_older_one_of_ours_is_brought_up_to_date(directory: Path) -> None:
    install(directory, state_dir=None)
    old = b"// an older version"
    (directory / PROGRAM).write_bytes(old)
    marker = json.loads((directory / MARKER).read_bytes())
    marker["sha256"] = hashlib.sha256(old).hexdigest()
    (directory / MARKER).write_text(json.dumps(marker))

    assert look(directory).state == "outdated"
    assert install(directory, state_dir=None)
    assert look(directory).state == "installed"


def test_what_others_put_beside_it_stays(directory: Path) -> None:
    install(directory, state_dir=None)
    (directory / "notes.txt").write_text("mine")

    assert uninstall(directory)
    assert [path.name for path in directory.iterdir()] == ["notes.txt"]


def test_a_projects_tap_that_stands_before_ours_is_named(directory: Path, tmp_path: Path) -> None:
    install(directory, state_dir=None)
    theirs = project_directory(tmp_path)
    assert look(directory, shadowing=theirs).notes == (EXPERIMENTAL,)
    theirs.mkdir(parents=True)
    (theirs / PROGRAM).write_text("anything")

    assert any(str(theirs) in note for note in look(directory, shadowing=theirs).notes)


def test_the_extension_registers_nothing_and_writes_nothing() -> None:
    code = re.sub(r"(?m)^\s*//.*$", "", program().decode())

    for word in ("tools", "hooks", "session.log", "console.", "process.stdout", "session.send", "Sync(", "extensions_"):
        assert word not in code.replace("readFileSync(", "").replace("statSync(", ""), word
    assert code.count("joinSession({ disableResume: true, ...(ownerStreams() ? { streaming: true } : {}) })") == 1


def test_the_extension_is_a_program(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node here")
    path = tmp_path / PROGRAM
    path.write_bytes(program())

    assert subprocess.run([node, "--check", str(path)], capture_output=True, timeout=60, check=False).returncode == 0


class Taker:
    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, Any]]] = []
        self.want = Want.LIVE
        self.takes = True

    def callbacks(self) -> Callbacks:
        return Callbacks(self.take, lambda _: None, lambda *_: False, lambda *_: self.want, lambda _: None)

    async def take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        assert all(event.is_ephemeral for event in events)
        self.taken += [(session, json.loads(event.line)) for event in events]
        return self.takes


@asynccontextmanager
async def listening(state: Path, taker: Taker) -> AsyncIterator[tuple[TapSource, asyncio.StreamWriter]]:
    state.mkdir(exist_ok=True)  # noqa: ASYNC240  nothing else runs on this loop
    source = TapSource(state, taker.callbacks())
    await source.start()
    _, writer = await asyncio.open_unix_connection(str(socket_path(state, SOCKET_NAME)))
    try:
        yield source, writer
    finally:
        writer.close()
        await source.close()


def line(n: int, *, session: str = SESSION, dropped: int = 0, ephemeral: bool = True) -> bytes:
    event = {"type": "assistant.message_delta", "id": f"e{n}", "timestamp": "t", "data": {}, "ephemeral": ephemeral}
    return json.dumps({"session": session, "dropped": dropped, "event": event}).encode() + b"\n"


async def until(happened: Any) -> None:
    async with asyncio.timeout(10):
        while not happened():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


def test_live_events_are_passed_on_and_durable_ones_left_to_the_file(own_home: Path) -> None:
    async def scenario() -> None:
        taker = Taker()
        async with listening(own_home / "state", taker) as (source, writer):
            writer.write(b'{"tap":1,"session":"the-session","pid":7}\n' + line(1) + line(2, ephemeral=False) + line(3))
            await until(lambda: len(taker.taken) == 2)

            assert [(session, event["id"]) for session, event in taker.taken] == [(SESSION, "e1"), (SESSION, "e3")]
            assert source.status.durable_ignored == 1
            assert (source.status.taps, source.status.sessions) == (1, {SESSION})
            assert stat.S_IMODE(socket_path(own_home / "state", SOCKET_NAME).stat().st_mode) == 0o600
        assert not socket_path(own_home / "state", SOCKET_NAME).exists()

    asyncio.run(scenario())


def test_an_event_that_two_taps_show_is_passed_on_once(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT_MAX", 3)

    async def scenario() -> None:
        taker = Taker()
        async with listening(own_home / "state", taker) as (source, writer):
            _, other = await asyncio.open_unix_connection(str(socket_path(own_home / "state", SOCKET_NAME)))
            for n in range(10):
                writer.write(line(n))
                other.write(line(n))
                await until(lambda: source.status.counts.repeats == n + 1)  # noqa: B023  waited for here
            other.close()

            assert [event["id"] for _, event in taker.taken] == [f"e{n}" for n in range(10)]

    asyncio.run(scenario())


def test_what_taps_dropped_is_added_up(own_home: Path) -> None:
    async def scenario() -> None:
        taker = Taker()
        async with listening(own_home / "state", taker) as (source, writer):
            writer.write(line(1, dropped=3) + line(2, dropped=3) + line(3, dropped=10))
            await until(lambda: len(taker.taken) == 3)

            assert source.status.dropped_by_taps == 10

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "bad", [b"rubbish\n", b"[]\n", b"\xff\n", line(1, session="../up"), b'{"session":"x","event":7}\n']
)
def test_what_cannot_be_read_is_counted_and_the_rest_goes_on(own_home: Path, bad: bytes) -> None:
    async def scenario() -> None:
        taker = Taker()
        async with listening(own_home / "state", taker) as (source, writer):
            writer.write(bad + line(2))
            await until(lambda: len(taker.taken) == 1)

            assert source.status.unreadable == 1

    asyncio.run(scenario())


def test_a_line_without_end_is_not_held(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 1000)

    async def scenario() -> None:
        taker = Taker()
        async with listening(own_home / "state", taker) as (source, writer):
            for _ in range(50):
                writer.write(b"x" * 100_000)
                await writer.drain()
            writer.write(b"\n" + line(2))
            await until(lambda: len(taker.taken) == 1)

            assert source.status.unreadable == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("why", ["not wanted", "not taken"])
def test_what_nobody_takes_is_forgotten_and_counted(own_home: Path, why: str) -> None:
    async def scenario() -> None:
        taker = Taker()
        taker.want = Want.NOTHING if why == "not wanted" else Want.ALL
        taker.takes = False
        async with listening(own_home / "state", taker) as (source, writer):
            writer.write(line(1) + line(2))
            await until(lambda: source.status.counts.dropped == 2)

    asyncio.run(scenario())


def test_there_is_a_limit_to_taps(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAPS_MAX", 1)

    async def scenario() -> None:
        async with listening(own_home / "state", Taker()) as (source, _):
            await until(lambda: source.status.taps == 1)
            reader, writer = await asyncio.open_unix_connection(str(socket_path(own_home / "state", SOCKET_NAME)))
            assert await reader.read() == b""
            assert source.status.refused_taps == 1
            writer.close()

    asyncio.run(scenario())


def test_a_path_too_long_for_a_socket_is_told_in_a_file(own_home: Path) -> None:
    async def scenario() -> None:
        state = own_home / ("deep-" * 30)
        async with listening(state, Taker()):
            assert (state / "tap.path").read_text() == f"{socket_path(state, SOCKET_NAME)}\n"
            assert socket_path(state, SOCKET_NAME).parent == own_home / "run"
        assert not (state / "tap.path").exists()

    asyncio.run(scenario())


def test_a_socket_that_a_killed_exporter_left_is_replaced(own_home: Path) -> None:
    async def scenario() -> None:
        taker = Taker()
        (own_home / "state").mkdir()
        socket_path(own_home / "state", SOCKET_NAME).write_bytes(b"")
        async with listening(own_home / "state", taker) as (_, writer):
            writer.write(line(1))
            await until(lambda: len(taker.taken) == 1)

    asyncio.run(scenario())


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=100), max_size=10))
def test_whatever_is_written_the_next_tap_is_heard(chunks: list[bytes]) -> None:
    async def scenario(state: Path) -> None:
        taker = Taker()
        async with listening(state, taker) as (source, writer):
            for chunk in chunks:
                writer.write(chunk)
            writer.close()
            _, other = await asyncio.open_unix_connection(str(socket_path(state, SOCKET_NAME)))
            other.write(line(1))
            await until(lambda: any(event["id"] == "e1" for _, event in taker.taken))
            other.close()
            assert source.status.unreadable <= sum(chunk.count(b"\n") for chunk in chunks)

    with tempfile.TemporaryDirectory(prefix="xp-") as state:
        asyncio.run(scenario(Path(state)))
