"""What the doctor says of the state directory, on real files and real databases."""

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exporter.core.delivery.segment import Unsendable
from exporter.doctor import state
from exporter.doctor.check import Check
from exporter.doctor.facts import Facts
from exporter.state.lock import StateLock
from exporter.state.marks import MarkStore
from exporter.state.quarantine import Quarantine
from tests.doctor.machines import SESSION, contents, only, state_dir


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_the_key_of_the_markers_is_checked(facts: Facts) -> None:
    facts.state_dir.mkdir()
    key, found = facts.state_dir / "redaction.key", list(state.redaction_key(facts))
    for content, mode in ((range(32), 0o600), (range(32), 0o640), (range(31), 0o600), ([0] * 32, 0o600)):
        key.write_bytes(bytes(content))
        key.chmod(mode)
        found += state.redaction_key(facts)

    assert [check.verdict for check in found] == ["ok", "ok", "warning", "failed", "failed"]
    assert "another tag" in found[-1].remedy


def test_a_state_directory_that_is_not_there_yet_is_well(facts: Facts) -> None:
    assert only(state.state_directory(facts)).verdict == "ok"
    assert not facts.state_dir.exists()


def test_a_state_directory_open_to_others_is_a_warning(facts: Facts) -> None:
    directory = state_dir(facts)
    private = only(state.state_directory(facts))
    directory.chmod(0o755)

    check = only(state.state_directory(facts))

    assert private.verdict == "ok"
    assert (check.verdict, "mode 755" in check.detail) == ("warning", True)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o755


def test_a_state_directory_that_is_a_file_fails(facts: Facts) -> None:
    facts.state_dir.write_text("", encoding="ascii")

    assert only(state.state_directory(facts)).verdict == "failed"


@pytest.mark.skipif(sys.platform != "linux", reason="the table of mounts is Linux's")
@pytest.mark.parametrize(("system", "verdict"), [("ext4", "ok"), ("nfs4", "failed"), ("fuse.sshfs", "failed")])
def test_a_network_file_system_is_no_place_for_the_state(facts: Facts, system: str, verdict: str) -> None:
    device = facts.copilot_home.stat().st_dev
    mounts = facts.copilot_home / "mountinfo"
    line = f"22 1 {os.major(device)}:{os.minor(device)} / / rw - {system} somewhere rw\n"
    mounts.write_text(line, encoding="ascii")

    check = only(state.file_systems(facts, mounts))

    assert (check.verdict, system in check.detail) == (verdict, True)


def test_less_free_space_than_the_quarantine_may_take_is_a_warning(facts: Facts) -> None:
    assert only(state.free_space(replace(facts, quarantine_bytes=1 << 60))).verdict == "warning"


def test_a_daemon_is_known_by_its_answer(facts: Facts) -> None:
    told = {"daemon": {"running": True, "pid": 4242, "version": "0.1.0", "since": "2026-01-01T00:00:00Z"}}

    check = only(state.daemon(replace(facts, status=told)))

    assert check == Check("daemon", "ok", "process 4242 runs since 2026-01-01T00:00:00Z, version 0.1.0")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell who holds a lock")
def test_a_lock_whose_holder_does_not_answer_is_a_warning(facts: Facts) -> None:
    directory = state_dir(facts)
    with StateLock(directory):
        held = only(state.daemon(facts))
    released = only(state.daemon(facts))

    assert (held.verdict, f"process {os.getpid()} " in held.detail) == ("warning", True)
    assert released.verdict == "note"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell who holds a lock")
def test_without_a_table_of_locks_a_living_process_counts_as_the_holder(facts: Facts) -> None:
    lock, missing = state_dir(facts) / "lock", facts.state_dir / "no-table"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()

    found = []
    for text in (str(os.getpid()), str(ended.pid), "", "rubbish"):
        lock.write_text(text, encoding="ascii")
        found.append(state.lock_holder(lock, missing))

    assert found == [os.getpid(), None, None, None]


def test_sound_marks_are_well_and_stay_as_they_are(facts: Facts) -> None:
    directory = state_dir(facts)
    store = MarkStore(directory / "marks.db")
    store.sink_id("local", "local")
    store.close()
    before = contents(directory)

    check = only(state.marks(facts))

    assert (check.verdict, check.detail[:5]) == ("ok", "sound")
    assert contents(directory) == before


def test_marks_in_use_or_left_by_a_kill_are_read_without_a_trace(facts: Facts) -> None:
    path = state_dir(facts) / "marks.db"
    holder = (
        "import sys; from pathlib import Path; from exporter.state.marks import MarkStore\n"
        "store = MarkStore(Path(sys.argv[1])); store.sink_id('local', 'local'); print('ready', flush=True)\n"
        "sys.stdin.read()"
    )
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(path)], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        before = contents(facts.state_dir)
        in_use = only(state.marks(facts))
        process.kill()
        process.wait()
    left = only(state.marks(facts))

    assert {"marks.db-wal", "marks.db-shm"} <= set(before)
    assert (in_use.verdict, left.verdict) == ("ok", "ok")
    assert contents(facts.state_dir) == before


@pytest.mark.parametrize("damage", [b"this is no database" * 100, b""], ids=["other bytes", "page lost"])
def test_damaged_marks_fail_and_are_left_alone(facts: Facts, damage: bytes) -> None:
    path = state_dir(facts) / "marks.db"
    store = MarkStore(path)
    for number in range(500):
        store.remember(f"name {number}", "x" * 200)
    store.close()
    path.write_bytes(damage or path.read_bytes()[:8192] + bytes(4096) + path.read_bytes()[12288:])
    before = contents(facts.state_dir)

    check = only(state.marks(facts))

    assert check.verdict == "failed"
    assert contents(facts.state_dir) == before


def test_a_log_without_its_index_is_not_touched(facts: Facts) -> None:
    path = state_dir(facts) / "marks.db"
    MarkStore(path).close()
    path.with_name("marks.db-wal").write_bytes(b"something")
    before = contents(facts.state_dir)

    check = only(state.marks(facts))

    assert check.verdict == "note"
    assert contents(facts.state_dir) == before


@pytest.mark.parametrize(("size", "verdict"), [(0, "ok"), (100, "note"), (900_000, "warning")])
def test_the_quarantine_is_compared_with_its_cap(facts: Facts, size: int, verdict: str) -> None:
    kept = Quarantine(state_dir(facts) / "quarantine.db", bytes_max=1 << 20, days_max=30)
    if size:
        kept.add(SESSION, None, [Unsendable(0, b"x" * size, size, "no_id", None)])
    kept.close()

    assert only(state.quarantine(facts)).verdict == verdict


def test_damaged_stores_that_were_set_aside_are_named(facts: Facts) -> None:
    aside = state_dir(facts) / "mission_control.db.corrupt-1"
    aside.write_bytes(bytes(2048))

    check = only(state.set_aside(facts))

    assert check.verdict == "note"
    assert f"{aside} (2.0 KiB)" in check.detail
    assert "delete them" in check.remedy
    aside.unlink()
    assert list(state.set_aside(facts)) == []
