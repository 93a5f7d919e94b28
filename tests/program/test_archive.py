"""The archive of the real program: complete after kills, full disks and damage, and readable without the program."""

import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
import zstandard

from tests.cli.program import ROOT
from tests.program.driver import Machine
from tests.program.session_files import SessionFile, event_id
from tests.program.waiting import until

SEED: Final = 20261119
KILLS: Final = 12


def read(directory: Path, session: SessionFile) -> list[bytes]:
    """What an archive holds of a session, read by the program that docs/archive.md shows."""
    [shown] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "archive.md").read_text(encoding="utf-8"), re.DOTALL)
    place = directory / "sessions" / session.id
    if not (place / "manifest.json").exists():
        return []
    done = subprocess.run([sys.executable, "-c", shown, str(place)], capture_output=True, check=True)
    return done.stdout.splitlines()


def assert_complete(machine: Machine, directory: Path) -> None:
    for session in machine.sessions:
        assert read(directory, session) == session.durable()
    machine.verify()


def sink(machine: Machine) -> dict[str, Any]:
    [found] = [one for one in machine.json("status")["sinks"] if one["name"] == "archive"]
    return dict(found)


def test_what_the_files_hold_is_in_the_archive_and_every_command_knows_it(machine: Machine) -> None:
    directory = machine.with_archive()
    sessions = [machine.session().write(150) for _ in range(3)]

    before = sink(machine)
    machine.deliver()

    assert before["state"] == "never used"
    assert_complete(machine, directory)
    assert (sink(machine)["lag_events"], sink(machine)["state"]) == (0, "not running")
    rows = machine.json("verify", "--all")["sessions"]
    assert {(one["session"], one["sink"], one["verdict"]) for one in rows} == {
        (session.id, "archive", "equal") for session in sessions
    }
    [checked] = [one for one in machine.json("doctor")["checks"] if one["name"] == "archive"]
    assert checked["verdict"] == "ok"
    assert str(directory) in checked["detail"]
    again = machine.json("backfill", "--all", "--sink", "archive")
    assert [one["events"] for one in again["sessions"]] == [0, 0, 0]


def test_a_running_exporter_seals_and_follows(machine: Machine) -> None:
    directory = machine.with_archive(seal_seconds=0.5)
    session = machine.session().write(30)
    running = machine.start()
    until(lambda: read(directory, session) == session.durable(), "the first object")
    session.write(30)
    until(lambda: read(directory, session) == session.durable(), "the second object")
    first = session.durable()
    session.replace(first[:20])
    until(lambda: read(directory, session) == first[:20], "the rewind")

    machine.verify()
    assert running.stop() < 10
    assert len(list((directory / "sessions" / session.id).glob("*.zst"))) == 2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kills_at_any_instant_lose_and_repeat_nothing(machine: Machine) -> None:
    directory = machine.with_archive(seal_seconds=0.1, seal_bytes=65_536)
    chance = Random(SEED)
    sessions = [machine.session() for _ in range(4)]
    for number in range(KILLS):
        running = machine.start()
        before = len(list(directory.rglob("*.zst")))
        for _ in range(8):
            chance.choice(sessions).write(chance.randint(5, 120))
        if number % 2:
            until(lambda before=before: len(list(directory.rglob("*.zst"))) > before, "an object")  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.3))
        running.kill()

    machine.deliver()

    assert_complete(machine, directory)
    for session in sessions:
        held = [event_id(line) for line in read(directory, session)]
        assert len(held) == len(set(held))
    assert not list((directory / ".partial").iterdir())


def test_a_full_disk_waits_and_goes_on_when_there_is_room(machine: Machine) -> None:
    directory = machine.with_archive(seal_seconds=0.2)
    session = machine.session()
    session.write(1)
    running = machine.start(prepare=_small_files)
    until(lambda: read(directory, session) == session.durable(), "what fits")
    session.append(session.event(text=_noise(number)) for number in range(40))

    until(lambda: sink(machine)["state"] == "waiting", "the sink waiting")
    assert "the archive cannot be written: File too large" in sink(machine)["last_error"]
    assert len(read(directory, session)) == 1

    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, unlimited)
    until(lambda: read(directory, session) == session.durable(), "the rest", seconds=90)
    machine.verify()


def _small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, resource.RLIM_INFINITY))


def _noise(seed: int) -> str:
    return Random(seed).randbytes(20_000).hex()


def test_damage_is_named_and_repaired(machine: Machine) -> None:
    directory = machine.with_archive()
    session = machine.session().write(200)
    machine.deliver()
    [path] = (directory / "sessions" / session.id).glob("*.zst")
    path.write_bytes(path.read_bytes()[:-1])

    said = machine.json("verify", "--all", expected_exit=8)["sessions"]
    repaired = machine.exporter("verify", "--all", "--repair")

    assert f"object {path.name.partition('.')[0]} has other bytes than were written" in said[0]["detail"]
    assert repaired.returncode == 0, repaired.stdout + repaired.stderr
    assert_complete(machine, directory)


def test_no_secret_reaches_any_object(machine: Machine) -> None:
    directory = machine.with_archive()
    secret = f"ghp_{Random(SEED).randbytes(18).hex()}"
    session = machine.session()
    session.append([session.event(text=f"export GITHUB_TOKEN={secret}"), session.event()])

    machine.deliver()

    assert len(read(directory, session)) == 2
    assert b"[REDACTED:" in read(directory, session)[0]
    for path in directory.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            whole = zstandard.ZstdDecompressor().decompress(data) if path.suffix == ".zst" else data
            assert secret.encode() not in whole, path
            assert path.stat().st_mode & 0o777 == 0o600
        else:
            assert path.stat().st_mode & 0o777 == 0o700


def test_a_forgotten_session_is_gone_beside_a_running_exporter_and_without_one(machine: Machine) -> None:
    directory = machine.with_archive(seal_seconds=0.2)
    first, second = machine.session().write(20), machine.session().write(20)
    machine.deliver()

    asleep = machine.json("archive", "forget", first.id)
    running = machine.start()
    running.wait_for_word("started")
    until(lambda: machine.json("status")["daemon"]["running"], "the daemon")
    awake = machine.exporter("archive", "forget", second.id)
    unknown = machine.exporter("archive", "forget", "nobody")
    first.write(5)
    time.sleep(1.0)

    assert [one["deleted"] for one in asleep["archives"]] == [2]
    assert (awake.returncode, awake.stdout) == (0, "archive: 2 files deleted\n")
    assert unknown.returncode == 2
    assert not list(directory.rglob("*.zst"))
    rows = machine.json("verify", "--all")["sessions"]
    assert {one["verdict"] for one in rows} == {"deleted there"}
    running.stop()

    assert machine.exporter("backfill", "--session", first.id, "--from-start").returncode == 0
    assert read(directory, first) == first.durable()


def test_a_demo_writes_nothing_into_an_archive(machine: Machine) -> None:
    directory = machine.with_archive(seal_seconds=0.1)
    running = machine.start("up", "--demo", "--no-open", "--port", "0")
    until((machine.state / "demo" / "state" / "mission_control.db").exists, "the demo")
    time.sleep(1.5)

    assert running.alive
    running.stop()
    assert not directory.exists()
