"""The documented ways to install, with everything that is needed from a package index: pip, pipx and uvx."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from exporter.version import VERSION
from tests.packages.building import PIP, build, copy_of_the_tree

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def run(
    *command: str | Path, expected_exit: int = 0, cwd: Path | None = None, places: Mapping[str, str] | None = None
) -> str:
    answer = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(places or {})}, capture_output=True, text=True, check=False
    )
    assert answer.returncode == expected_exit, answer.stdout + answer.stderr
    return answer.stdout + answer.stderr


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pipx and uv; returns its programs."""
    environment = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", environment)
    run(*PIP, "--python", environment / "bin/python", "install", "--quiet", "pipx", "uv")
    return environment / "bin"


def test_pip_installs_this_directory_with_its_extra(tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "env")
    run(tmp_path / "env/bin/pip", "install", "--quiet", ".[ahp]", cwd=copy_of_the_tree(tmp_path / "copy"))
    bin_directory = tmp_path / "env/bin"

    assert VERSION in run(bin_directory / "exporter", "--version")
    assert "[mission_control]" in run(bin_directory / "exporter", "config", "example")
    assert run(bin_directory / "exporter", "redact", "test", "/dev/null") == ""
    run(bin_directory / "python", "-c", "import websockets")
    assert (tmp_path / "env/share/man/man1/exporter.1").is_file()
    assert (tmp_path / "env/share/bash-completion/completions/exporter").is_file()


def test_pipx_makes_a_command_that_can_be_a_service(tools: Path, tmp_path: Path) -> None:
    places = {
        "PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_MAN_DIR": str(tmp_path / "man"), "PIPX_DEFAULT_PYTHON": sys.executable,
    }  # fmt: skip
    run(tools / "pipx", "install", build("wheel", tmp_path), places=places)

    assert VERSION in run(tmp_path / "bin/exporter", "--version")
    assert "ExecStart=" in run(tmp_path / "bin/exporter", "service", "install", "--dry-run")
    assert (tmp_path / "man/man1/exporter.1").is_file()


def test_uvx_runs_it_and_a_service_from_there_is_refused(tools: Path, tmp_path: Path) -> None:
    uvx: list[str | Path] = [tools / "uvx", "--python", sys.executable, "--from", build("wheel", tmp_path), "exporter"]

    assert VERSION in run(*uvx, "--version")
    assert "uv tool install" in run(*uvx, "service", "install", "--dry-run", expected_exit=2)
