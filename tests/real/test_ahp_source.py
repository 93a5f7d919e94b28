"""`exporter run` beside real agent hosts: every turn is at the receiver once, whatever was cut, killed or restarted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.core.ahp.test_captures import root, spawned, starts, text
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
ERRORS = ("par3", "err400", "sub_two", "hello")
NESTED = ("sub_nest", "sub_nest_fail")
CANCELLED = ("hello", "~mixed_slow", "hello")  # while its command sleeps
EACH = {"errors": ERRORS, "nested": NESTED, "cancelled": CANCELLED}
PLAYED = {"all": (*ERRORS, *NESTED, *CANCELLED[1:])} | (EACH if os.environ.get("AHP_EACH") else {})
"""With `AHP_EACH=1`, as in `make soak PART=hosts`, each group of prompts has a session of its own too."""
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
        (self.directory / "elsewhere").mkdir(exist_ok=True)
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

    def verified(self, session: str) -> list[dict[str, Any]]:
        """What `exporter verify --source` says of a session, in the running program."""
        program = self.cage.start(
            [*PROGRAM, "verify", "--session", session, "--source", "--wake", "--json"],
            environment=self._environment("tap", None),
            directory=self.directory,
            stdout=subprocess.PIPE,
        )
        stdout, _ = program.communicate(timeout=ARRIVAL_SECONDS_MAX)
        rows: list[dict[str, Any]] = json.loads(stdout)["sessions"]
        return rows

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
    assert [row["verdict"] for row in site.verified(session)] == ["equal"]
    assert_is_the_log(events, log_of(site.host, events))
    assert site.wire.connections >= 5
    assert {event.get("ephemeral") for event in events} == {None}


ACTIONS_MISSED = 2_500


@pytest.mark.parametrize("played", PLAYED.values(), ids=PLAYED)
@SITES
def test_no_restart_of_either_side_doubles_or_loses_anything(site: Site, played: tuple[str, ...]) -> None:
    """Parallel calls, errors, nested sub-agents and cancelled commands: what hosts restore otherwise than told.

    Two restarts of the host, four kill -9 of the exporter, a loss of its state, and 2,500 actions that it missed.
    """
    program = site.follow()
    site.wait_state("following")
    with Driver(site.host) as driver:
        uri = driver.create()
        session = name_of(uri)
        for scenario in played:
            driver.turn(scenario.removeprefix("~"), cancels=scenario.startswith("~"))
        turns = len(played)
        site.wait_turns(session, turns)
    for _ in range(2):
        log_of(site.host, site.events(session))  # a host that dies before its history is written loses turns
        site.host.restart()
        with Driver(site.host) as driver:
            driver.open(uri)
            kill(program)
            driver.turn("hello")
            turns += 1
        program = site.follow()
        site.wait_turns(session, turns)
    before = site.events(session)

    for loses_state in (False, True):
        told = site.events(session)
        kill(program)
        if loses_state:
            shutil.rmtree(site.directory / "state")
        program = site.follow()
        site.wait_state("following")
        with Driver(site.host) as driver:
            driver.open(uri)
            driver.turn("hello")
            site.wire.cut()
            seen = driver.seen
            driver.turn("hello")
            turns += 2
            while loses_state and driver.seen - seen < ACTIONS_MISSED:
                driver.turn("views")
                turns += 1
            assert driver.seen > seen
            site.wire.join()
            site.wait_turns(session, turns)

    events = site.events(session)
    log = log_of(site.host, events)
    assert {event["id"] for event in before} <= {event["id"] for event in events}
    known = {event["id"] for event in told}
    assert [event for event in events if event["id"] in known] == told
    since = [event for event in events if event["id"] not in known]
    begins = next(place for place, event in enumerate(since) if event["type"] == "user.message")
    again = since[:begins]
    assert_is_once([*told, *since[begins:]], log)
    (row,) = site.verified(session)
    assert (row["missing"], row["different"]) == ([], [])
    if site.host.is_classic:
        assert_is_what_a_classic_host_loses([event for event in events if event["id"] in row["extra"]], again, log)
    else:
        assert (row["verdict"], again) == ("equal", [])


def assert_is_what_a_classic_host_loses(
    lost: list[dict[str, Any]], again: list[dict[str, Any]], log: list[dict[str, Any]]
) -> None:
    """After a restart it has no calls that were cancelled, no turn of a nested sub-agent that failed at once, and
    some texts in other pieces: without its state the exporter tells these texts `again`, and nothing else."""
    ended = {event["data"]["toolCallId"] for event in log if event["type"] == "tool.execution_complete"}
    cancelled = {call for call, _ in starts(log)} - ended
    failed = {event["data"]["toolCallId"] for event in log if event["type"] == "subagent.failed"}
    calls = [event for event in lost if event["type"].startswith("tool.execution_")]
    assert Counter(event["data"]["toolCallId"] for event in calls) == Counter(dict.fromkeys(cancelled, 2))
    nested = [event for event in lost if event.get("agentId")]
    turn = ["user.message", "assistant.turn_start", "assistant.turn_end"]
    assert [event["type"] for event in nested] == turn * len(failed)
    assert {event["agentId"].rpartition("/")[2] for event in nested} == failed
    texts = [event for event in lost if event not in calls and event not in nested]
    assert {event["type"] for event in [*texts, *again]} <= {"assistant.message"}
    assert sorted(text(texts)) == sorted(text(again))


def assert_texts_are_told_once(events: list[dict[str, Any]], log: list[dict[str, Any]]) -> None:
    """In turns the texts are in order; what a host gives of a turn only after its restart comes between turns."""
    in_turns, late, is_running = "", [], False
    for event in (event for event in events if not event.get("agentId")):
        if event["type"] in ("assistant.turn_start", "assistant.turn_end"):
            is_running = event["type"] == "assistant.turn_start"
        elif event["type"] == "assistant.message" and is_running:
            in_turns += event["data"]["content"]
        elif event["type"] == "assistant.message":
            late.append(event["data"]["content"])
    said = text(log)
    for each in late:
        assert each in said
        said = said.replace(each, "", 1)
    assert in_turns == said


def assert_is_once(events: list[dict[str, Any]], log: list[dict[str, Any]]) -> None:
    """Every turn, call, error and sub-agent of the log is told once, in the words of the log; nothing is missing."""
    assert_texts_are_told_once(events, log)
    assert Counter(starts(events)) == Counter(starts(log))
    assert [data["message"] for data in root(events, "session.error")] == [
        data["message"] for data in root(log, "session.error")
    ]
    assert not [event["data"] for event in events if event["type"] == "exporter.gap"]
    for type in ("tool.execution_start", "tool.execution_complete", "subagent.started"):
        calls = Counter(event["data"]["toolCallId"] for event in events if event["type"] == type)
        assert set(calls.values()) == ({1} if any(event["type"] == type for event in log) else set()), type
    started = {event["data"]["toolCallId"]: event["data"] for event in events if event["type"] == "subagent.started"}
    assert started.keys() == spawned(log)
    names = {event["data"]["agentName"] for event in log if event["type"] == "subagent.started"}
    assert {data["agentName"] for data in started.values()} == names
    ends = [event for event in events if event["type"] in ("subagent.completed", "subagent.failed")]
    assert Counter(event["data"]["toolCallId"] for event in ends) == Counter(started.keys())
    failed = [event for event in log if event["type"] == "subagent.failed"]
    assert [event["type"] for event in ends].count("subagent.failed") == len(failed)
    asked = [event["data"]["content"] for event in events if event["type"] == "user.message" and event.get("agentId")]
    assert len(asked) == len(set(zip(asked, started, strict=False))) == len(started)
    assert all(asked)


@SITES
def test_a_session_whose_file_is_here_arrives_from_the_file_alone(site: Site) -> None:
    copilot = site.host.home / ".copilot"
    copilot.mkdir(exist_ok=True)
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
    for one in files():
        assert [row["verdict"] for row in site.verified(one)] == ["not asked"]
    assert site.status()["sessions"] == 1
    assert list((site.directory / "state" / "exporter" / "journals").iterdir()) == []
    assert len([one for one in site.receiver.session_ids() if text(site.events(one))]) == 1
