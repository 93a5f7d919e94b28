"""What a person installs: the same bytes each time, the four packages with their data, and a command that starts."""

import hashlib
import os
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from exporter.version import VERSION
from tests.drift.repository import PACKAGES, ROOT, files
from tests.packages.building import build, copy_of_the_tree, install_alone, locked_site

pytestmark = pytest.mark.slow

SHARE = "deploy/packages/share"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel once, with the locked build backend."""
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_two_builds_of_the_same_files_are_the_same_bytes(kind: str, tmp_path: Path) -> None:
    copy = copy_of_the_tree(tmp_path / "copy")
    here = build(kind, tmp_path / "here", TZ="UTC")
    there = build(kind, tmp_path / "there", root=copy, TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="7")

    assert here.name == there.name
    assert _digest(here) == _digest(there)
    copy.joinpath("exporter/version.py").write_text('VERSION = "0.1.0"\n# changed\n')
    assert _digest(build(kind, tmp_path / "changed", root=copy)) != _digest(here)


def test_the_wheel_of_the_source_archive_is_the_wheel(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())

    assert _digest(build("wheel", tmp_path / "wheel", root=source)) == _digest(wheel)


def test_the_wheel_holds_the_packages_and_their_data_and_nothing_else(wheel: Path) -> None:
    metadata, share = f"session_exporter-{VERSION}.dist-info", f"session_exporter-{VERSION}.data/data/share"
    held = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(f"{metadata}/")}
    tracked = {str(path.relative_to(ROOT)) for path in files()}

    packages = {name for name in tracked if name.split("/")[0] in PACKAGES}
    shared = {name.replace(SHARE, share, 1) for name in tracked if name.startswith(f"{SHARE}/")}
    assert held == packages | shared
    assert len(shared) == 4


def test_the_licence_is_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert f"session_exporter-{VERSION}.dist-info/licenses/LICENSE" in names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs the wheel alone, into an environment of its own, without any index."""
    environment = tmp_path_factory.mktemp("installed")
    install_alone(wheel, environment)
    return environment


def test_the_installed_command_tells_its_version_with_no_dependency_there(installed: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        [installed / "bin" / "exporter", "--version"], cwd=tmp_path, check=False, capture_output=True, text=True
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert VERSION in answer.stdout


def test_the_installed_command_works_with_the_locked_dependencies(installed: Path, tmp_path: Path) -> None:
    with_dependencies = {**os.environ, "PYTHONPATH": str(locked_site())}
    answer = subprocess.run(
        [installed / "bin" / "exporter", "config", "example"],
        cwd=tmp_path,
        check=False,
        env=with_dependencies,
        capture_output=True,
        text=True,
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert "[mission_control]" in answer.stdout


def test_a_config_module_beside_the_user_is_not_taken_for_ours(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text("raise SystemExit('the wrong config')\n", encoding="utf-8")
    beside = {**os.environ, "PYTHONPATH": os.pathsep.join([".", str(locked_site())])}
    command: list[str | Path] = [installed / "bin" / "exporter", "config", "example"]
    answer = subprocess.run(command, cwd=tmp_path, check=False, env=beside, capture_output=True, text=True)

    assert (answer.returncode, answer.stderr) == (0, "")


def _digest(path: Path) -> str:
    """Return the digest of a file: pytest would compare different megabytes for minutes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
