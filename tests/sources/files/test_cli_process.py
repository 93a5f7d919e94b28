"""The environment of the process that holds a session is read; whatever cannot be read is nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from exporter.sources.files.cli_process import environment_of, lock_holders

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
