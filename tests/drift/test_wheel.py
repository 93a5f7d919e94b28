"""What a person installs: the four packages with their data, and a command that starts."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from exporter.version import VERSION
from tests.drift.repository import PACKAGES, ROOT, files

pytestmark = pytest.mark.slow


def _site() -> Path:
    """Returns the directory of the locked dependencies; as PYTHONPATH it brings these and none of our packages."""
    (site,) = (
        path for path in map(Path, sys.path) if path.name == "site-packages" and Path(sys.prefix) in path.parents
    )
    return site


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the wheel once, with the locked build backend."""
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)], cwd=ROOT, check=True
    )
    (built,) = directory.glob("*.whl")
    return built


def test_the_wheel_holds_the_packages_and_their_data_and_nothing_else(wheel: Path) -> None:
    metadata = f"session_exporter-{VERSION}.dist-info"
    held = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(f"{metadata}/")}
    tracked = {str(path.relative_to(ROOT)) for path in files() if path.relative_to(ROOT).parts[0] in PACKAGES}

    assert held == tracked


def test_the_licence_is_in_the_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert f"session_exporter-{VERSION}.dist-info/licenses/LICENSE" in names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Installs the wheel alone, into an environment of its own, without any index."""
    environment = tmp_path_factory.mktemp("installed")
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    options = ["--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(wheel)], check=True)
    return environment


def test_the_installed_command_tells_its_version_with_no_dependency_there(installed: Path, tmp_path: Path) -> None:
    answer = subprocess.run(
        [installed / "bin" / "exporter", "--version"], cwd=tmp_path, check=False, capture_output=True, text=True
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert VERSION in answer.stdout


def test_the_installed_command_works_with_the_locked_dependencies(installed: Path, tmp_path: Path) -> None:
    with_dependencies = {**os.environ, "PYTHONPATH": str(_site())}
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
    beside = {**os.environ, "PYTHONPATH": os.pathsep.join([".", str(_site())])}
    command: list[str | Path] = [installed / "bin" / "exporter", "config", "example"]
    answer = subprocess.run(command, cwd=tmp_path, check=False, env=beside, capture_output=True, text=True)

    assert (answer.returncode, answer.stderr) == (0, "")
