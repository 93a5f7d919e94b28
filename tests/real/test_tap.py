"""The tap in the real CLI: what is live arrives at once, and the session is what it would be without us."""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from exporter.sources.local_socket import socket_path
from exporter.sources.remote import Callbacks, SourceEvent, Want
from exporter.sources.tap.extension import install, project_directory, user_directory
from exporter.sources.tap.source import SOCKET_NAME, TapSource
from tests.real import install as cli
from tests.real.cage import kill
from tests.real.cli import Copilot, wait_until
from tests.real.conftest import MakeCopilot
from tests.real.scripts import prompt

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SESSION_SECONDS_MAX = 90
LATENCY_SECONDS_MAX = 0.05


class Listener:
    """The tap's source on a thread of its own; `seconds` is how long each event took to arrive."""

    def __init__(self, state: Path) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.seconds: list[float] = []
        self._loop = asyncio.new_event_loop()
        callbacks = Callbacks(self._take, lambda _: None, lambda *_: False, lambda *_: Want.LIVE, lambda _: None)
        self.source = TapSource(state, callbacks)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        wait_until(socket_path(state, SOCKET_NAME).exists, "the socket", 10)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self.source.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _take(self, session: str, events: Sequence[SourceEvent]) -> bool:
        now = time.time()
        for event in events:
            read = json.loads(event.line)
            self.events.append((session, read))
            self.seconds.append(now - datetime.fromisoformat(read["timestamp"]).timestamp())
        return True

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self.source.start())
        self._loop.run_forever()


