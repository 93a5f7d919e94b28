"""A database is private, at its newest version, and set aside only when what it held is lost."""

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from exporter.errors import StateError
from exporter.state.database import Schema, is_damage, open_database, set_aside
from tests.state.damage import DAMAGE
from tests.state.full_disk import full_disk

ONE: Final = Schema(2, "CREATE TABLE sinks (x); INSERT INTO sinks VALUES ('first')", "NORMAL")


def opened(path: Path) -> tuple[list[tuple[object, ...]], Path | None]:
    """The rows of a database, and where the one before it is."""
    connection, aside = open_database(path, ONE)
    with closing(connection):
        return connection.execute("SELECT * FROM sinks").fetchall(), aside


def test_a_new_one_is_made_for_this_user_only(tmp_path: Path) -> None:
    connection, aside = open_database(tmp_path / "x.db", replace(ONE, synchronous="FULL"))
    with closing(connection):
        connection.execute("INSERT INTO sinks VALUES (1)")
        modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}

        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert aside is None
    assert modes == {0o600}


def test_the_tables_are_created_once(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    assert opened(path) == ([("first",)], None)
    assert opened(path) == ([("first",)], None)


def test_tables_that_cannot_be_created_leave_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with pytest.raises(StateError):
        open_database(path, Schema(2, f"{ONE.script}; this is no SQL", "NORMAL"))

    assert opened(path) == ([("first",)], None)


def test_one_of_an_earlier_version_is_refused_by_name_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(StateError, match="an earlier version of this program: schema 1, not 2") as raised:
        opened(path)

    assert raised.value.hint
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.corrupt-*"))


def test_one_of_a_newer_version_is_refused_by_name_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    opened(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 3")
        connection.commit()
    before = path.read_bytes()

    with pytest.raises(StateError, match="a newer version of this program: schema 3, not 2") as raised:
        opened(path)

    assert raised.value.exit == 3
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.corrupt-*"))


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_one_that_cannot_be_read_is_set_aside_with_its_bytes(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    path = tmp_path / "x.db"
    connection, _ = open_database(path, ONE)
    with closing(connection):
        connection.executemany("INSERT INTO sinks VALUES (?)", [(str(number) * 40,) for number in range(900)])
    damage(path)
    before = path.read_bytes()

    rows, aside = opened(path)

    assert rows == [("first",)]
    assert aside is not None
    assert aside.parent == tmp_path
    # SQLite itself notes in the header how a database is read, before it looks further.
    assert aside.read_bytes()[100:] == before[100:]
    assert opened(path) == ([("first",)], None)


def test_damage_on_damage_keeps_every_one(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    for number in range(3):
        path.write_bytes(b"rubbish %d" % number * 500)
        opened(path)

    assert len({aside.read_bytes() for aside in tmp_path.glob("x.db.corrupt-*")}) == 3


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").touch()

    assert opened(tmp_path / "x.db") == ([("first",)], None)


def test_nothing_is_set_aside_where_nothing_is(tmp_path: Path) -> None:
    assert set_aside(tmp_path / "x.db") is None


def test_a_healthy_one_on_a_full_disk_stays_where_it_is(tmp_path: Path) -> None:
    with full_disk(tmp_path) as disk:
        opened(disk.path / "x.db")
        disk.fill()
        with pytest.raises(StateError, match=r"x\.db cannot be opened"):
            open_database(disk.path / "x.db", ONE)
        disk.free()

        assert opened(disk.path / "x.db") == ([("first",)], None)


def test_a_directory_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="cannot be opened"):
        open_database(tmp_path, ONE)


@pytest.mark.parametrize(
    "text, lost",
    [
        ("database disk image is malformed", True),
        ("file is not a database", True),
        ("no such table: marks", True),
        ("disk I/O error", False),
        ("database or disk is full", False),
        ("database is locked", False),
        ("unable to open database file", False),
        ("attempt to write a readonly database", False),
    ],
)
def test_what_is_lost_and_what_comes_back(text: str, lost: bool) -> None:
    assert is_damage(sqlite3.OperationalError(text)) is lost
