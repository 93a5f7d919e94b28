"""Marks that are damaged, or cannot be written: the exporter lives, asks the receiver, repeats nothing (F44-F46)."""

import ctypes
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.program.driver import Machine

pytestmark = pytest.mark.slow

CAP_DAC_OVERRIDE: Final = 1
PR_CAPBSET_DROP: Final = 24
FILE_BYTES_MAX: Final = 256 * 1024


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def zero_the_first_page(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(bytes(4096))


def fill_with_garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def remove(path: Path) -> None:
    path.unlink()


def damage_the_middle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xaa" * (size - 4096))


DAMAGES: Final = [zero, zero_the_first_page, fill_with_garbage, halve, empty, remove]
DAMAGES_OF_MARKS: Final = [*DAMAGES, damage_the_middle]


@pytest.mark.parametrize("damage", DAMAGES_OF_MARKS)
def test_marks_damaged_while_down_are_rebuilt_by_asking(machine: Machine, damage: Callable[[Path], None]) -> None:
    machine.with_team()
    sessions = [machine.session().write(300), machine.session().write(10)]
    machine.deliver()
    damage(machine.state / "marks.db")
    sessions[0].write(50)
    running = machine.start()

    machine.assert_delivered()
    machine.assert_sent_once()
    assert running.alive


@pytest.mark.parametrize("damage", [zero, fill_with_garbage, halve])
def test_marks_damaged_while_down_and_a_rewind_leave_no_event_that_is_gone(
    machine: Machine, damage: Callable[[Path], None]
) -> None:
    machine.with_team()
    session = machine.session().write(300)
    machine.deliver()
    damage(machine.state / "marks.db")
    session.replace(session.durable()[:100])
    session.write(20)
    machine.deliver()

    machine.assert_delivered()
    machine.assert_sent_once()


def test_a_receiver_at_the_floor_is_sent_everything_again_when_the_marks_are_lost(machine: Machine) -> None:
    machine.with_floor()
    session = machine.session().write(300)
    machine.deliver()
    zero(machine.state / "marks.db")
    session.write(50)
    machine.deliver()

    machine.assert_delivered()
    assert machine.floor is not None
    assert machine.floor.repeated() == 300


@pytest.mark.parametrize("damage", [zero, fill_with_garbage, halve])
def test_marks_damaged_while_running_are_rebuilt_by_asking(machine: Machine, damage: Callable[[Path], None]) -> None:
    machine.with_team()
    sessions = [machine.session().write(2_000), machine.session().write(10)]
    running = machine.start()
    machine.assert_delivered()
    for name in ("marks.db", "marks.db-wal"):
        if (path := machine.state / name).exists():
            damage(path)
    for session in sessions:
        session.write(50)

    machine.assert_delivered()
    assert running.alive
    machine.assert_sent_once()
    running.stop()
    sessions[0].write(5)
    machine.deliver()
    machine.assert_delivered()
    machine.assert_sent_once()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_quarantine_stops_nothing(machine: Machine, damage: Callable[[Path], None]) -> None:
    machine.with_team()
    session = machine.session().write(100)
    machine.deliver()
    damage(machine.state / "quarantine.db")
    session.write(50)
    machine.deliver()

    machine.assert_delivered()
    machine.assert_sent_once()


def without_the_power_to_override_permissions() -> None:
    """Let even the superuser be bound by the modes of files; where nobody may give that power up, nobody has it."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def forbid_writing(state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o500)


def forbid_making(state: Path) -> None:
    state.parent.mkdir(parents=True)
    state.parent.chmod(0o500)


def put_a_file_there(state: Path) -> None:
    state.parent.mkdir(parents=True)
    state.write_text("")


@pytest.mark.parametrize("forbid", [forbid_writing, forbid_making, put_a_file_there])
def test_a_state_directory_that_cannot_be_used_is_refused(machine: Machine, forbid: Callable[[Path], None]) -> None:
    machine.with_floor()
    machine.session().write(10)
    forbid(machine.state)
    answer = machine.exporter("run", "--until-idle", prepare=without_the_power_to_override_permissions)

    assert answer.returncode == 3, answer.stderr
    assert str(machine.state) in answer.stderr
    assert machine.floor is not None
    assert machine.floor.posts == []


def with_small_files() -> None:
    """No file may grow beyond this; a write that would fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES_MAX, resource.RLIM_INFINITY))


def test_a_full_disk_pauses_and_repeats_nothing_when_there_is_room_again(machine: Machine) -> None:
    machine.with_team().with_floor()
    session = machine.session().write(12_000)
    running = machine.start(prepare=with_small_files)
    running.wait_for_word("cannot be written")
    assert running.alive
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    session.write(10)

    machine.assert_delivered()
    machine.assert_sent_once()
    assert running.alive


def test_killed_on_a_full_disk_it_repeats_one_batch_at_most(machine: Machine) -> None:
    machine.with_floor()
    machine.session().write(12_000)
    running = machine.start(prepare=with_small_files)
    running.wait_for_word("cannot be written")
    running.kill()
    machine.deliver()

    machine.assert_delivered()
    assert machine.floor is not None
    assert machine.floor.repeated() <= 500
