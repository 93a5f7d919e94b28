"""The key of the markers: made once and whole, and no weaker one is taken for it."""

import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from exporter.core.notice import Level, Notice
from exporter.state.redaction_key import BYTES, NAME, existing_key, redaction_key


def nothing_aside(notice: Notice) -> None:
    pytest.fail(notice.message)


def test_it_is_made_once_for_this_user_only(tmp_path: Path) -> None:
    before = existing_key(tmp_path)

    made = redaction_key(tmp_path, nothing_aside)

    assert before is None
    assert made is not None and len(made) == BYTES
    assert made == redaction_key(tmp_path, nothing_aside) == existing_key(tmp_path)
    assert [(path.name, path.stat().st_mode & 0o777) for path in tmp_path.iterdir()] == [(NAME, 0o600)]


def test_processes_that_make_it_together_get_the_same(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4) as processes:
        keys = set(processes.map(redaction_key, [tmp_path] * 16, [print] * 16))

    assert len(keys) == 1
    assert None not in keys


WHOLE: Final = redaction_key(Path(tempfile.mkdtemp()), print) or b""
DAMAGED: Final = {
    "empty": b"",
    "short": WHOLE[:31],
    "half of its checksum": WHOLE[:36],
    "zeroed": bytes(BYTES),
    "zeroed, of an earlier version": bytes(32),
    "zeroed from its middle on": WHOLE[:16] + bytes(24),
    "half zeroed, of an earlier version": WHOLE[:16] + bytes(16),
    "one bit": bytes([WHOLE[0] ^ 1]) + WHOLE[1:],
    "longer": WHOLE + b"\0",
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_one_is_set_aside_and_made_anew(tmp_path: Path, damage: str) -> None:
    told: list[Notice] = []
    (tmp_path / NAME).write_bytes(DAMAGED[damage])

    read_only = existing_key(tmp_path)
    key = redaction_key(tmp_path, told.append)

    assert read_only is None
    assert key is not None and len(key) == BYTES and key not in (DAMAGED[damage], WHOLE)
    assert key == existing_key(tmp_path) == redaction_key(tmp_path, told.append)
    [notice] = told
    assert notice.level == Level.ERROR
    assert (tmp_path / str(notice.fields["as"])).read_bytes() == DAMAGED[damage]


def test_one_of_an_earlier_version_is_taken_as_it_is(tmp_path: Path) -> None:
    before = WHOLE[:32]
    (tmp_path / NAME).write_bytes(before)

    assert redaction_key(tmp_path, nothing_aside) == existing_key(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


def test_processes_that_find_a_damaged_one_together_get_the_same_new_one(tmp_path: Path) -> None:
    for _ in range(8):
        (tmp_path / NAME).write_bytes(bytes(BYTES))
        with ProcessPoolExecutor(4) as processes:
            keys = set(processes.map(redaction_key, [tmp_path] * 16, [print] * 16))

        assert len(keys) == 1
        assert None not in keys
    assert len(list(tmp_path.glob("*.corrupt-*"))) == 8


def test_where_nothing_may_be_written_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert redaction_key(tmp_path / "none", nothing_aside) is None
    assert redaction_key(tmp_path / "file", nothing_aside) is None
