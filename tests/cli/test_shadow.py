"""A namesake of ours in the working directory is never taken for us."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import ROOT, TIMEOUT_SECONDS, environment

NAMESAKES = ("config.py", "redaction.py", "otel.py")
# What the console script of an installed package consists of.
CONSOLE_SCRIPT = "import sys\nfrom exporter.__main__ import main\nsys.exit(main())\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A working directory whose modules, if imported, end the program at once."""
    directory = tmp_path / "hostile"
    directory.mkdir()
    for name in NAMESAKES:
        directory.joinpath(name).write_text(f"raise SystemExit('a foreign {name} was imported')\n")
    return directory


def run_in(directory: Path, *command: str, path: str = f".:{ROOT}") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment(PYTHONPATH=path),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def test_the_namesakes_are_in_the_way(hostile: Path) -> None:
    assert "a foreign config.py was imported" in run_in(hostile, "-c", "import config").stderr


@pytest.mark.parametrize("arguments", [["config", "show"], ["config", "example"], ["--version"]])
@pytest.mark.parametrize("started_as", ["module", "console script"])
def test_namesakes_in_the_working_directory_are_not_imported(
    hostile: Path, tmp_path: Path, started_as: str, arguments: list[str]
) -> None:
    script = tmp_path / "exporter-script"
    script.write_text(CONSOLE_SCRIPT)
    start = ["-m", "exporter"] if started_as == "module" else [str(script)]

    answer = run_in(hostile, *start, *arguments)

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout


@pytest.mark.parametrize("path", [".", ""])
def test_a_package_of_ours_beside_a_namesake_of_itself_stays_ours(hostile: Path, path: str) -> None:
    script = hostile.parent / "exporter-script"
    script.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{CONSOLE_SCRIPT}")
    hostile.joinpath("exporter.py").write_text("raise SystemExit('a foreign exporter.py was imported')\n")

    answer = run_in(hostile, str(script), "config", "show", path=path)

    assert (answer.returncode, answer.stderr) == (0, "")
