"""What was masked is counted once, whoever was sent it, and reading it changes nothing."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from exporter.core.delivery.position import Mark
from exporter.errors import StateError
from exporter.state.marks import MarkStore
from exporter.state.redaction_counts import Counted, read_masked


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    path = tmp_path / "marks #1?.db"  # an address in which these characters mean something
    with closing(MarkStore(path)) as store:
        for name, events in (("a", {("2026-11-17", "r"): 2}), ("b", {("2026-11-17", "r"): 3, ("2026-11-18", "q"): 1})):
            store.commit("s", store.sink_id(name, name), Mark("1"), [], [], events)
    return path


@pytest.fixture
def receiver(tmp_path: Path) -> Path:
    path = tmp_path / "receiver.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE sessions (id TEXT, report TEXT, masked INTEGER)")
        reports = [
            ("s", '{"redactions":{"2026-11-17":{"r":3}}}', 0),
            ("t", '{"redactions":{"2026-11-18":{"r":5,"odd":"5"},"2026-11-19":7}}', 2),
            ("u", '{"redactions":null}', 4),
            ("v", "no JSON", 0),
            ("w", None, 0),
        ]
        database.executemany("INSERT INTO sessions VALUES (?, ?, ?)", reports)
    return path


def test_what_several_were_sent_counts_once(marks: Path, receiver: Path) -> None:
    counts, on_arrival = read_masked(marks, receiver)

    assert counts == [
        Counted("s", "2026-11-17", "r", 3),
        Counted("s", "2026-11-18", "q", 1),
        Counted("t", "2026-11-18", "r", 5),
    ]
    assert on_arrival == 6


def test_files_that_are_not_there_count_nothing_and_are_not_made(tmp_path: Path) -> None:
    assert read_masked(tmp_path / "a", tmp_path / "b") == ([], 0)
    assert list(tmp_path.iterdir()) == []


def test_it_is_read_beside_one_who_writes(marks: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(marks, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM masked")

        assert len(read_masked(marks, tmp_path / "none").counts) == 2


def test_a_damaged_file_is_said_and_left_where_it_is(marks: Path, tmp_path: Path) -> None:
    marks.write_bytes(b"this is no database" * 1000)

    with pytest.raises(StateError, match="cannot be read"):
        read_masked(marks, tmp_path / "none")
    assert marks.exists()
