"""`exporter run` beside a real headless server whose files are elsewhere: what it delivers is what the file holds."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.real import install
from tests.real.cage import kill, stop
from tests.real.cli import wait_until
from tests.real.conftest import MakeCopilot
from tests.real.rpc import Server
from tests.real.station import PROGRAM, RECEIVER_TOKEN, Receiver, environment

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

FILE_ONLY = "session.usage_record"
ARRIVAL_SECONDS_MAX = 60


def follow(server: Server, receiver: Receiver, directory: Path) -> subprocess.Popen[bytes]:
    """`exporter run` with no session file in its reach."""
    settings = {
        "EXPORTER_COPILOT_HOME": str(directory / "elsewhere"),
        "EXPORTER_SOURCE": json.dumps([{"url": f"rpc://127.0.0.1:{server._port()}"}]),
        "EXPORTER_MISSION_CONTROL__URL": receiver.url,
        "EXPORTER_MISSION_CONTROL__TOKEN": RECEIVER_TOKEN,
    }
    with (directory / "output").open("ab") as sink:
        return server.copilot.cage.start(
            [*PROGRAM, "run"],
            environment={**environment(directory), **settings},
            directory=directory,
            stdout=sink,
            stderr=subprocess.STDOUT,
        )


def shared(server: Server, session_id: str) -> list[str]:
    """The ids of the file without those that the server keeps to itself while it runs."""
    lines = server.events(session_id).read_bytes().splitlines()
    return [event["id"] for event in map(json.loads, lines) if event["type"] != FILE_ONLY]


def test_what_the_file_holds_arrives_by_the_server_alone(make_copilot: MakeCopilot, tmp_path: Path) -> None:
    directory = tmp_path / "exporter"
    directory.mkdir()
    with (
        Server(make_copilot(install.NEW, "rpc-source")) as server,
        closing(Receiver(server.copilot.cage, tmp_path / "receiver")) as receiver,
    ):
        program = follow(server, receiver, directory)
        try:
            session_id = server.create()
            server.turn(session_id, "hello")
            kill(program)  # what happens meanwhile is made up for
            server.turn(session_id, "bash")
            program = follow(server, receiver, directory)
            server.turn(session_id, "sub_sync")

            def arrived() -> list[str]:
                return receiver.event_ids(session_id)

            wait_until(lambda: set(shared(server, session_id)) <= set(arrived()), "every event", ARRIVAL_SECONDS_MAX)
            order = arrived()
            assert len(order) == len(set(order))
            assert [one for one in order if one in set(shared(server, session_id))] == shared(server, session_id)
            file = {json.loads(line)["id"] for line in server.events(session_id).read_bytes().splitlines()}
            assert set(order) <= file
        finally:
            stop(program)
            print((directory / "output").read_text()[-3000:])
