"""The Debian package and the single file: made of the wheel and of locked packages, then run without either."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from deploy.packages.debian import SETTINGS, STATE, make_package
from deploy.packages.single_file import make_single_file
from deploy.packages.tree import make_tree
from exporter.version import VERSION
from tests.packages.building import build
from tests.program.driver import Machine, new_machine
from tests.program.restarts import command_of, killed_and_started_again, notify_socket

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

HERE: Final = "{}.{}".format(*sys.version_info[:2])
BYTES_MAX: Final = 80_000_000
TIMES: Final = int(os.environ.get("RESTARTS", "2"))
_DEBIANS: Final = Path("/usr/bin/python3")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def tree(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with all that it needs, for the Python of these tests."""
    return make_tree(wheel, tmp_path_factory.mktemp("tree"), python=HERE)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with no way to this tree: its program is what was packed."""
    with new_machine() as machine:
        del machine.environment["PYTHONPATH"]
        yield machine.with_floor()


def restart(machine: Machine, *arguments: str) -> None:
    """Kill and start the machine's program as a service, and look whether anything is lost."""
    with notify_socket(machine) as notify:
        environment = {**machine.environment, "NOTIFY_SOCKET": notify.getsockname()}
        words = [*machine.program, "run", "--config", str(machine.write_settings()), *arguments]
        seconds = killed_and_started_again(
            machine, lambda: command_of(machine, environment, words), notify, times=TIMES
        )
    print(f"{TIMES} times ready after {min(seconds):.2f} to {max(seconds):.2f} s")


def test_the_single_file_runs_alone_and_is_small(tree: Path, machine: Machine) -> None:
    file = make_single_file(tree, machine.root / "exporter.pyz", python=HERE)
    again = make_single_file(tree, machine.root / "again.pyz", python=HERE)
    machine.program = [sys.executable, "-I", str(file)]

    assert file.read_bytes() == again.read_bytes()
    assert file.stat().st_size < BYTES_MAX
    restart(machine)
    print(f"{file.stat().st_size / 1e6:.0f} MB")


def test_the_single_file_for_another_python_says_so(tree: Path, machine: Machine) -> None:
    file = make_single_file(tree, machine.root / "exporter.pyz", python="3.7")

    answer = subprocess.run([sys.executable, file, "--version"], capture_output=True, text=True, check=False)

    assert (answer.returncode, "is for Python 3.7" in answer.stderr) == (1, True)


@pytest.fixture
def unpacked(wheel: Path, tree: Path, machine: Machine) -> Path:
    """The files of the Debian package, unpacked below a directory; nothing is installed."""
    package = make_package(wheel, machine.root, python=HERE, tree=tree)
    subprocess.run(["dpkg-deb", "--extract", package, machine.root / "unpacked"], check=True)
    return machine.root / "unpacked"


def test_the_debian_package_runs_with_debians_python(unpacked: Path, machine: Machine) -> None:
    machine.program = [str(unpacked / "usr/bin/exporter")]
    ask: list[str | Path] = [_DEBIANS, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    if subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip() != HERE:
        machine.program = [sys.executable, "-I", *machine.program]

    assert machine.exporter("--version").stdout.strip() == f"exporter {VERSION}"
    restart(machine, "--state-dir", str(machine.state))


def test_the_units_of_the_debian_package_start_its_program(unpacked: Path) -> None:
    system = (unpacked / "usr/lib/systemd/system/session-exporter.service").read_text()
    own = (unpacked / "usr/lib/systemd/user/session-exporter.service").read_text()

    assert f"ExecStart=/usr/bin/exporter run --config {SETTINGS} --state-dir {STATE}\n" in system
    assert f"ConditionPathExists={SETTINGS}\n" in system.partition("[Service]")[0]
    assert "ExecStart=/usr/bin/exporter run\n" in own
    assert "ReadWritePaths=-%h/.local/state/exporter -%h/.cache/exporter\n" in own
    assert "written by" not in system + own


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_accepts_the_units_and_the_one_of_many_homes_is_exposed_to_little(unpacked: Path) -> None:
    program = unpacked / "usr/bin/exporter"
    for kind, options in (("system", []), ("user", ["--user"])):
        unit = unpacked / f"usr/lib/systemd/{kind}/session-exporter.service"
        unit.write_text(unit.read_text().replace("/usr/bin/exporter", str(program)))
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(unpacked)}
        said = subprocess.run(
            ["systemd-analyze", *options, "verify", unit], env=environment, capture_output=True, text=True, check=False
        )
        assert (said.returncode, said.stderr) == (0, "")
    unit = unpacked / "usr/lib/systemd/system/session-exporter.service"
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=25", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    print(judged.stdout.splitlines()[-1])
    assert judged.returncode == 0, judged.stdout


@pytest.mark.skipif(shutil.which("lintian") is None, reason="lintian is not here")
def test_lintian_finds_nothing_to_say(wheel: Path, tree: Path, tmp_path: Path) -> None:
    package = make_package(wheel, tmp_path, python=HERE, tree=tree)
    (tmp_path / "again").mkdir()
    again = make_package(wheel, tmp_path / "again", python=HERE, tree=tree)

    said = subprocess.run(["lintian", package], capture_output=True, text=True, check=False)

    assert package.read_bytes() == again.read_bytes()
    assert (said.returncode, said.stdout) == (0, "")
