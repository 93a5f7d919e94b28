"""From the wheel to a service that is killed ten times: what is installed is what systemd would run."""

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packages.building import build, install_with_locked
from tests.program.driver import Machine, new_machine
from tests.program.restarts import command_of, killed_and_started_again, notify_socket

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose program is the wheel, in an environment of its own, and not this tree."""
    install_with_locked(build("wheel", tmp_path), tmp_path / "env")
    with new_machine() as machine:
        machine.program = [str(tmp_path / "env/bin/exporter")]
        del machine.environment["PYTHONPATH"]
        yield machine.with_floor()


def test_a_wheel_as_a_service_loses_nothing_when_it_is_killed_under_load(installed: Machine) -> None:
    [file] = installed.json("service", "install", "--dry-run")["files"]
    [line] = [line for line in file["content"].splitlines() if line.startswith("ExecStart=")]
    words = shlex.split(line.partition("=")[2])
    names = ("PATH", "LANG", "HOME", *(name for name in installed.environment if name.startswith("XDG_")))
    environment = {name: installed.environment[name] for name in names}

    assert not Path(file["path"]).exists()
    assert words[0] == installed.program[0]
    with notify_socket(installed) as notify:
        environment["NOTIFY_SOCKET"] = notify.getsockname()
        seconds = killed_and_started_again(installed, lambda: command_of(installed, environment, words), notify)
    print(f"ready after {min(seconds):.2f} to {max(seconds):.2f} s")
