"""One exporter for the directories of many people: those that match a pattern, now or later, each with its owner."""

import json
import os
import pwd
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.program.driver import Machine
from tests.program.session_files import SessionFile
from tests.program.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="homes of other accounts"),
]
ANNA, BERT, SERVICE = "daemon", "bin", 12_346
"""Accounts that every Linux has, and the number of one that has no name."""
AS_SERVICE: Final = ("setpriv", f"--reuid={SERVICE}", f"--regid={SERVICE}", "--clear-groups")
READS_ALL: Final = (
    "--inh-caps=+dac_read_search",
    "--ambient-caps=+dac_read_search",
    "--bounding-set=-all,+dac_read_search",
)


def home(machine: Machine, name: str) -> Path:
    return machine.root / "people" / name / ".copilot"


def person(machine: Machine, account: str, seed: int, *, like: SessionFile | None = None) -> SessionFile:
    """A home that only its owner may read, with one session of three events; `like` is one whose id it has."""
    session = SessionFile(home(machine, account), seed)
    if like is not None:
        session.id, session.directory = like.id, home(machine, account) / "session-state" / like.id
        session.path = session.directory / "events.jsonl"
    session.create().append(session.events(3))
    uid = pwd.getpwnam(account).pw_uid
    for path in (home(machine, account).parent, *home(machine, account).parent.rglob("*")):
        os.chown(path, uid, uid)
        path.chmod(0o700 if path.is_dir() else 0o600)
    return session


@pytest.fixture
def shared(machine: Machine) -> Machine:
    """A machine that follows every home below one directory, with a receiver."""
    machine.with_floor().settings["log_format"] = "json"
    machine.homes = [str(home(machine, "*"))]
    (machine.root / "people").mkdir()
    machine.root.chmod(0o755)
    return machine


def as_service(machine: Machine, *more: str) -> Sequence[str]:
    """Give what the exporter writes to its account; return how it is started as that."""
    machine.write_settings()
    for name in ("state", "runtime"):
        (machine.root / name).mkdir(exist_ok=True)
        os.chown(machine.root / name, SERVICE, SERVICE)
    os.chown(machine.root / "exporter.toml", SERVICE, SERVICE)
    machine.environment["XDG_CACHE_HOME"] = str(machine.root / "state" / "cache")
    return (*AS_SERVICE, *more)


def count(machine: Machine, session: SessionFile) -> int:
    assert machine.floor is not None
    return machine.floor.count(session.id)


def test_homes_that_match_are_followed_also_those_that_come_later_and_each_tells_its_owner(shared: Machine) -> None:
    anna = person(shared, ANNA, 1)
    running = shared.start()
    until(lambda: count(shared, anna) == 3, "the first home")

    bert = person(shared, BERT, 2)
    until(lambda: count(shared, bert) == 3, "the second home")
    bert.append(bert.events(1))
    until(lambda: count(shared, bert) == 4, "what follows there")

    listed = {one["id"]: one["owner"] for one in shared.json("sessions", "list")["sessions"]}
    assert listed == {anna.id: ANNA, bert.id: BERT}
    assert "OWNER" in shared.exporter("sessions", "list").stdout
    assert f'"home_found","message":"a directory of the CLI was found","path":"{home(shared, BERT)}' in running.text()
    running.stop()
    assert {one["id"]: one["owner"] for one in shared.json("sessions", "list")["sessions"]} == listed
    assert shared.json("status")["sources"][0]["sessions"] == 2


def test_what_cannot_be_read_is_said_once_and_taken_in_when_it_can(shared: Machine) -> None:
    anna, bert = person(shared, ANNA, 1), person(shared, BERT, 2)
    for path in (home(shared, ANNA).parent, *home(shared, ANNA).parent.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    running = shared.start(prefix=as_service(shared))

    until(lambda: count(shared, anna) == 3, "the home that can be read", seconds=90)  # it compiles its rules first
    anna.append(anna.events(1))
    until(lambda: count(shared, anna) == 4, "that it goes on")
    until(lambda: "home_unreadable" in running.text(), "what cannot be read")
    answer = shared.exporter("doctor", "--json", prefix=as_service(shared)).stdout
    failed = [one["detail"] for one in json.loads(answer)["checks"] if one["verdict"] == "failed"]

    home(shared, BERT).parent.chmod(0o755)
    home(shared, BERT).chmod(0o755)
    (home(shared, BERT) / "session-state").chmod(0o755)
    bert.directory.chmod(0o755)
    bert.path.chmod(0o644)
    until(lambda: count(shared, bert) == 3, "that it can be read")

    assert running.text().count("home_unreadable") == 1
    assert f"{home(shared, BERT)}/session-state cannot be read: Permission denied" in failed
    assert not any("could not be checked" in one for one in failed)


def test_a_directory_that_is_named_and_is_behind_a_closed_one_is_refused_in_words(shared: Machine) -> None:
    bert = home(shared, BERT)
    bert.mkdir(parents=True)
    bert.parent.chmod(0o700)
    shared.homes = [str(bert)]

    refused = shared.exporter("run", prefix=as_service(shared))

    assert (refused.returncode, f"{bert} is not a directory" in refused.stderr) == (3, True), refused.stderr


def test_with_the_one_capability_of_the_unit_closed_homes_are_read(shared: Machine) -> None:
    anna, bert = person(shared, ANNA, 1), person(shared, BERT, 2)

    shared.start(prefix=as_service(shared, *READS_ALL))

    until(lambda: count(shared, anna) == count(shared, bert) == 3, "both homes", seconds=90)


def test_a_session_that_a_second_home_has_too_is_delivered_once_and_named(shared: Machine) -> None:
    assert shared.floor is not None
    # In the order of names the home of BERT is the first.
    bert = person(shared, BERT, 1)
    anna = person(shared, ANNA, 2, like=bert)
    running = shared.start()
    until(lambda: "session_in_two_homes" in running.text(), "that it is named")
    until(lambda: count(shared, bert) == 3, "the first")
    anna.append(anna.events(2))
    bert.append(bert.events(1))
    until(lambda: count(shared, bert) == 4, "what follows in the first")

    assert shared.floor.lines(bert.id) == bert.durable()
    checks = [one for one in shared.json("doctor")["checks"] if one["name"] == "session"]
    assert [one["verdict"] for one in checks] == ["warning"]
    assert str(anna.directory) in checks[0]["detail"] and str(bert.directory) in checks[0]["detail"]
    assert [one["kind"] for one in shared.json("status")["sources"][0]["problems"]] == ["in_two_homes"]

    shutil.rmtree(bert.directory)
    until(lambda: count(shared, bert) == 4 + 5, "the other one, once the first is gone")


def test_a_directory_that_is_named_must_be_there_and_one_that_matches_is_waited_for(shared: Machine) -> None:
    missing = str(shared.root / "missing")
    for homes in ([missing], [str(home(shared, "*")), missing]):
        shared.homes = homes
        refused = shared.exporter("run")
        assert (refused.returncode, f"{missing} is not a directory" in refused.stderr) == (3, True), refused.stderr
    assert shared.exporter("run", "--copilot-home", missing).returncode == 3
    shared.homes = []
    assert shared.exporter("run", "--copilot-home", str(home(shared, "*")), "--until-idle").returncode == 0

    shared.homes = [str(home(shared, "*"))]
    running = shared.start()
    running.wait_for_word("home_missing")
    anna = person(shared, ANNA, 1)
    until(lambda: count(shared, anna) == 3, "the home that came")
    assert [json.loads(line)["event"] for line in running.text().splitlines()].count("home_missing") == 1
