"""The key of the markers: made once and whole, and no weaker one is taken for it."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from exporter.errors import StateError
from exporter.state.redaction_key import BYTES, NAME, existing_key, redaction_key


def test_it_is_made_once_for_this_user_only(tmp_path: Path) -> None:
    before = existing_key(tmp_path)

    made = redaction_key(tmp_path)

    assert before is None
    assert made is not None and len(made) == BYTES
    assert made == redaction_key(tmp_path) == existing_key(tmp_path)
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [(NAME, 0o600)]


def test_processes_that_make_it_together_get_the_same(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as processes:
        keys = set(processes.map(redaction_key, [tmp_path] * 16))

    assert len(keys) == 1
    assert None not in keys


@pytest.mark.parametrize("size", [1, BYTES - 1])
def test_a_short_one_is_refused_and_left_alone(tmp_path: Path, size: int) -> None:
    (tmp_path / NAME).write_bytes(bytes(size))

    for read in (redaction_key, existing_key):
        with pytest.raises(StateError, match=f"has {size} of {BYTES} bytes") as raised:
            read(tmp_path)
        assert "another tag" in raised.value.hint

    assert (tmp_path / NAME).read_bytes() == bytes(size)


def test_an_empty_one_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"")

    assert len(redaction_key(tmp_path) or b"") == BYTES


def test_where_nothing_may_be_written_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert redaction_key(tmp_path / "none") is None
    assert redaction_key(tmp_path / "file") is None
