"""The contract of the store's port on SQLite (file, memory) and PostgreSQL; SQLite's errors as those of the port."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import ClassVar

import pytest

from exporter.missioncontrol.store.port import Store, StoreBusy, StoreDamaged, StoreFull
from exporter.missioncontrol.store.postgresql.store import PostgresStore
from exporter.missioncontrol.store.sqlite.database import connect
from exporter.missioncontrol.store.sqlite.store import SqliteStore
from tests.missioncontrol.store_contract import OpenStore, StoreContract, event, known, register, store_events


class TestSqliteFile(StoreContract):
    @pytest.fixture
    def open_store(self, store_path: Path) -> OpenStore:
        def opened() -> Store:
            return SqliteStore(store_path)

        return opened


class TestPostgres(StoreContract):
    keeps_epoch: ClassVar[bool] = True

    @pytest.fixture
    def open_store(self, postgres_url: str) -> OpenStore:
        def opened() -> Store:
            return PostgresStore(postgres_url)

        return opened


class TestSqliteInMemory(StoreContract):
    outlives: ClassVar[bool] = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        def opened() -> Store:
            return SqliteStore(":memory:")

        return opened


@pytest.mark.parametrize("count", [1, 333, 334, 5000])
@pytest.mark.parametrize("values_max", [999, 32_766])
def test_every_row_is_there_whatever_a_statement_may_hold(values_max: int, count: int) -> None:
    with closing(connect(None)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, values_max)
        database.execute("CREATE TABLE birds (n INTEGER PRIMARY KEY, name, wings)")
        rows = [(n, f"bird {n}", 2) for n in range(count)]

        database.insert("birds", "n, name, wings", rows)
        database.insert("birds", "n, name, wings", rows, unless_there=True)

        assert database.execute("SELECT * FROM birds ORDER BY n").fetchall() == rows


def test_a_store_that_another_program_writes_is_busy(store_path: Path) -> None:
    with SqliteStore(store_path) as store, closing(sqlite3.connect(store_path, isolation_level=None)) as other:
        store.do(lambda database: database.execute("PRAGMA busy_timeout = 1"))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="locked"):
            store.do(register("s"))
        other.execute("ROLLBACK")

        store.do(register("s"))

        assert store.do(known) == ["s"]


def test_a_disk_that_is_full_is_an_error_that_changes_nothing(store_path: Path) -> None:
    with SqliteStore(store_path) as store:
        store.do(register("s"))
        store.do(lambda database: database.execute("PRAGMA max_page_count = 40").fetchall())
        with pytest.raises(StoreFull):
            store.do(store_events("s", *[event(f"e{number}", "x" * 9000) for number in range(200)]))

        store.do(store_events("s", event("small")))

        assert store.do(lambda database: database.execute("SELECT id FROM events").fetchall()) == [("small",)]


def test_a_file_that_is_damaged_while_it_is_open_is_said_to_be(store_path: Path) -> None:
    with SqliteStore(store_path) as store:
        store.do(register("s"))
        store.do(store_events("s", *[event(f"e{number}", "x" * 9000) for number in range(200)]))
        assert store.erase().result(10)
        damaged = bytearray(store_path.read_bytes())
        damaged[16384:] = b"\xff" * (len(damaged) - 16384)
        store_path.write_bytes(damaged)

        with pytest.raises(StoreDamaged):
            store.read_now(lambda database: database.execute("SELECT sum(length(body)) FROM events").fetchall())
