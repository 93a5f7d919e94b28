"""`exporter run` beside a real headless server whose files are elsewhere: what it delivers is what the file holds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from tests.real import install
from tests.real.cage import Cage, kill, stop
from tests.real.cli import TookTooLong, wait_until
from tests.real.conftest import MakeCopilot
from tests.real.rpc import Server
from tests.real.station import PROGRAM, RECEIVER_TOKEN, REPOSITORY, Receiver, environment

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SOURCES = (REPOSITORY / "docs" / "sources.md").read_text(encoding="utf-8")
ROWS = re.findall(r"(?m)^\| (?=.*session\.usage_record)(`.+?) \|", SOURCES)
UNTOLD = frozenset(re.findall(r"`([\w.]+)`", " ".join(ROWS)))
"""The types that are in the file and not told by the server, by name."""
ARRIVAL_SECONDS_MAX = 60


def follow(
    cage: Cage, port: int, receiver: Receiver, directory: Path, *, push: bool = False
) -> subprocess.Popen[bytes]:
    """`exporter run` with no session file in its reach."""
    return start(cage, port, receiver, directory, "run", push=push)


def assert_source_is_equal(cage: Cage, port: int, receiver: Receiver, directory: Path, sessions: int = 1) -> None:
    """What the server tells anew is what the sink was given."""
    program = start(cage, port, receiver, directory, "verify", "--all", "--source", "--json", output="verified")
    assert program.wait(ARRIVAL_SECONDS_MAX) == 0, (directory / "verified").read_text()
    rows = json.loads((directory / "verified").read_text())["sessions"]
    assert [row["verdict"] for row in rows] == ["equal"] * sessions
    (directory / "verified").unlink()


def start(
    cage: Cage,
    port: int,
    receiver: Receiver,
    directory: Path,
    *arguments: str,
    push: bool = False,
    output: str = "output",
) -> subprocess.Popen[bytes]:
    """A command of the program with no session file in its reach."""
    (directory / "elsewhere").mkdir(exist_ok=True)
    settings = {
        "EXPORTER_COPILOT_HOME": str(directory / "elsewhere"),
        "EXPORTER_SOURCE": json.dumps([{"url": f"rpc://127.0.0.1:{port}", "push": push}]),
        "EXPORTER_MISSION_CONTROL__URL": receiver.url,
        "EXPORTER_MISSION_CONTROL__TOKEN": RECEIVER_TOKEN,
    }
    with (directory / output).open("ab") as sink:
        return cage.start(
            [*PROGRAM, *arguments],
            environment={**environment(directory), **settings},
            directory=directory,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )


def shared(server: Server, session_id: str) -> list[str]:
    """The ids of the file without those that the server keeps to itself while it runs."""
    lines = server.events(session_id).read_bytes().splitlines()
    return [event["id"] for event in map(json.loads, lines) if event["type"] not in UNTOLD]


def test_what_the_file_holds_arrives_by_the_server_alone(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    directory = tmp_path / "exporter"
    directory.mkdir()
    with (
        Server(make_copilot(install.NEW, "rpc-source")) as server,
        closing(Receiver(server.copilot.cage, tmp_path / "receiver")) as receiver,
    ):
        program = follow(server.copilot.cage, server._port(), receiver, directory)
        try:
            session_id = server.create()
            server.turn(session_id, "hello")
            kill(program)  # what happens meanwhile is made up for
            server.turn(session_id, "bash")
            program = follow(server.copilot.cage, server._port(), receiver, directory)
            server.turn(session_id, "sub_sync")

            def arrived() -> list[str]:
                return receiver.event_ids(session_id)

            wait_until(lambda: set(shared(server, session_id)) <= set(arrived()), "every event", ARRIVAL_SECONDS_MAX)
            order = arrived()
            assert len(order) == len(set(order))
            assert [one for one in order if one in set(shared(server, session_id))] == shared(server, session_id)
            file = {json.loads(line)["id"] for line in server.events(session_id).read_bytes().splitlines()}
            assert set(order) <= file
            assert_source_is_equal(server.copilot.cage, server._port(), receiver, directory)
        finally:
            stop(program)
            print((directory / "output").read_text()[-3000:])


@pytest.mark.parametrize("push", [False, True], ids=["polled", "pushed"])
def test_the_receiver_shows_what_the_file_holds_after_everything_that_changes_a_history(
    push: bool, make_copilot: MakeCopilot, tmp_path: Path
) -> None:
    directory = tmp_path / "exporter"
    directory.mkdir()
    copilot = make_copilot(install.NEW, f"rpc-histories-{push}")
    cage = copilot.cage

    with ExitStack() as stack:
        receiver = Receiver(cage, tmp_path / "receiver")
        stack.callback(receiver.close)
        server = stack.enter_context(Server(copilot))
        program = follow(cage, server._port(), receiver, directory, push=push)

        def is_the_file(*sessions: str) -> None:
            for one in sessions:
                with suppress(TookTooLong):
                    wait_until(lambda: told(receiver, server, one) == shared(server, one), one, ARRIVAL_SECONDS_MAX)  # noqa: B023
                assert told(receiver, server, one) == shared(server, one), types(server, receiver, one)

        try:
            session_id = server.create()
            for scenario in ("hello", "bash", "hello", "bash"):
                server.turn(session_id, scenario)
            is_the_file(session_id)
            server.truncate(session_id, user_messages(server, session_id)[-1])
            is_the_file(session_id)
            server.turn(session_id, "hello")
            is_the_file(session_id)
            server.rewind(session_id, user_messages(server, session_id)[-2])
            is_the_file(session_id)
            os.killpg(program.pid, signal.SIGSTOP)  # a compaction takes starts of calls out of what the server tells
            server.turn(session_id, "sub_sync")
            fork = server.fork(session_id)
            server.compact(session_id)
            os.killpg(program.pid, signal.SIGCONT)
            server.turn(session_id, "hello")
            server.resume(fork)
            server.turn(fork, "bash")
            is_the_file(session_id, fork)
            kill(program)  # what is rewound meanwhile is rewound
            server.truncate(session_id, user_messages(server, session_id)[-1])
            program = follow(cage, server._port(), receiver, directory, push=push)
            is_the_file(session_id, fork)
            port = server._port()
            server.stop()
            server = stack.enter_context(Server(copilot, port=port))
            is_the_file(session_id, fork)  # with its shutdown
            server.resume(fork)
            if not push:  # a session that is pushed does not end before the exporter has left
                server.turn(fork, "hello")
                server.close(fork)
                server.resume(fork)
            server.turn(fork, "hello")
            server.resume(session_id)
            server.turn(session_id, "bash")
            server.rewind(session_id, user_messages(server, session_id)[-1])
            server.turn(session_id, "hello")
            is_the_file(session_id, fork)
            assert_source_is_equal(cage, port, receiver, directory, 2)
            stop(program)
            assert_source_is_equal(cage, port, receiver, directory, 2)
        finally:
            stop(program)
            print((directory / "output").read_text()[-3000:])


def told(receiver: Receiver, server: Server, session_id: str) -> list[str]:
    """The ids that the receiver shows, without those of types that are not always told."""
    lines = server.events(session_id).read_bytes().splitlines()
    untold = {event["id"] for event in map(json.loads, lines) if event["type"] in UNTOLD}
    return [id for id in receiver.event_ids(session_id) if id not in untold]


def types(server: Server, receiver: Receiver, session_id: str) -> dict[str, list[str]]:
    """What one has and the other lacks, and where the order is another."""
    here = {
        event["id"]: event["type"] for event in map(json.loads, server.events(session_id).read_bytes().splitlines())
    }
    there = {one.event_id: json.loads(one.data)["type"] for one in receiver.events(session_id)}
    missing = [type for id, type in here.items() if id not in there and type not in UNTOLD]
    order = zip((id for id in here if id in there), (id for id in there if id in here), strict=True)
    moved = [f"{here[one]} is {here[other]}" for one, other in order if one != other]
    return {"missing": missing, "extra": [type for id, type in there.items() if id not in here], "moved": moved}


def user_messages(server: Server, session_id: str) -> list[str]:
    lines = server.events(session_id).read_bytes().splitlines()
    events = [json.loads(line) for line in lines]
    return [event["id"] for event in events if event["type"] == "user.message" and "agentId" not in event]
