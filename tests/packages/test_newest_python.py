"""The tests of units, `make quick`, on the newest Python that everything has wheels for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.drift.repository import ROOT, text
from tests.packages.newest_python import NEWEST, environment

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(
        shutil.which("apt-get") is None, reason="Debian's development suite is where this Python comes from"
    ),
]


def test_the_tests_of_units_pass_on_the_newest_python(tmp_path: Path) -> None:
    python = environment(tmp_path)
    [units] = re.findall(r"(?m)^UNITS +:= (.+)$", text("Makefile"))
    [marks] = re.findall(r'(?ms)^quick:.*?-m ("[^"]+")', text("Makefile"))
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout

    answer = subprocess.run(
        [python, "-m", "pytest", "-n", "3", "-p", "no:cacheprovider", "-m", marks.strip('"')]
        + [f"tests/{one}" for one in units.split()],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert version.startswith(f"Python {NEWEST}.")
    print(version, answer.stdout[-300:])
    assert answer.returncode == 0, answer.stdout[-5000:] + answer.stderr[-2000:]
