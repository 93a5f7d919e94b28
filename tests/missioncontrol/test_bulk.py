"""Inserting many rows with few statements."""

import sqlite3

import pytest

from exporter.missioncontrol.store import bulk_insert


@pytest.mark.parametrize("count", [1, 333, 334, 5000])
@pytest.mark.parametrize("values_max", [999, 32_766])
def test_every_row_is_there_whatever_a_statement_may_hold(values_max: int, count: int) -> None:
    database = sqlite3.connect(":memory:")
    database.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, values_max)
    database.execute("CREATE TABLE birds (n INTEGER PRIMARY KEY, name, wings)")
    rows = [(n, f"bird {n}", 2) for n in range(count)]

    bulk_insert.insert(database, "birds", "n, name, wings", rows)
    bulk_insert.insert(database, "birds", "n, name, wings", rows, unless_there=True)

    assert database.execute("SELECT * FROM birds ORDER BY n").fetchall() == rows
