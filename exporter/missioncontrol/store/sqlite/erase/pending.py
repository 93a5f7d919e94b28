"""What is still to be done after a session was deleted, until none of its text is in the file or the log.

It is noted in the transaction that deletes, so that it is done after a crash, and once no other program reads any more.
"""

import sqlite3
from io import FileIO
from typing import Final

from exporter.missioncontrol.store.sqlite.erase.free_space import Trees, clear
from exporter.missioncontrol.store.sqlite.wal import truncate_log

_COLUMNS: Final = {
    "events": "body",
    "blobs": "body",
    "notices": "text",
    "families": "state",
    "sessions": "haystack",
    "rewinds": "id",
}
_LARGE: Final = ("events", "blobs")
_ROUNDS_MAX: Final = 3


def mark(database: sqlite3.Connection, session: int) -> None:
    """Note a session that the same transaction deletes."""
    for tree, rows in (
        ("sessions", "SELECT ?1"),
        ("events", "SELECT n FROM events WHERE session = ?1"),
        ("blobs", "SELECT blob FROM blob_uses WHERE session = ?1"),
    ):
        database.execute(f"INSERT OR IGNORE INTO to_clear SELECT '{tree}', * FROM ({rows})", (session,))  # noqa: S608


def is_left(database: sqlite3.Connection) -> bool:
    """Tell whether text of a deleted session may still be in the file or the log."""
    return database.execute("SELECT 1 FROM to_clear LIMIT 1").fetchone() is not None


def is_left_of(database: sqlite3.Connection, session_ids: list[str]) -> bool:
    """Tell whether that is so, and these sessions are deleted ones."""
    found = "SELECT 1 FROM deleted_sessions WHERE id = ?"
    return is_left(database) and all(database.execute(found, (id,)).fetchone() is not None for id in session_ids)


def erase(database: sqlite3.Connection, file: FileIO | None) -> bool:
    """Clear what deleted sessions left and cut the log; False while another program reads the store.

    Call it on the writer's thread, outside any transaction, with the database's file, which must stay open.
    """
    if file is not None:
        if not truncate_log(database):
            return False
        around = {
            tree: [row for (row,) in database.execute("SELECT row FROM to_clear WHERE tree = ?", (tree,))]
            for tree in _LARGE
        }
        for _ in range(_ROUNDS_MAX):
            if clear(database, file, Trees(_COLUMNS, around)):
                break
            if not truncate_log(database):
                return False
    database.execute("DELETE FROM to_clear")
    return True
