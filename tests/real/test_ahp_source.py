"""`exporter run` beside real agent hosts: every turn is at the receiver once, whatever was cut, killed or restarted."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.core.ahp.test_captures import root, text
from tests.real.ahp_driver import Driver
from tests.real.ahp_host import CHAT, CLASSIC, TOKEN, AgentHost, host
from tests.real.cage import Cage, kill, stop
from tests.real.cli import wait_until
from tests.real.install import InstallError
from tests.real.station import PROGRAM, RECEIVER_TOKEN, Receiver, environment
from tests.real.test_ahp import assert_is_the_log, log_of, name_of
from tests.real.wire import Wire

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
BOTH = pytest.mark.parametrize("version", [CLASSIC, CHAT], ids=["classic", "chat"])

ARRIVAL_SECONDS_MAX = 60
STORMY = ("sub_sync", "bash", "reason", "many", "hello", "bash")
REPLAYED_MAX = 1000
"""How many messages a host keeps for who comes back."""


class Site:
    """A host, a wire to it, a receiver, and the program between them; a context manager."""

    def __init__(self, cage: Cage, version: str, directory: Path) -> None:
        self.cage = cage
        self.directory = directory / "exporter"
        self.directory.mkdir()
        self.token_file = directory / "token"
        self.token_file.write_text(TOKEN)
        self._closing = ExitStack()
        self.host = self._closing.enter_context(AgentHost(cage, version, directory / "home"))
        self.wire = self._closing.enter_context(Wire(cage, self.host.connect))
        self.receiver = Receiver(cage, directory / "receiver")
        self._closing.callback(self.receiver.close)

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        print((self.directory / "output").read_text()[-3000:])  # pytest shows it beside what failed
        self._closing.close()

    def follow(self, copilot_home: Path | None = None) -> subprocess.Popen[bytes]:
        """`exporter run`, with these session files in its reach, by default none."""
        url = f"ahp+ws://127.0.0.1:{self.wire.port}/?token_file={self.token_file}"
        with (self.directory / "output").open("ab") as sink:
            program = self.cage.start(
                [*PROGRAM, "run"],
                environment=self._environment(url, copilot_home),
                directory=self.directory,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        self._closing.callback(stop, program)
        return program

    def _environment(self, url: str, copilot_home: Path | None) -> dict[str, str]:
        return {
            **environment(self.directory),
            "EXPORTER_COPILOT_HOME": str(copilot_home or self.directory / "elsewhere"),
            "EXPORTER_SOURCE": json.dumps([{"url": url}]),
            "EXPORTER_MISSION_CONTROL__URL": self.receiver.url,
            "EXPORTER_MISSION_CONTROL__TOKEN": RECEIVER_TOKEN,
        }

    def status(self) -> dict[str, Any]:
        """What `exporter status` says of the source."""
        program = self.cage.start(
            [*PROGRAM, "status", "--json"],
            environment=self._environment("tap", None),
            directory=self.directory,
            stdout=subprocess.PIPE,
        )
        stdout, _ = program.communicate(timeout=ARRIVAL_SECONDS_MAX)
        assert TOKEN.encode() not in stdout
        sources: list[dict[str, Any]] = json.loads(stdout)["sources"]
        return next((one for one in sources if one["name"].startswith("ahp+ws://")), {})

    def events(self, session: str) -> list[dict[str, Any]]:
        """What the receiver has of a session."""
        try:
            return [json.loads(line.data) for line in self.receiver.events(session)]
        except LookupError:
            return []

    def wait_state(self, words: str) -> None:
        """Wait until the status begins like that; what follows is that nobody has signed in at the host yet."""
        wait_until(lambda: self.status().get("state", "").startswith(words), words, ARRIVAL_SECONDS_MAX)

    def wait_turns(self, session: str, count: int) -> None:
        """Wait until so many turns of the session itself have arrived to their end."""

        def have_arrived() -> bool:
            return len(root(self.events(session), "assistant.turn_end")) >= count

        wait_until(have_arrived, f"{count} turns of {session}", ARRIVAL_SECONDS_MAX)


@pytest.fixture
def site(request: pytest.FixtureRequest, cage: Cage, tmp_path: Path) -> Iterator[Site]:
    version = request.param
    try:
        host(version)
    except InstallError as error:
        pytest.skip(f"NO REAL AGENT HOSTS: {error}")
    with Site(cage, version, tmp_path) as made:
        yield made


SITES = pytest.mark.parametrize("site", [CLASSIC, CHAT], ids=["classic", "chat"], indirect=True)


@SITES
def test_every_turn_arrives_once_whatever_is_cut_killed_and_restarted(site: Site) -> None:
    program = site.follow()
    site.wait_state("following")
    with Driver(site.host) as driver:
        uri = driver.create()
        session = name_of(uri)
        driver.turn("hello")
        site.wait_turns(session, 1)
        with site.wire.storm(seed=7):
            for scenario in STORMY:
                driver.turn(scenario)
        turns = 1 + len(STORMY)
        site.wait_turns(session, turns)

        kill(program)
        driver.turn("badtool")
        program = site.follow()
        turns += 1
        site.wait_turns(session, turns)

        site.wire.cut()
        before = driver.seen
        while driver.seen - before <= REPLAYED_MAX:
            driver.turn("many")
            turns += 1
        site.wire.join()
        driver.turn("hello")
        turns += 1
        site.wait_turns(session, turns)
    log_of(site.host, site.events(session))  # a host that dies before its history is written has another one afterwards

    site.host.restart()
    with Driver(site.host) as driver:
        driver.open(uri)
        driver.turn("hello")
        site.wait_turns(session, turns + 1)

    events = site.events(session)
    assert_is_the_log(events, log_of(site.host, events))
    assert site.wire.connections >= 5
    assert {event.get("ephemeral") for event in events} == {None}


@SITES
def test_a_session_whose_file_is_here_arrives_from_the_file_alone(site: Site) -> None:
    copilot = site.host.home / ".copilot"
    site.follow(copilot)
    site.wait_state("following")
    with Driver(site.host) as driver:
        driver.create()
        for scenario in ("hello", "bash"):
            driver.turn(scenario)

    def files() -> dict[str, list[str]]:
        logs = copilot.glob("session-state/*/events.jsonl")
        return {log.parent.name: [json.loads(line)["id"] for line in log.read_bytes().splitlines()] for log in logs}

    def has_all() -> bool:
        there = files()
        return bool(there) and all(site.receiver.event_ids(one) == ids for one, ids in there.items())

    wait_until(lambda: any(len(ids) > 8 for ids in files().values()), "Copilot's log", ARRIVAL_SECONDS_MAX)
    wait_until(has_all, "what the file has", ARRIVAL_SECONDS_MAX)
    assert site.receiver.session_ids() == set(files())
    assert site.status()["sessions"] == 1
    assert list((site.directory / "state" / "exporter" / "journals").iterdir()) == []
    assert len([one for one in site.receiver.session_ids() if text(site.events(one))]) == 1