def play(
    copilot: Copilot,
    scenario: str,
    meanwhile: Callable[[], None] = lambda: None,
    *,
    experimental: bool = True,
    state_home: Path | None = None,
) -> tuple[int, Path]:
    """One session with extensions; its return code and directory. With a `state_home` its project has the tap."""
    work = copilot.working_directory()
    (work / ".user").mkdir()
    environment = copilot.environment(work / ".user")
    if state_home is not None:
        environment |= {"GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS": "true", "XDG_STATE_HOME": str(state_home)}
        subprocess.run(["git", "init", "--quiet", str(work)], check=True, timeout=20)
        install(project_directory(work), state_dir=None)
    arguments = ["-p", prompt(scenario, work), "--allow-all-tools", *(["--experimental"] if experimental else [])]
    with work.with_suffix(".output").open("wb") as sink:
        program = copilot.cage.start(
            [*cli.command(copilot.version), *arguments],
            environment=environment,
            directory=work,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
    try:
        meanwhile()
        code = program.wait(SESSION_SECONDS_MAX)
    finally:
        kill(program)
    directory = copilot.session_in(work)
    assert directory is not None
    return code, directory


def shape(directory: Path) -> list[tuple[str, str]]:
    """What a log says happened, without what differs from run to run."""
    events = [json.loads(line) for line in (directory / "events.jsonl").read_bytes().splitlines()]
    return [(event["type"], event["data"].get("toolName", "")) for event in events]


@pytest.fixture
def copilot(make_copilot: MakeCopilot, own_home: Path) -> Copilot:
    """A CLI whose user has installed the tap; the exporter's state is in `own_home`."""
    made = make_copilot(cli.NEW, "tap")
    (own_home / "state").mkdir()
    install(user_directory(made.home), state_dir=own_home / "state")
    return made


@pytest.fixture
def listener(own_home: Path, copilot: Copilot) -> Iterator[Listener]:
    made = Listener(own_home / "state")
    yield made
    made.close()


def test_ephemeral_events_arrive_at_once_and_nothing_is_added_to_the_file(
    copilot: Copilot, listener: Listener, make_copilot: MakeCopilot, own_home: Path
) -> None:
    plain = make_copilot(cli.NEW, "tap-plain")  # a CLI remembers in its home that it was once --experimental
    install(user_directory(plain.home), state_dir=own_home / "state")
    code, directory = play(copilot, "sub_sync")
    with_tap, arrived = shape(directory), list(listener.events)
    status = listener.source.status
    without_code, without = play(plain, "sub_sync", experimental=False)

    assert (code, without_code) == (0, 0)
    assert sorted(with_tap) == sorted(shape(without))  # the end of a tool and of its agent come in either order
    assert {session for session, _ in arrived} == {directory.name}
    # The start of a call says what the pieces of its result are.
    assert {event["type"] for _, event in arrived if not event.get("ephemeral")} <= {"tool.execution_start"}
    assert "assistant.message_delta" in {event["type"] for _, event in arrived}
    assert any(event.get("agentId") for _, event in arrived)
    assert status.dropped_by_taps == status.unreadable == 0
    assert listener.events == arrived  # without --experimental nothing loads
    # What happened before the tap had joined is told late; what is live is what the model says.
    live = sorted(
        seconds
        for (_, event), seconds in zip(arrived, listener.seconds, strict=True)
        if event["type"].startswith("assistant.")
    )
    print(f"\ntap: {len(arrived)} events, of them {len(live)} of the assistant: median "
          f"{statistics.median(live) * 1000:.1f} ms, largest {live[-1] * 1000:.1f} ms")  # fmt: skip
    assert statistics.median(live) <= LATENCY_SECONDS_MAX
    assert live[int(len(live) * 0.95)] <= LATENCY_SECONDS_MAX


def test_the_session_ends_well_when_nobody_listens(copilot: Copilot) -> None:
    code, directory = play(copilot, "bash")

    assert code == 0
    assert shape(directory)[-1][0] == "session.shutdown"


@contextmanager
def nobody_reads(path: Path) -> Iterator[None]:
    """A socket that accepts and reads nothing."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.listen(4)
        kept = []
        threading.Thread(target=lambda: kept.append(server.accept()), daemon=True).start()
        yield
        for connection, _ in kept:
            connection.close()


def test_the_session_ends_well_when_the_listener_is_slow(copilot: Copilot, own_home: Path) -> None:
    started = time.monotonic()
    with nobody_reads(socket_path(own_home / "state", SOCKET_NAME)):
        code, directory = play(copilot, "big")
        many_code, _ = play(copilot, "many")

    assert (code, many_code) == (0, 0)
    assert shape(directory)[-1][0] == "session.shutdown"
    assert time.monotonic() - started < SESSION_SECONDS_MAX


def test_the_session_ends_well_when_the_listener_is_killed_and_comes_back(copilot: Copilot, own_home: Path) -> None:
    first = Listener(own_home / "state")
    second: list[Listener] = []

    def meanwhile() -> None:
        wait_until(lambda: len(first.events) > 3, "the first events", 30)
        first.close()
        second.append(Listener(own_home / "state"))

    code, directory = play(copilot, "slow", meanwhile)
    later = list(second[0].events)
    second[0].close()

    assert code == 0
    assert shape(directory)[-1][0] == "session.shutdown"
    assert later  # the same tap has found the new socket
    ids = [event["id"] for _, event in [*first.events, *later]]
    assert len(ids) == len(set(ids))


SDK = """
export async function joinSession(options) {
  if (JSON.stringify(options) !== '{"disableResume":true}') throw new Error("other options");
  return {
    sessionId: "made-up",
    on(handler) {
      const pad = "x".repeat(1000);
      let n = 0;
      const more = () => {
        const end = Math.min(n + 500, 20000);
        while (n < end) handler({ type: "x", id: "e" + n++, timestamp: "t", ephemeral: true, data: { pad } });
        if (n < 20000) setImmediate(more);
        else {
          const circle = {};
          circle.circle = circle;
          handler(circle);
          handler({ type: "x", id: "last", timestamp: "t", ephemeral: true, data: {} });
          console.error(JSON.stringify({ done: true, rss: process.memoryUsage().rss }));
          setTimeout(() => {}, 30000);
        }
      };
      more();
    },
  };
}
"""


def test_the_queue_drops_the_oldest_counts_them_and_never_waits(tmp_path: Path, own_home: Path) -> None:
    """The extension itself, with a made-up SDK: 20 MB of events while nobody reads, then somebody does."""
    node = cli.command(cli.OLD)[0]
    package = tmp_path / "node_modules/@github/copilot-sdk"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"type":"module","exports":{"./extension":"./extension.mjs"}}')
    (package / "extension.mjs").write_text(SDK)
    (own_home / "state").mkdir()
    install(tmp_path / "tap", state_dir=own_home / "state")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_path(own_home / "state", SOCKET_NAME)))
        server.listen(1)
        program = subprocess.Popen(
            [node, str(tmp_path / "tap/extension.mjs")], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            server.settimeout(20)
            connection, _ = server.accept()
            assert program.stderr is not None and program.stdout is not None
            said = json.loads(program.stderr.readline())  # all events were handed over while we read nothing
            lines = read_until(connection, b'"last"')
        finally:
            program.kill()
            program.wait()
    told = [json.loads(line) for line in lines if b'"tap"' not in line]
    numbers = [int(one["event"]["id"][1:]) for one in told[:-1]]

    assert said["rss"] < 200 << 20
    assert program.stdout.read() == b""
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 19_999
    assert 20_000 - len(numbers) == told[-1]["dropped"] > 10_000


def read_until(connection: socket.socket, word: bytes) -> list[bytes]:
    """The whole lines of a connection up to the one with a word in it."""
    content = b""
    connection.settimeout(20)
    while word not in content or not content.endswith(b"\n"):
        content += connection.recv(1 << 20)
    connection.close()
    return content.splitlines()


@pytest.mark.parametrize("both", [False, True], ids=["alone", "with the user's"])
def test_the_tap_of_a_project_shows_every_event_once(
    both: bool, make_copilot: MakeCopilot, own_home: Path, listener_at: Callable[[Path], Listener]
) -> None:
    copilot = make_copilot(cli.NEW, "tap-project")
    state = own_home / "exporter"  # with no word of it in the project: the default below XDG_STATE_HOME
    state.mkdir()
    if both:
        install(user_directory(copilot.home), state_dir=state)
    listener = listener_at(state)
    code, directory = play(copilot, "hello", state_home=own_home)

    assert code == 0
    ids = [event["id"] for session, event in listener.events if session == directory.name]
    assert ids and len(ids) == len(set(ids))
    assert listener.source.status.refused_taps == 0


@pytest.fixture
def listener_at() -> Iterator[Callable[[Path], Listener]]:
    made: list[Listener] = []

    def make(state: Path) -> Listener:
        made.append(Listener(state))
        return made[-1]

    yield make
    for one in made:
        one.close()
