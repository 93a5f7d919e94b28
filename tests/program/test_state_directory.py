"""A state directory from a backup, without rights or on a disk that is really full costs no event (F44-F46)."""

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program.driver import Machine, Running
from tests.program.session_files import event_id
from tests.program.waiting import until


def _without_tables(file: Path) -> None:
    connection = sqlite3.connect(file)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    connection.close()
    file.unlink()
    connection = sqlite3.connect(file)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()


def test_marks_without_their_tables_are_rebuilt_by_asking(machine: Machine) -> None:
    machine.with_team()
    session = machine.session().write(700)
    machine.deliver()
    _without_tables(machine.state / "marks.db")
    session.write(100)

    machine.deliver()

    machine.assert_delivered()
    machine.assert_sent_once()


def test_marks_restored_from_a_backup_repeat_nothing(machine: Machine) -> None:
    team = machine.with_team().team
    assert team is not None
    session = machine.session().write(200)
    machine.deliver()
    backup = machine.root / "backup"
    shutil.copytree(machine.state, backup)
    session.write(300)
    machine.deliver()
    shutil.rmtree(machine.state)
    shutil.copytree(backup, machine.state)
    session.write(50)

    machine.deliver()

    # A mark that is merely old may send again what followed it; the receiver stores nothing twice.
    machine.assert_delivered()
    assert team.duplicates() <= 300


def test_a_zeroed_key_of_the_markers_is_replaced_loudly_and_everything_is_delivered(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    session = machine.session().write(20)
    machine.state.mkdir(parents=True, mode=0o700)
    key = machine.state / "redaction.key"
    key.write_bytes(bytes(32))

    ended = machine.exporter("run", "--until-idle")

    assert ended.returncode == 0, ended.stderr
    assert "the key of the markers was damaged" in ended.stderr
    assert key.read_bytes()[:32] != bytes(32)
    assert [one.read_bytes() for one in machine.state.glob("redaction.key.corrupt-*")] == [bytes(32)]
    assert counting.lines(session.id) == session.durable()


@pytest.mark.parametrize("how", ["deleted", "moved", "deleted and made again"])
def test_a_state_directory_that_vanishes_is_said_and_nothing_is_sent_twice(
    machine: Machine, how: str, record_property: Callable[[str, object], None]
) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    session = machine.session().write(100)
    running = machine.start()
    counting.wait_for(session.id, [event_id(line) for line in session.durable()])
    machine.state.rename(machine.root / "moved")
    if how != "moved":
        shutil.rmtree(machine.root / "moved")
    if how == "deleted and made again":
        machine.state.mkdir()

    running.wait_for_word("the state directory was deleted or moved")
    second = machine.exporter("run", "--until-idle")
    other = machine.session().write(3_000)
    for _ in range(40):  # more than SQLite keeps in its log
        session.write(100)
    for one in (session, other):
        counting.wait_for(one.id, [event_id(line) for line in one.durable()])
    third = machine.exporter("quarantine", "list")
    status = machine.exporter("status")

    assert (second.returncode, third.returncode, status.returncode) == (7, 7, 7), second.stderr + third.stderr
    assert f"process {running.process.pid}" in status.stderr
    assert f"process {running.process.pid}" in second.stderr
    assert counting.lines(session.id) == session.durable()
    assert counting.lines(other.id) == other.durable()
    record_property("sent twice until it is stopped", counting.repeated())
    machine.assert_sent_once()
    assert running.alive, running.text()
    running.stop()
    machine.deliver()


# ── a state directory that cannot be written ──────────────────────────────────────────────────────────────────────


def _as_a_person() -> list[str]:
    """Root passes every permission check unless it gives its capabilities up."""
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []


def test_a_state_directory_that_became_read_only_ends_with_3_and_its_name(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    machine.session().write(20)
    machine.deliver()
    machine.state.chmod(0o500)
    for file in machine.state.iterdir():
        file.chmod(0o400)
    posts = len(counting.posts)
    try:
        ended = machine.exporter("run", "--until-idle", prefix=_as_a_person())
    finally:
        machine.state.chmod(0o700)

    assert ended.returncode == 3, ended.stderr
    assert str(machine.state) in ended.stderr
    assert "hint" in ended.stderr
    assert len(counting.posts) == posts


# ── a full disk ───────────────────────────────────────────────────────────────────────────────────────────────────

MOUNT = 'mkdir -p "$0" && mount -t tmpfs -o size=8m,mode=700 none "$0" && exec "$@"'


def _small_disk(machine: Machine) -> list[str]:
    """A prefix that gives the command a state directory on a disk of its own of 8 MB, where that is allowed."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    prefix = [*unshare, "sh", "-c", MOUNT, str(machine.state)]
    if shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=90)
    return prefix if tried.returncode == 0 else []


def _limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))


class SmallDisk:
    """A daemon whose state directory runs full, and has room again after `make_room`."""

    def __init__(self, machine: Machine) -> None:
        prefix = _small_disk(machine)
        self.limited = not prefix
        self.running: Running = machine.start(prefix=prefix, prepare=_limit_file_size if self.limited else None)
        self.ballast = Path(f"/proc/{self.running.process.pid}/root{machine.state}/ballast")

    def fill(self) -> None:
        """Leave no byte free on it."""
        if not self.limited:
            with self.ballast.open("wb", buffering=0) as file:
                try:
                    while file.write(b"\0" * 4096):
                        pass
                except OSError:
                    return

    def make_room(self) -> None:
        """Give the room back."""
        if self.limited:
            unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            resource.prlimit(self.running.process.pid, resource.RLIMIT_FSIZE, unlimited)
        else:
            self.ballast.unlink()


def test_a_full_disk_stops_the_marks_and_loses_nothing(machine: Machine) -> None:
    counting = machine.with_floor().floor
    assert counting is not None
    session = machine.session().write(100)
    disk = SmallDisk(machine)
    counting.wait_for(session.id, [event_id(line) for line in session.durable()])
    disk.fill()

    for _ in range(20):
        session.write(1_000)
    until(lambda: "warning" in disk.running.text() or "error" in disk.running.text(), "a loud word about the disk")
    alive_while_full = disk.running.alive
    disk.make_room()

    counting.wait_for(session.id, [event_id(line) for line in session.durable()])
    assert alive_while_full, disk.running.text()
    assert disk.running.alive, disk.running.text()
    assert counting.lines(session.id) == session.durable()
