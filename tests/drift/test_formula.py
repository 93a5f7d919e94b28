"""The formula of Homebrew names files that are there, and the version of the program."""

import re
import shutil
import subprocess

import pytest

from exporter.version import VERSION
from tests.drift.repository import ROOT, text

FORMULA = "deploy/homebrew/session-exporter.rb"


def test_the_files_and_the_version_of_the_formula_are_those_of_the_tree() -> None:
    named = re.findall(r'"(deploy/[^"]+)"', text(FORMULA))

    assert len(named) == 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert f"session_exporter-{VERSION}.tar.gz" in text(FORMULA)


@pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not here")
def test_ruby_can_read_the_formula() -> None:
    assert subprocess.run(["ruby", "-c", ROOT / FORMULA], capture_output=True, text=True, check=False).returncode == 0
