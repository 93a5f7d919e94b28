"""Removes the text of deleted sessions from the database file and the write-ahead log.

A DELETE alone does not erase text. With `secure_delete` SQLite overwrites a row where it stands, but not the copies
that stayed behind when rows moved to another page, as happens whenever pages are split or joined: they lie in the gap
between a page's directory and its rows. And the log holds pages of before until it is cut.

`SqliteDatabase.forget_text_of` notes a session in the transaction that deletes it, so that `erase` is repeated after a
crash, and once no other program reads the store. `erase` reads the file to find gaps that hold something, and writes
with plain SQL only: a row of such a page is made to fill the page, which SQLite does by clearing the gap or writing
over it, and then put back.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from typing import Final

from exporter.missioncontrol.store.sqlite.database import SqliteDatabase

_COLUMNS: Final = {
    "events": "body",
    "blobs": "body",
    "notices": "text",
    "families": "state",
    "sessions": "haystack",
    "rewinds": "id",
}
"""Tables that hold text of sessions, each with a column that may be made longer for a moment."""
_LARGE: Final = ("events", "blobs")
"""Tables of which only the pages around deleted rows are read."""
_ROUNDS_MAX: Final = 3
_INTERIOR, _LEAF = 5, 13
_AROUND: Final = 4
"""Pages looked at on each side of a row; moving a row takes it to the next page but one at most."""
_LEAVES_SEEN_ALWAYS: Final = 512
_LAST: Final = 1 << 63
_PAGES_TOGETHER: Final = 100
_POINTERS_BYTES: Final = 8
"""So little may stay in a gap: SQLite's own pointers, which are no one's text."""


@dataclass(frozen=True, slots=True)
class _Cell:
    row: int
    payload: int
    size: int


def erase(database: SqliteDatabase, file: FileIO | None) -> bool:
    """Clear what deleted sessions left and cut the log; False while another program reads the store.

    Call it on the writer's thread, outside any transaction, with the database's file, which must stay open.
    """
    if file is not None:
        if not database.truncate_log():
            return False
        around = {
            tree: [row for (row,) in database.execute("SELECT row FROM to_clear WHERE tree = ?", (tree,))]
            for tree in _LARGE
        }
        for _ in range(_ROUNDS_MAX):
            if _clear(database, file, around):
                break
            if not database.truncate_log():
                return False
    database.execute("DELETE FROM to_clear")
    return True


def _clear(database: SqliteDatabase, file: FileIO, around: Mapping[str, list[int]]) -> bool:
    """Clear the pages of all tables that hold text; tell whether there was nothing to clear.

    The whole log must be in the file, and no other connection may write meanwhile. What is written is in the log.
    """
    was_clear = True
    for name, column in _COLUMNS.items():
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        suspects = _suspects(file, root, database.pragma("page_size"), around.get(name))
        while some := [page for _, page in zip(range(_PAGES_TOGETHER), suspects, strict=False)]:
            was_clear = False
            with database.transaction():
                for page in some:
                    _fill_page(database, name, column, page)
    return was_clear


def _suspects(file: FileIO, root: int, bytes_per_page: int, around: list[int] | None) -> Iterator[bytes]:
    """Yield the leaves whose gap holds something: of a large table those near the rows `around`, else all."""
    leaves = list(_leaves(file, root, bytes_per_page, None if around is None else sorted(around)))
    for number in _wanted(leaves, around):
        page = _page(file, number, bytes_per_page)
        begin, end = _gap(page)
        if end - begin - page.count(b"\0", begin, end) > _POINTERS_BYTES:
            yield page


def _wanted(leaves: list[tuple[int, int]], around: list[int] | None) -> Iterable[int]:
    if around is None or len(leaves) <= _LEAVES_SEEN_ALWAYS:
        return [number for _, number in leaves]
    last_rows = [last for last, _ in leaves]
    places = {bisect_left(last_rows, row) for row in around}
    near = {at for place in places for at in range(max(0, place - _AROUND), place + _AROUND + 1) if at < len(leaves)}
    return [leaves[at][1] for at in sorted(near)]


def _leaves(
    file: FileIO, number: int, size: int, around: list[int] | None, last: int = _LAST
) -> Iterator[tuple[int, int]]:
    """Yield the leaves below a page, in order: the last row that may be in each, and its number.

    Parts of the tree that are not next to any of the rows are left out.
    """
    page = _page(file, number, size)
    if page[0] == _LEAF:
        yield last, number
        return
    assert page[0] == _INTERIOR
    below = [(at, int.from_bytes(page[at : at + 4], "big")) for at in _cells(page, 12)]
    children = [(_varint(page, at + 4)[0], child) for at, child in below]
    children.append((last, int.from_bytes(page[8:12], "big")))
    if children and _page(file, children[0][1], size)[0] == _LEAF:
        yield from children
        return
    for at, (key, child) in enumerate(children):
        first, end = children[at - 2][0] if at > 1 else 0, children[at + 1][0] if at + 1 < len(children) else _LAST
        if around is None or at <= 1 or bisect_left(around, first) < bisect_right(around, end):
            yield from _leaves(file, child, size, around, key)


def _page(file: FileIO, number: int, size: int) -> bytes:
    assert number > 1, "the first page is the schema's"
    file.seek((number - 1) * size)
    return file.read(size)


def _cells(page: bytes, header: int) -> list[int]:
    count = int.from_bytes(page[3:5], "big")
    return [int.from_bytes(page[at : at + 2], "big") for at in range(header, header + 2 * count, 2)]


def _gap(page: bytes) -> tuple[int, int]:
    top = int.from_bytes(page[5:7], "big") or 65536
    return 8 + 2 * int.from_bytes(page[3:5], "big"), top


def _free(page: bytes) -> int:
    """Return how many bytes of a leaf are free, as SQLite counts them."""
    begin, end = _gap(page)
    free, at = end - begin + page[7], int.from_bytes(page[1:3], "big")
    while at:
        free += int.from_bytes(page[at + 2 : at + 4], "big")
        at = int.from_bytes(page[at : at + 2], "big")
    return free


def _varint(page: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = page[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | page[at + 8], at + 9


def _varint_bytes(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))


def _size(payload: int, row: int, usable: int) -> int:
    """Return how many bytes a row of a leaf takes in its page."""
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    head = _varint_bytes(payload) + _varint_bytes(row)
    if payload <= most:
        return max(4, head + payload)
    local = least + (payload - least) % (usable - 4)
    return head + (local if local <= most else least) + 4


def _smallest(page: bytes) -> _Cell:
    found: list[_Cell] = []
    for at in _cells(page, 8):
        payload, behind = _varint(page, at)
        row, _ = _varint(page, behind)
        found.append(_Cell(row, payload, _size(payload, row, len(page))))
    return min(found, key=lambda cell: (cell.payload, cell.row))


def _fill_page(database: SqliteDatabase, name: str, column: str, page: bytes) -> None:
    """Make one row of the page fill it, and put the row back."""
    if not _cells(page, 8):
        database.execute(f"DELETE FROM {name}")  # noqa: S608  a name; the table has no row, and this clears its page
        return
    cell = _smallest(page)
    space = _free(page) + cell.size
    (value,) = database.execute(f"SELECT {column} FROM {name} WHERE rowid = ?", (cell.row,)).fetchone()  # noqa: S608
    before = 0 if value is None else len(value.encode() if isinstance(value, str) else value)
    more = _growth(cell, before, space, len(page))
    database.execute(f"UPDATE {name} SET {column} = zeroblob(?) WHERE rowid = ?", (before + more, cell.row))  # noqa: S608
    database.execute(f"UPDATE {name} SET {column} = ? WHERE rowid = ?", (value, cell.row))  # noqa: S608


def _growth(cell: _Cell, before: int, space: int, usable: int) -> int:
    """Return by how many bytes a value must grow so that its row fills the space as nearly as it can."""
    best = (0, 0)
    # A row that does not fit keeps in its page a part whose size goes round with its length.
    for start in (space - cell.size, (space - cell.size) % (usable - 4), usable - 35 - cell.payload):
        for more in range(max(start, 0), max(start - 16, -1), -1):
            heads = _varint_bytes(2 * (before + more) + 13) - _varint_bytes(2 * before + 13)
            size = _size(cell.payload + more + heads, cell.row, usable)
            if size <= space:
                best = max(best, (size, more))
    return best[1]
