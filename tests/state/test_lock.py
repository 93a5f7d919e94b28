"""One exporter owns a state directory, and the directory is this user's alone."""

import fcntl
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from exporter.errors import LockedError, StateError
from exporter.state.lock import StateLock, kernel_name, owned, prepare_state_dir, refuse_vanished
from tests.state.full_disk import full_disk
from tests.state.killing import ROOT, running


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_second_holder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with running("lock", tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=f"process {process.pid}"):
            StateLock(tmp_path).acquire()


def test_kill_9_gives_the_lock_back(tmp_path: Path) -> None:
    with running("lock", tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.wait()

    with StateLock(tmp_path) as lock:
        assert lock.holder() == os.getpid()


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is inherited there")
@pytest.mark.parametrize("lets_go", [True, False])
def test_what_a_child_of_a_killed_owner_still_holds_is_waited_for(
    tmp_path: Path, lets_go: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exporter.state.lock._LET_GO_SECONDS", 60.0 if lets_go else 0.05)
    with running("lock_in_child", tmp_path) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        process.kill()
        process.wait()
        with (tmp_path / "lock").open() as file, pytest.raises(BlockingIOError):  # the child has it
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

        if lets_go:
            threading.Timer(0.1, process.stdin.close).start()
            with StateLock(tmp_path) as lock:
                assert lock.holder() == os.getpid()
            process.stdin = None
        else:
            with pytest.raises(LockedError):
                StateLock(tmp_path).acquire()


def test_it_can_be_taken_again_after_it_was_given_back(tmp_path: Path) -> None:
    first, second = StateLock(tmp_path), StateLock(tmp_path)
    first.acquire()
    with pytest.raises(LockedError):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()

    assert mode(tmp_path / "lock") == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has names in the kernel")
@pytest.mark.parametrize("listens", [True, False])
def test_another_users_claim_on_the_name_keeps_nobody_out(tmp_path: Path, listens: bool) -> None:
    """A test that is not run by root has no other user; what it can show is a holder that does not answer."""
    code = (
        "import os, socket, sys, time\n"
        "name = sys.argv[1].replace('@', chr(0))\n"
        "if os.getuid() == 0:\n    os.setuid(12345)\n"
        "held = socket.socket(socket.AF_UNIX)\n"
        "held.bind(name)\n"
        "if sys.argv[2] == 'True' and os.getuid() == 12345:\n    held.listen()\n"
        "print('held', flush=True); time.sleep(60)\n"
    )
    name = kernel_name(tmp_path).replace("\0", "@")
    arguments = [sys.executable, "-c", code, name, str(listens)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with StateLock(tmp_path) as lock:
            holder = lock.holder()
        process.kill()

    assert holder == os.getpid()


@pytest.mark.parametrize("content", ["", "somebody", "12 34", "\xff"])
def test_rubbish_in_the_lock_file_is_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / "lock").write_bytes(content.encode("latin-1"))

    assert StateLock(tmp_path).holder() is None
    with StateLock(tmp_path) as lock:
        assert lock.holder() == os.getpid()


def test_a_lock_that_cannot_be_made_is_not_held_by_somebody(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StateError) as error:
        StateLock(tmp_path).acquire()

    assert not isinstance(error.value, LockedError)


def test_the_directory_is_made_with_its_parents_for_this_user_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    prepare_state_dir(path)
    prepare_state_dir(path)

    assert mode(path) == 0o700
    assert list(path.iterdir()) == []


def test_a_directory_that_others_may_enter_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    prepare_state_dir(tmp_path)

    assert mode(tmp_path) == 0o700


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    for path in (tmp_path / "state", tmp_path / "state" / "below"):
        with pytest.raises(StateError, match="state"):
            prepare_state_dir(path)


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    if os.getuid() == 0:
        os.chown(tmp_path, 12345, -1)
        path = tmp_path
    else:
        path = Path("/")
    with pytest.raises(StateError, match="belongs to another user"):
        prepare_state_dir(path)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """In a process without the rights of root, who may write anywhere."""
    state = tmp_path / "state"
    state.mkdir(mode=0o500)
    code = (
        "import os, sys, pathlib; path = pathlib.Path(sys.argv[1])\n"
        "from exporter.errors import StateError\n"
        "from exporter.state.lock import prepare_state_dir\n"
        "if os.getuid() == 0:\n"
        "    os.chown(path, 12345, -1); os.chdir(path); os.setuid(12345); path = pathlib.Path('.')\n"
        "try:\n    prepare_state_dir(path)\nexcept StateError as error:\n    print(error)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(state)], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert "cannot be written" in result.stdout


def test_a_directory_on_a_full_disk_is_refused_or_made(tmp_path: Path) -> None:
    with full_disk(tmp_path) as disk:
        prepare_state_dir(disk.path / "state")
        disk.fill()
        prepare_state_dir(disk.path / "state")

        assert list((disk.path / "state").iterdir()) == []


def test_owning_makes_and_locks_the_directory(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with owned(path), pytest.raises(LockedError):
        StateLock(path).acquire()
    with owned(path):
        assert mode(path) == 0o700


def test_without_proc_a_directory_is_locked_and_looked_at_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(path: Path) -> Path:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "readlink", missing)

    with owned(tmp_path):
        refuse_vanished(tmp_path)
        with pytest.raises(LockedError, match="holds"):
            StateLock(tmp_path).acquire()
