"""A session whose process ends without a word: no file changes, and yet every Mission Control must say so."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.program.driver import Machine
from tests.program.session_files import SessionFile
from tests.program.waiting import until

SECONDS_MAX = 10


@contextmanager
def held(session: SessionFile) -> Iterator[subprocess.Popen[bytes]]:
    """A process that holds the session open, as the CLI does: by a lock that is named after it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        (session.directory / f"inuse.{process.pid}.lock").touch()
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def up(machine: Machine) -> Iterator[str]:
    """A running `exporter up`, by the address of its Mission Control."""
    program = subprocess.Popen(
        machine.command("up", "--no-open", "--json"),
        env=machine.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    try:
        assert program.stdout is not None
        yield str(httpx.URL(json.loads(program.stdout.readline())["ready"]["url"]).join("/"))
    finally:
        program.terminate()
        program.communicate(timeout=90)


def said(session: SessionFile, *types: str) -> None:
    """Let the session go on with events of these types."""
    session.append([session.event(type=type, data={"content": "go on"}) for type in types])


def state(url: str, session: SessionFile, token: str = "") -> str | None:
    """What a Mission Control says of the session, in the list and to a filter alike."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with httpx.Client(base_url=url, headers=headers) as client:
        answer = client.get(f"/api/v1/sessions/{session.id}")
        if answer.status_code == 404:
            return None
        found = str(answer.json()["state"])
        filtered = client.get("/api/v1/sessions", params={"state": found}).json()["sessions"]
    return found if session.id in {one["id"] for one in filtered} else None


@pytest.mark.timeout(120)
def test_a_killed_session_is_crashed_everywhere_until_it_goes_on(machine: Machine) -> None:
    machine.with_team()
    assert machine.team is not None
    there, token = machine.team.root, machine.team.token_file.read_text().strip()
    session = machine.session()
    with up(machine) as here, held(session) as process:
        said(session, "session.start", "user.message", "assistant.turn_start")
        until(lambda: state(here, session) == state(there, session, token) == "working", "the session at work")

        process.kill()
        process.wait()
        until(lambda: state(here, session) == "crashed", "the crash here", seconds=SECONDS_MAX)
        until(lambda: state(there, session, token) == "crashed", "the crash there", seconds=SECONDS_MAX)

        with held(session) as resumed:
            said(session, "session.resume", "user.message")
            until(lambda: state(here, session) == state(there, session, token) == "working", "the session at work")
            resumed.kill()
            resumed.wait()
            until(lambda: state(here, session) == "crashed", "the second crash", seconds=SECONDS_MAX)
            until(lambda: state(there, session, token) == "crashed", "the second crash there", seconds=SECONDS_MAX)


@pytest.mark.timeout(120)
def test_a_session_that_was_killed_while_no_exporter_ran_is_crashed_once_one_runs(machine: Machine) -> None:
    machine.with_team()
    assert machine.team is not None
    there, token = machine.team.root, machine.team.token_file.read_text().strip()
    session = machine.session()
    with held(session) as process:
        said(session, "session.start", "user.message")
        with up(machine) as here:
            until(lambda: state(here, session) == state(there, session, token) == "working", "the session at work")
            machine.assert_delivered()
        process.kill()
        process.wait()

    with up(machine) as here:
        until(lambda: state(here, session) == "crashed", "the crash here", seconds=SECONDS_MAX)
        until(lambda: state(there, session, token) == "crashed", "the crash there", seconds=SECONDS_MAX)


@pytest.mark.timeout(120)
def test_a_session_that_ended_has_not_crashed_whatever_lock_it_left(machine: Machine) -> None:
    session, other = machine.session(), machine.session()
    with up(machine) as here, held(session) as process, held(other) as killed:
        said(session, "session.start", "user.message", "session.shutdown")
        said(other, "session.start", "user.message")
        until(lambda: (state(here, session), state(here, other)) == ("ended", "working"), "the two sessions")

        process.kill()
        process.wait()
        killed.kill()
        killed.wait()
        until(lambda: state(here, other) == "crashed", "the crash", seconds=SECONDS_MAX)
        pause = SessionFile(machine.home, seed=77).create()
        said(pause, "session.start", "user.message")
        until(lambda: state(here, pause) == "working", "what comes after")

        assert state(here, session) == "ended"
