"""`exporter tap` as a person runs it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from exporter.errors import Exit
from exporter.sources.tap.extension import NAME
from tests.cli.program import exporter


def test_it_is_installed_looked_at_and_removed(own_home: Path) -> None:
    directory = own_home / ".copilot" / "extensions" / NAME
    before = json.loads(exporter("tap", "status", "--json").stdout)
    installed = exporter("tap", "install")
    again = json.loads(exporter("tap", "install", "--json").stdout)
    pointer = json.loads((directory / "tap.json").read_text())
    removed = exporter("tap", "uninstall")

    assert (before["state"], before["directory"]) == ("absent", str(directory))
    assert installed.returncode == Exit.DONE
    assert "--experimental" in installed.stdout
    assert (again["state"], again["written"]) == ("installed", False)
    assert pointer["state_dir"] == str(own_home / "state" / "exporter")
    assert removed.returncode == Exit.DONE
    assert not directory.exists()


def test_what_is_not_ours_is_left_and_said(own_home: Path) -> None:
    directory = own_home / ".copilot" / "extensions" / NAME
    directory.mkdir(parents=True)
    (directory / "extension.mjs").write_text("theirs")
    answer = exporter("tap", "install")

    assert answer.returncode == Exit.USAGE
    assert "not ours" in answer.stderr and "hint:" in answer.stderr
    assert (directory / "extension.mjs").read_text() == "theirs"


def test_a_project_is_where_git_says(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outside = exporter("tap", "install", "--project")
    (tmp_path / "repository" / "below").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", "repository"], check=True, timeout=20)
    monkeypatch.chdir(tmp_path / "repository" / "below")
    inside = exporter("tap", "install", "--project")
    users = exporter("tap", "install")

    assert outside.returncode == Exit.USAGE
    assert inside.returncode == Exit.DONE
    assert (tmp_path / "repository" / ".github" / "extensions" / NAME / "extension.mjs").exists()
    assert "In this project" in users.stdout
    assert os.sep + "below" not in inside.stdout
