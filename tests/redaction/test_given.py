"""Files of rules are regular files of their own directory, and no pipe makes anybody wait."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from redaction.allowlist import audited_digests
from redaction.errors import RuleError
from redaction.given import read_given
from redaction.known import from_files
from redaction.rules.rule_set import all_rules
from tests.shared import CACHE

pytestmark = pytest.mark.timeout(20)


def link_out(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_text('version = "1"\nformat = []\n')
    path.symlink_to(path.parent.parent / "elsewhere")


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.symlink_to(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir()
    return tmp_path / "rules" / "mine"


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, link_out, device, loop, listening])
def test_what_is_no_file_of_its_directory_is_refused(path: Path, make: Callable[[Path], None]) -> None:
    make(path)
    plugin = path.rename(path.with_name("mine.py")) if make is os.mkfifo else path

    with pytest.raises(OSError):
        read_given(path)
    with pytest.raises(RuleError, match="mine"):
        all_rules([path], [], drop_opaque=False, cache_dir=CACHE)
    with pytest.raises(RuleError, match="mine"):
        all_rules([], [plugin], drop_opaque=False, cache_dir=CACHE)
    with pytest.raises(RuleError, match="mine"):
        audited_digests([path])


def test_a_link_to_a_file_below_is_that_file(path: Path) -> None:
    path.with_name("..data").mkdir()
    (path.with_name("..data") / "mine").write_bytes(b"content")
    path.symlink_to("..data/mine")

    assert read_given(path) == b"content"


def test_known_values_are_read_wherever_a_link_leads_and_from_no_pipe(path: Path) -> None:
    (path.parent.parent / "elsewhere").write_text("first-17-value\n")
    path.symlink_to(path.parent.parent / "elsewhere")
    os.mkfifo(path.with_name("pipe"))

    assert from_files([path.with_name("pipe"), path]) == ["first-17-value"]
