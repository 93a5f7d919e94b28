"""SQLite's log beside a database: what was written and is not in the file yet."""

import sqlite3
from typing import Final

_TRUNCATE_WAIT_MILLISECONDS: Final = 250


def truncate_log(database: sqlite3.Connection) -> bool:
    """Write the log into the file and cut it to nothing, so that no old page stays in it; False while it is read.

    It waits a moment only for who reads, because everybody who writes waits with it: try again later.
    """
    (patience,) = database.execute("PRAGMA busy_timeout").fetchone()
    database.execute(f"PRAGMA busy_timeout = {_TRUNCATE_WAIT_MILLISECONDS}")
    try:
        (busy, _, _) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        database.execute(f"PRAGMA busy_timeout = {patience}")
    return not busy
