"""Backup and restore of what an exporter remembers and of a receiver's store; upgrade, and the way back."""

import json
import shutil
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import zstandard

from exporter.missioncontrol.store.sqlite.database import VERSION as STORE_SCHEMA
from tests.program.driver import Machine
from tests.program.floor import Floor
from tests.program.session_files import SessionFile
from tests.program.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
BEFORE: Final = Path(__file__).parents[1] / "fixtures" / "before-operate"
DEMO: Final = Path(__file__).parents[2] / "exporter" / "demo" / "session.jsonl"


def schema_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


def set_schema(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {version}")
        database.commit()


def floor_of(machine: Machine) -> Floor:
    assert machine.floor is not None
    return machine.floor


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def made(machine: Machine, *arguments: str) -> tuple[Path, dict[str, Any]]:
    target = machine.root / "backup"
    return target, machine.json("backup", str(target), *arguments)


def test_a_backup_of_a_running_exporter_is_whole_private_and_repeats_nothing_when_it_is_restored(
    machine: Machine,
) -> None:
    floor = floor_of(machine.with_floor())
    session = machine.session().write(200)
    session.append_bytes(b"this is no event\n")
    running = machine.start()
    until(lambda: floor.count(session.id) >= 150, "what there is: " + running.text(), seconds=60)
    until(lambda: machine.json("status")["sinks"][0]["lag_events"] == 0, "all of it")
    known = floor.count(session.id)
    writer = threading.Thread(target=_write_much, args=(session,))
    writer.start()
    target, answer = made(machine)
    writer.join()
    floor.wait_for(session.id, known + 300)
    running.stop()
    shutil.rmtree(machine.state)

    restored = machine.json("restore", str(target))
    session.append(session.events(3))
    machine.start()
    floor.wait_for(session.id, known + 303)

    assert set(answer["files"]) == {"marks.db", "quarantine.db", "redaction.key"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.rglob("*") if path.is_file()} == {0o600}
    assert restored["aside"] is None
    assert len(machine.quarantined()) == 1
    assert floor.repeated() <= 303  # what came after the backup; a receiver knows it


def _write_much(session: SessionFile) -> None:
    for _ in range(60):
        session.append(session.events(5))


def test_restoring_needs_the_directory_for_itself_and_moves_what_was_there_aside(machine: Machine) -> None:
    floor = floor_of(machine.with_floor())
    session = machine.session().write(5)
    machine.deliver()
    target, _ = made(machine)
    session.write(5)
    machine.deliver()
    running = machine.start()
    running.wait_for_word("ready")
    refused = machine.exporter("restore", str(target))
    running.stop()

    answer = machine.json("restore", str(target))

    assert refused.returncode == 7
    aside = Path(answer["aside"])
    assert {"marks.db", "quarantine.db"} <= {path.name for path in aside.iterdir()}
    with closing(sqlite3.connect(machine.state / "marks.db")) as marks:
        assert marks.execute("SELECT delivered FROM marks").fetchall() == [(5,)]
    machine.deliver()
    assert floor.lines(session.id) == session.durable()


@pytest.mark.parametrize("spoil", ["changed", "missing", "no manifest", "newer"])
def test_a_backup_that_is_not_whole_or_newer_changes_nothing(machine: Machine, spoil: str) -> None:
    machine.with_floor().session().write(5)
    machine.deliver()
    target, _ = made(machine)
    if spoil == "changed":
        set_schema(target / "marks.db", 3)
    elif spoil == "missing":
        (target / "quarantine.db").unlink()
    elif spoil == "no manifest":
        (target / "backup.json").unlink()
    else:
        manifest = json.loads((target / "backup.json").read_text())
        manifest["files"]["marks.db"]["schema"] = 99
        (target / "backup.json").write_text(json.dumps(manifest))
    before = contents(machine.state)

    refused = machine.exporter("restore", str(target))

    assert refused.returncode == 3, refused.stderr
    assert contents(machine.state) == before


def test_a_backup_is_written_over_nothing(machine: Machine) -> None:
    machine.with_floor().session().write(2)
    machine.deliver()
    made(machine)

    assert machine.exporter("backup", str(machine.root / "backup")).returncode == 2
    assert (
        machine.exporter("backup", str(machine.root / "b2"), "--store", str(machine.root / "none.db")).returncode == 2
    )


def test_a_receiver_that_was_restored_gets_again_what_it_lacks(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    session = machine.session().write(40)
    machine.deliver()
    target, answer = made(machine, "--store", str(team.database))
    session.write(20)
    machine.deliver()
    busy = machine.exporter("restore", str(target), "--store", str(team.database))
    team.stop()
    restored = machine.json("restore", str(target), "--store", str(team.database))
    team.start()

    machine.deliver()

    machine.assert_delivered()
    assert list(answer["files"]) == ["mission_control.db"]
    assert (busy.returncode, "stop the receiver first" in busy.stderr) == (7, True), busy.stderr
    assert Path(restored["aside"]).name.startswith(f"{team.database.name}.before-restore")


@pytest.mark.parametrize("name", ["marks.db", "quarantine.db", "mission_control.db"])
def test_a_schema_that_is_newer_is_refused_with_the_file_untouched(machine: Machine, name: str) -> None:
    machine.session().write(3)
    machine.deliver()  # to the embedded Mission Control
    known = schema_of(machine.state / name)
    set_schema(machine.state / name, known + 1)
    before = (machine.state / name).read_bytes()

    refused = machine.exporter("run")

    assert refused.returncode == 3
    assert f"schema {known + 1}, not {known}" in refused.stderr and "newer" in refused.stderr
    assert (machine.state / name).read_bytes() == before
    assert not list(machine.state.glob("*.corrupt-*"))
    set_schema(machine.state / name, known)
    machine.deliver()


# ── what the program of an earlier commit wrote ────────────────────────────────────────────────────────────────────


@pytest.fixture
def upgraded(machine: Machine) -> Machine:
    """A machine with the state that commit 7ea7a01 left, which had delivered two sessions and refused one line."""
    lines = [line for line in DEMO.read_bytes().splitlines() if not json.loads(line).get("ephemeral")][:40]
    for end, more in (("1", b""), ("2", b"no event\n")):
        directory = machine.home / "session-state" / f"3f2a77c1-1d1c-4a51-9d0e-0d7a8a7f000{end}"
        directory.mkdir()
        (directory / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n" + more)
    machine.state.mkdir(parents=True, mode=0o700)
    for path in BEFORE.iterdir():
        target = machine.state / path.stem
        target.write_bytes(zstandard.ZstdDecompressor().decompress(path.read_bytes(), 1 << 26))
        target.chmod(0o600)
    return machine


def events_in(store: Path) -> int:
    with closing(sqlite3.connect(store)) as database:
        return int(database.execute("SELECT count(*) FROM events").fetchone()[0])


def test_what_an_earlier_commit_left_is_taken_over_without_a_second_delivery(upgraded: Machine) -> None:
    store = upgraded.state / "mission_control.db"
    earlier, events = schema_of(store), events_in(store)

    upgraded.deliver(expected_exit=4)  # one line is in quarantine
    listed = upgraded.json("sessions", "list")["sessions"]

    assert (earlier, schema_of(store)) == (11, STORE_SCHEMA)
    assert events_in(store) == events == sum(one["events"] for one in listed)
    assert [one["sinks"][0]["lag_events"] for one in listed] == [0, 0]
    assert len(upgraded.quarantined()) == 1
    assert upgraded.exporter("verify", "--all").returncode == 0


def test_the_copy_that_an_upgrade_makes_is_the_way_back(upgraded: Machine) -> None:
    store = upgraded.state / "mission_control.db"
    events = events_in(store)
    upgraded.session().write(3)
    upgraded.settings["log_format"] = "json"
    said = [json.loads(line) for line in upgraded.exporter("run", "--until-idle").stderr.splitlines()]
    kept = upgraded.state / "mission_control.db.schema-11.backup"

    assert [one["as"] for one in said if one["event"] == "store_kept"] == [str(kept)]
    assert (schema_of(kept), events_in(kept), events_in(store)) == (11, events, events + 3)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    kept.replace(store)
    upgraded.deliver(expected_exit=4)  # forward again: what the copy lacks is sent once more
    assert events_in(store) == events + 3


def test_the_state_of_another_machine_goes_on_where_it_was(machine: Machine) -> None:
    """Moving: stop, back up, restore elsewhere, start; the receiver is sent nothing a second time."""
    floor = floor_of(machine.with_floor())
    session = machine.session().write(20)
    machine.deliver()
    target, _ = made(machine)
    machine.state = machine.root / "elsewhere"

    machine.json("restore", str(target))
    session.write(5)
    machine.start()
    until(lambda: floor.count(session.id) == 25, "the rest")

    assert floor.repeated() == 0
