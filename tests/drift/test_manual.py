"""The manual page and the completions are those of the commands, and `man` reads the page."""

import shutil
import subprocess

import pytest

from deploy.packages.manual import SHARE, files, manual
from exporter.cli.registry import COMMANDS
from exporter.errors import Exit


def test_what_is_there_is_what_the_commands_give() -> None:
    there = {str(path.relative_to(SHARE)): path.read_text("utf-8") for path in SHARE.rglob("*") if path.is_file()}

    assert there == files(), "make it again: python -m deploy.packages.manual"


def test_the_manual_page_has_every_command_and_every_exit_status() -> None:
    headings = [line for line in manual().splitlines() if line.startswith(".SS ")]

    for row in COMMANDS:
        assert any(line.startswith(f".SS exporter {row.words}".replace("-", "\\-")) for line in headings), row.words
    assert all(f"\\fB{code:d}\\fR\n" in manual() for code in Exit)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not here")
def test_the_manual_page_is_right_for_groff() -> None:
    said = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Kutf8"], input=manual(), capture_output=True, text=True, check=True
    )

    assert said.stderr == ""
    assert "exporter service install" in said.stdout
