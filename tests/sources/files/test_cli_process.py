"""The process that holds a session: its environment, and whether it runs, as far as that can be told from here."""

import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from exporter.sources.files.cli_process import Holders, Liveness, environment_of, lock_holders

on_host = pytest.mark.skipif(
    sys.platform != "linux" or str(Path("/proc/self/ns/pid").readlink()) != "pid:[4026531836]",
    reason="is in a container",
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def answer(process: "subprocess.Popen[bytes]") -> None:
    """Wait until the process runs what it was started for: before that its environment is not yet there."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()


def test_lock_files_name_their_holders(tmp_path: Path) -> None:
    for name in ("one/inuse.12.lock", "one/events.jsonl", "two/inuse.7.lock", "two/inuse.x.lock", "inuse.9.lock"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert sorted(lock_holders(tmp_path)) == [7, 12]
    assert list(lock_holders(tmp_path / "not-here")) == []


@linux
def test_the_environment_of_a_process_of_ours_is_read() -> None:
    environment = {"A": "1", "B": "two=2\nlines", "PATH": os.environ["PATH"]}
    with subprocess.Popen(["cat"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        answer(process)
        read = environment_of(process.pid)

    assert read == environment


@linux
@pytest.mark.parametrize("pid", [2**22 + 1, 0])
def test_a_process_that_is_not_there_has_no_environment(pid: int) -> None:
    assert environment_of(pid) == {}


@linux
@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs a second user")
def test_a_process_of_another_user_is_left_alone() -> None:
    with subprocess.Popen(
        ["cat"], env={"A": "1", "PATH": os.environ["PATH"]}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=65534
    ) as process:
        answer(process)
        read = environment_of(process.pid)

    assert read == {}


def lock(directory: Path, process: int, age_seconds: float = 0) -> Path:
    """A session that a process has open, since so long ago."""
    directory.mkdir(exist_ok=True)
    path = directory / f"inuse.{process}.lock"
    path.write_text(str(process))
    os.utime(path, (time.time() - age_seconds,) * 2)
    return directory


@contextmanager
def process() -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(["sleep", "60"]) as started:
        yield started
        started.kill()


def told_beside(*sessions: Path) -> list[str]:
    """What is known of sessions by a process that is not of the holder's tree."""
    script = """
import pathlib, sys
from exporter.sources.files.cli_process import Holders
holders = Holders()
print(*(holders.of(pathlib.Path(one)).value for one in sys.argv[1:]))
"""
    line = [sys.executable, "-c", script, *map(str, sessions)]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()


def test_a_process_that_began_after_the_lock_proves_nothing(tmp_path: Path) -> None:
    """It may have the number of the holder, or the clock was set: a session is not over, nor does it live for ever."""
    with process() as one:
        now, before = lock(tmp_path / "now", one.pid), lock(tmp_path / "before", one.pid, age_seconds=86_400)

        assert told_beside(tmp_path, now, before) == ["closed", "running", "unknown"]
        lock(before, one.pid)
        assert told_beside(before) == ["running"]


@linux
def test_a_process_that_ended_and_was_not_waited_for_is_gone(tmp_path: Path) -> None:
    started = subprocess.Popen(["sleep", "60"])
    session = lock(tmp_path / "one", started.pid)
    assert told_beside(session) == ["running"]
    started.kill()
    stat = Path(f"/proc/{started.pid}/stat")
    while ") Z" not in stat.read_text():
        time.sleep(0.01)

    assert told_beside(session) == ["gone"]
    started.wait()
    assert told_beside(session) == ["gone"]


@linux
def test_a_process_of_the_own_tree_proves_nothing(tmp_path: Path) -> None:
    with process() as child:
        sessions = [lock(tmp_path / str(one), one) for one in (child.pid, os.getpid())]
        assert [Holders().of(one) for one in sessions] == [Liveness.UNKNOWN] * 2


@on_host
@pytest.mark.parametrize("number", [1, 2])
def test_what_the_host_runs_itself_is_no_holder(tmp_path: Path, number: int) -> None:
    """The CLI of a container had the number of a process that every host has, the first one or a kernel thread."""
    [boot] = re.findall(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
    session = lock(tmp_path / "one", number, age_seconds=time.time() - int(boot) - 5)

    assert Holders().of(session) in (Liveness.GONE, Liveness.UNKNOWN)  # a container of now may have the number too
    hold = session / f"inuse.{number}.hold"
    hold.touch()
    os.utime(hold, (time.time() - 60,) * 2)
    assert Holders().of(session) is Liveness.GONE


@linux
def test_a_file_that_the_kernel_holds_counts_more_than_the_number(tmp_path: Path) -> None:
    with process() as one:
        session = lock(tmp_path / "one", one.pid)
        hold = session / f"inuse.{one.pid}.hold"
        hold.touch()
        os.utime(hold, (time.time() - 60,) * 2)
        free = told_beside(session)
        with hold.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lock(session, one.pid, age_seconds=86_400)
            held = told_beside(session)

    assert (free, held) == (["gone"], ["running"])


@linux
def test_a_holder_in_a_container_is_seen_from_its_host(tmp_path: Path) -> None:
    script = "echo 31337 > /proc/sys/kernel/ns_last_pid; sleep 60 & echo $!; wait"
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with subprocess.Popen([*alone, "bash", "-c", script], stdout=subprocess.PIPE) as outside:
        assert outside.stdout is not None
        number = int(outside.stdout.readline())
        session = lock(tmp_path / "one", number)
        lives = Holders().of(session)
        lock(session, number, age_seconds=86_400)
        later = Holders().of(session)
        outside.kill()

    # In a container of our own nobody can tell.
    assert (lives, later) in ((Liveness.RUNNING, Liveness.UNKNOWN), (Liveness.UNKNOWN, Liveness.UNKNOWN))


@linux
def test_where_no_holder_was_seen_absence_proves_nothing(tmp_path: Path) -> None:
    """Asked in a namespace of its own, first alone, then with a process of its own tree, then beside a holder."""
    ended = lock(tmp_path / "ended", 4_194_300)
    script = f"""
import os, pathlib, signal, subprocess, sys, time
from exporter.sources.files.cli_process import Holders
remembered, directory, holder = [], pathlib.Path({str(tmp_path)!r}), int(sys.argv[1])
holders = Holders(lambda: remembered[0] if remembered else None, remembered.append)
def locked(name, process):
    (directory / name).mkdir()
    (directory / name / f"inuse.{{process}}.lock").touch()
    return holders.of(directory / name).value
print(holders.of(directory / "ended").value)
with subprocess.Popen(["sleep", "60"]) as own:
    print(locked("own", own.pid), len(remembered), holders.of(directory / "ended").value)
    own.kill()
print(locked("runs", holder), holders.of(directory / "ended").value)
os.kill(holder, signal.SIGKILL)
stat = pathlib.Path(f"/proc/{{holder}}/stat")
while stat.exists() and ") Z" not in stat.read_text():
    time.sleep(0.01)
for known in remembered[0], "before the boot":
    print(Holders(lambda: known).of(directory / "runs").value)
"""
    alone = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"]
    beside = ["sh", "-c", 'sleep 60 >&- 2>&- & "$0" -c "$1" $!; exit $?', sys.executable, script]
    said = subprocess.run([*alone, *beside], capture_output=True, text=True, check=True).stdout

    assert ended.is_dir()
    assert said.split() == ["unknown", "unknown", "0", "unknown", "running", "gone", "gone", "unknown"]


@linux
@pytest.mark.parametrize(("age_seconds", "liveness"), [(60, Liveness.GONE), (0, None)])
def test_a_file_that_the_kernel_holds_no_more_proves_an_end(
    tmp_path: Path, age_seconds: float, liveness: Liveness | None
) -> None:
    session = lock(tmp_path / "one", 4_194_300)
    hold = session / "inuse.4194300.hold"
    with hold.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.utime(hold, (time.time() - age_seconds,) * 2)
        held = Holders().of(session)

    assert held is (Liveness.RUNNING if liveness else Holders().of(session))
    assert liveness is None or Holders().of(session) is liveness
