"""The tap in a person's terminal: `/clear` begins another session with another tap, and both are seen."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from exporter.sources.tap.extension import install, user_directory
from tests.real import install as cli
from tests.real.cage import kill
from tests.real.cli import Copilot, wait_until
from tests.real.conftest import MakeCopilot
from tests.real.scripts import prompt
from tests.real.test_tap import Listener

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

READY_SECONDS_MAX = 60
KEY_SECONDS = 0.8  # the terminal offers completions while somebody types


class Terminal:
    """The CLI on a terminal, as a person uses it."""

    def __init__(self, program: subprocess.Popen[bytes], keys: int, screen: Path) -> None:
        self.program = program
        self._keys = keys
        self._screen = screen

    def type(self, text: str) -> None:
        os.write(self._keys, text.encode())
        time.sleep(KEY_SECONDS)
        os.write(self._keys, b"\r")

    def shows(self, words: str) -> bool:
        return self._screen.exists() and words.encode() in self._screen.read_bytes()


@contextmanager
def terminal(copilot: Copilot, work: Path) -> Iterator[Terminal]:
    keys, screen = work.with_suffix(".keys"), work.with_suffix(".screen")
    os.mkfifo(keys)
    driver = [sys.executable, "-I", "-S", str(Path(__file__).with_name("terminal.py")), str(keys), str(screen)]
    (work / ".user").mkdir()
    program = copilot.cage.start(
        [*driver, *cli.command(copilot.version), "--allow-all-tools", "--experimental"],
        environment={**copilot.environment(work / ".user"), "TERM": "xterm-256color"},
        directory=work,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    typed = os.open(keys, os.O_RDWR)
    try:
        yield Terminal(program, typed, screen)
    finally:
        kill(program)
        os.close(typed)


def of(listener: Listener, type: str) -> list[tuple[str, dict[str, Any]]]:
    return [(session, event) for session, event in listener.events if event["type"] == type]


def test_after_clear_the_tap_of_the_new_session_is_heard(make_copilot: MakeCopilot, own_home: Path) -> None:
    copilot, state = make_copilot(cli.NEW, "tap-clear"), own_home / "state"
    state.mkdir()
    install(user_directory(copilot.home), state_dir=state)
    work = copilot.working_directory()
    (copilot.home / "config.json").write_text(f'{{"trusted_folders":["{work}"]}}')
    listener = Listener(state)
    try:
        with terminal(copilot, work) as used:
            wait_until(lambda: listener.source.status.taps == 1, "the first tap", READY_SECONDS_MAX)
            wait_until(lambda: used.shows("commands"), "a prompt", READY_SECONDS_MAX)
            used.type(prompt("hello", work))
            wait_until(lambda: len(of(listener, "session.idle")) >= 1, "the end of the turn", READY_SECONDS_MAX)
            used.type("/clear")
            wait_until(lambda: len(listener.source.status.sessions) == 2, "the second session", READY_SECONDS_MAX)
            wait_until(lambda: used.shows("reloaded"), "a prompt", READY_SECONDS_MAX)
            used.type(prompt("hello", work))
            wait_until(
                lambda: len({session for session, _ in of(listener, "assistant.message_delta")}) == 2,
                "what the second session says",
                READY_SECONDS_MAX,
            )
            wait_until(lambda: len(of(listener, "session.idle")) >= 2, "the end of its turn", READY_SECONDS_MAX)
            taps = listener.source.status.taps
            used.type("/exit")
            wait_until(lambda: used.program.poll() is not None, "the end", READY_SECONDS_MAX)
        code = used.program.poll()
    finally:
        listener.close()

    status = listener.source.status
    ids = [event["id"] for _, event in listener.events]
    assert (code, taps) == (0, 1)  # the tap of the session before is gone
    assert len(ids) == len(set(ids))
    assert status.dropped_by_taps == status.unreadable == status.refused_taps == 0
    assert all(event["ephemeral"] for _, event in listener.events)
    assert {session for session, _ in listener.events} <= {path.name for path in copilot.sessions().iterdir()}


@pytest.mark.parametrize("how", ["--stream off", "--stream=off", "set up"])
def test_a_session_whose_owner_wants_no_streaming_stays_without(
    how: str, make_copilot: MakeCopilot, own_home: Path
) -> None:
    copilot, state = make_copilot(cli.NEW, "tap-still"), own_home / "state"
    state.mkdir()
    install(user_directory(copilot.home), state_dir=state)
    if how == "set up":
        (copilot.home / "config.json").write_text('{"stream": false}')
    work = copilot.working_directory()
    (work / ".user").mkdir()
    arguments = ["-p", prompt("hello", work), "--allow-all-tools", "--experimental"]
    listener = Listener(state)
    try:
        program = copilot.cage.start(
            [*cli.command(copilot.version), *arguments, *(how.split() if how != "set up" else [])],
            environment=copilot.environment(work / ".user"),
            directory=work,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        code = program.wait(READY_SECONDS_MAX)
    finally:
        listener.close()

    assert code == 0
    assert of(listener, "assistant.idle")
    assert not of(listener, "assistant.message_delta") and not of(listener, "assistant.streaming_delta")
