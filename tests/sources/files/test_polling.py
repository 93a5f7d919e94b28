"""What only polling has: pauses that follow the cost, and looks that fail for a while."""

from pathlib import Path

import pytest

from exporter.sources.files.polling import differing, is_gone, look, pause_after


def test_a_round_that_takes_long_is_followed_by_a_longer_pause() -> None:
    assert pause_after(0.001, 1.0) == 1.0
    assert pause_after(0.1, 1.0) == pytest.approx(2.0)
    assert pause_after(100.0, 1.0) == 30.0
    assert pause_after(100.0, 60.0) == 60.0


def test_names_that_came_went_or_changed_differ() -> None:
    before = {"same": (1, 2, 3), "grown": (2, 2, 3), "gone": (3, 2, 3), "replaced": (4, 2, 3)}
    now = {"same": (1, 2, 3), "grown": (2, 9, 3), "new": (3, 2, 3), "replaced": (5, 2, 3)}

    assert set(differing(before, now)) == {"grown", "gone", "new", "replaced"}
    assert set(differing(now, now)) == set()


def test_a_look_sees_wanted_files_and_every_directory(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"one\n")
    (tmp_path / "session.db").write_bytes(b"noise")
    (tmp_path / "files").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    assert set(look(str(tmp_path), frozenset({"events.jsonl"})).entries) == {"events.jsonl", "files"}
    assert set(look(str(tmp_path), None).entries) == {"events.jsonl", "session.db", "files", "dangling"}


def test_only_some_errors_mean_that_a_directory_is_gone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "missing", tmp_path / "file", tmp_path / ("x" * 300)):
        with pytest.raises(OSError) as raised:
            look(str(path), None)

        assert is_gone(raised.value)
    for number in (13, 5, 24, 110):  # EACCES, EIO, EMFILE, ETIMEDOUT
        assert not is_gone(OSError(number, ""))
