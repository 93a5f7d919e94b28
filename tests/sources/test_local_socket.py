"""Where a Unix socket may be, so that no other user can be taken for us."""

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from exporter.errors import StateError
from exporter.sources.local_socket import listen, socket_path


@pytest.fixture
def deep_state(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state directory with a path too long for a socket, and a directory of temporary files for this test."""
    state, shared = own_home / ("deep-" * 30), own_home / "tmp"
    state.mkdir()
    shared.mkdir(mode=0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    yield state


def test_a_long_path_moves_to_the_runtime_directory(deep_state: Path, own_home: Path) -> None:
    assert socket_path(deep_state, "a.sock").parent == own_home / "run"


@pytest.mark.parametrize("runtime", ["", "missing", "open to others", "a link"])
def test_without_a_private_runtime_directory_there_is_one_of_our_own(
    deep_state: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    given = own_home / "given"
    if runtime == "open to others":
        given.mkdir()
        given.chmod(0o770)
    elif runtime == "a link":
        given.symlink_to(own_home / "run")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(given) if runtime else "")

    path = socket_path(deep_state, "a.sock")

    assert path.parent.parent == own_home / "tmp"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert socket_path(deep_state, "a.sock") == path


@pytest.mark.parametrize("made", ["open to others", "a link", "a file"])
def test_what_somebody_made_under_that_name_is_not_used(
    deep_state: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    place = own_home / "tmp" / f"exporter-{os.getuid()}"
    if made == "open to others":
        place.mkdir()
        place.chmod(0o777)
    elif made == "a link":
        place.symlink_to(own_home / "run")
    else:
        place.touch()

    with pytest.raises(StateError, match="not a directory of this user alone") as raised:
        socket_path(deep_state, "a.sock")

    assert "XDG_RUNTIME_DIR" in raised.value.hint


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to give a directory away")
def test_a_directory_of_another_user_is_not_used(
    deep_state: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    place = own_home / "tmp" / f"exporter-{os.getuid()}"
    place.mkdir(mode=0o700)
    os.chown(place, 65534, 65534)

    with pytest.raises(StateError):
        socket_path(deep_state, "a.sock")


def test_a_socket_is_for_its_user_alone_from_the_first_moment_on(own_home: Path) -> None:
    with listen(own_home / "a.sock"):
        assert stat.S_IMODE((own_home / "a.sock").stat().st_mode) == 0o600


def test_a_socket_that_cannot_be_made_leaves_the_mask_of_new_files_as_it_was(own_home: Path) -> None:
    before = os.umask(0o022)
    try:
        with pytest.raises(OSError, match="No such file"):
            listen(own_home / "missing" / "a.sock")

        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
