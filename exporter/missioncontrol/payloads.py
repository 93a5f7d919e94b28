"""Large strings of events are kept once, however many events hold them, and read only when they are wanted.

In the event's place stands the event with `{"$large":{"sha256","bytes","start"}}` for each large string: whole JSON,
which is enough to list and show it. With the strings put back, its bytes are those that were delivered.
"""

import re
import sqlite3
from hashlib import sha256
from typing import Final

import msgspec

LARGE_BYTES: Final = 16 * 1024
"""Strings from this size on, with their quotes, are kept apart."""

_CUTS_MAX: Final = 64
_START_LENGTH: Final = 200
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(\s*+:)?', re.DOTALL)
_START: Final = re.compile(rf'"((?:\\u[0-9A-Fa-f]{{4}}|\\[^u]|[^"\\]){{0,{_START_LENGTH}}})')
_decode_cuts: Final = msgspec.json.Decoder(list[tuple[int, int, int]]).decode


def put(database: sqlite3.Connection, session: int, body: bytes) -> tuple[bytes, bytes | None]:
    """Keep the large strings of an event apart; return what to store in its place, and what `whole` needs."""
    if len(body) < LARGE_BYTES:
        return body, None
    parts: list[bytes] = []
    cuts: list[tuple[int, int, int]] = []
    end = size = 0
    for match in _STRING.finditer(body):
        if match.end() - match.start() < LARGE_BYTES or match.group(1) or len(cuts) == _CUTS_MAX:
            continue
        before, stand_in = body[end : match.start()], _stand_in(match.group())
        cuts.append((size + len(before), len(stand_in), _keep(database, session, match.group())))
        parts += (before, stand_in)
        size += len(before) + len(stand_in)
        end = match.end()
    if not cuts:
        return body, None
    return b"".join((*parts, body[end:])), msgspec.json.encode(cuts)


def whole(database: sqlite3.Connection, stored: bytes, cuts: bytes | None) -> bytes:
    """Return the event's bytes as they were delivered."""
    if cuts is None:
        return stored
    parts: list[bytes] = []
    end = 0
    for at, length, number in _decode_cuts(cuts):
        (payload,) = database.execute("SELECT body FROM blobs WHERE n = ?", (number,)).fetchone()
        parts += (stored[end:at], payload)
        end = at + length
    return b"".join((*parts, stored[end:]))


def whole_if_small(database: sqlite3.Connection, stored: bytes, cuts: bytes | None, bytes_max: int) -> bytes:
    """Return the event as it was delivered when what is kept apart is at most so many bytes, else as it is stored."""
    if cuts is None:
        return stored
    numbers = [number for _, _, number in _decode_cuts(cuts)]
    marks = ",".join("?" * len(numbers))
    # The length of a value is in its row's head, so nothing large is read for it.
    lengths = database.execute(f"SELECT n, length(body) FROM blobs WHERE n IN ({marks})", numbers)  # noqa: S608  marks only
    of = dict(lengths.fetchall())
    return whole(database, stored, cuts) if sum(of[number] for number in numbers) <= bytes_max else stored


def forget(database: sqlite3.Connection, session: int) -> None:
    """Delete what only this session held."""
    database.execute(
        "DELETE FROM blobs WHERE n IN (SELECT blob FROM blob_uses WHERE session = ?1)"
        " AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob = blobs.n AND session <> ?1)",
        (session,),
    )
    database.execute("DELETE FROM blob_uses WHERE session = ?", (session,))


def _keep(database: sqlite3.Connection, session: int, payload: bytes) -> int:
    hashed = sha256(payload).digest()
    database.execute("INSERT OR IGNORE INTO blobs (sha256, body) VALUES (?, ?)", (hashed, payload))
    (number,) = database.execute("SELECT n FROM blobs WHERE sha256 = ?", (hashed,)).fetchone()
    database.execute("INSERT OR IGNORE INTO blob_uses (session, blob) VALUES (?, ?)", (session, number))
    return int(number)


def _stand_in(payload: bytes) -> bytes:
    found = _START.match(payload[: 8 * _START_LENGTH].decode("utf-8", "ignore"))
    start = found.group(1) if found else ""
    hashed = sha256(payload).hexdigest()
    return f'{{"$large":{{"sha256":"{hashed}","bytes":{len(payload)},"start":"{start}"}}}}'.encode()
