"""What `make` says on a machine that lacks something, and what its targets promise."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.drift.repository import ROOT, text

TOO_OLD = 'case "$*" in -V) echo "Python 3.9.2";; *) exit 1;; esac'
WITHOUT_VENV = 'case "$*" in *ensurepip*) exit 1;; esac'


def _make(directory: Path, python: str) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, directory)
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "test", f"PYTHON={python}"]
    return subprocess.run(command, cwd=directory, env=environ, check=False, capture_output=True, text=True)


def _python(directory: Path, script: str) -> str:
    program = directory / "made-up-python"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize(
    ("script", "said"),
    [(TOO_OLD, "Python 3.11 or newer is needed"), (WITHOUT_VENV, "apt-get install python3-venv")],
)
def test_a_python_that_will_not_do_is_named_with_the_remedy(tmp_path: Path, script: str, said: str) -> None:
    answer = _make(tmp_path, _python(tmp_path, script))

    assert answer.returncode != 0
    assert said in answer.stderr
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    answer = _make(tmp_path, "no-such-python")

    assert answer.returncode != 0
    assert "no-such-python is not here" in answer.stderr


def test_ci_runs_everything_but_what_is_long() -> None:
    assert re.findall(r"(?m)^run \d+ (\w+)$", text(".ci/run")) == [
        "check",
        "test",
        "newest",
        "backends",
        "real",
        "fleet",
    ]


def test_ci_ends_within_seventy_minutes() -> None:
    minutes = [int(found) for found in re.findall(r"(?m)^run (\d+) \w+$", text(".ci/run"))]

    assert 0 < sum(minutes) <= 70
