"""Large strings of events are stored once, however many events contain them, and read only when they are needed.

Instead of the event is stored the event with `{"$large":{"sha256","bytes","start"}}` for each large string: whole JSON,
which is enough to list and show it. With the strings put back, its bytes are those that were delivered.
"""

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

import msgspec

from exporter.missioncontrol.store.port import Database

LARGE_BYTES: Final = 16 * 1024
"""Strings of this size and more, with their quotes, are stored separately."""

_CUTS_MAX: Final = 64
_KEPT_AT_ONCE_MAX, _KEPT_AT_ONCE_BYTES = 500, 1 << 20
_START_LENGTH: Final = 200
_NAME_END: Final = re.compile(rb"\s*+:")
_START: Final = re.compile(rf'"((?:\\u[0-9A-Fa-f]{{4}}|\\[^u]|[^"\\]){{0,{_START_LENGTH}}})')
Cuts = list[tuple[int, int, int]]
"""Where each stand-in of an event as it is stored begins, how long it is, and the row number of its large string."""
_decode_cuts: Final = msgspec.json.Decoder(Cuts).decode


class LargeString(msgspec.Struct, frozen=True, gc=False):
    """Where a large string of an event begins and ends, and its hash."""

    start: int
    end: int
    sha256: bytes


def find(body: bytes) -> tuple[LargeString, ...]:
    """Return the large strings of an event, in order; names of fields do not count."""
    if len(body) < LARGE_BYTES:
        return ()
    plain = body.replace(b"\\\\", b"..").replace(b'\\"', b"..")  # every remaining quote begins or ends a string
    found: list[LargeString] = []
    start = plain.find(b'"')
    while start >= 0 and len(found) < _CUTS_MAX:
        end = plain.find(b'"', start + 1) + 1
        if end - start >= LARGE_BYTES and _NAME_END.match(body, end) is None:
            found.append(LargeString(start, end, sha256(body[start:end]).digest()))
        start = plain.find(b'"', end) if end else -1
    return tuple(found)


def keep(database: Database, session: int, events: Iterable[tuple[bytes, tuple[LargeString, ...]]]) -> dict[bytes, int]:
    """Store the large strings of these events for a session; return the row number of each by its hash."""
    numbers: dict[bytes, int] = {}
    new: dict[bytes, bytes] = {}
    size = 0
    for body, strings in events:
        for one in strings:
            if one.sha256 in numbers or one.sha256 in new:
                continue
            new[one.sha256] = body[one.start : one.end]
            size += one.end - one.start
            if size > _KEPT_AT_ONCE_BYTES or len(new) == _KEPT_AT_ONCE_MAX:
                numbers |= _keep(database, session, new)
                new, size = {}, 0
    return numbers | _keep(database, session, new) if new else numbers


def cut_out(body: bytes, strings: tuple[LargeString, ...], numbers: dict[bytes, int]) -> tuple[bytes, bytes | None]:
    """Return what to store instead of an event whose large strings have these row numbers, and its cuts."""
    if not strings:
        return body, None
    parts: list[bytes] = []
    cuts: list[tuple[int, int, int]] = []
    last = size = 0
    for one in strings:
        before, stand_in = body[last : one.start], _stand_in(body, one)
        cuts.append((size + len(before), len(stand_in), numbers[one.sha256]))
        parts += (before, stand_in)
        size += len(before) + len(stand_in)
        last = one.end
    return b"".join((*parts, body[last:])), msgspec.json.encode(cuts)


def whole(database: Database, stored: bytes, cuts: bytes | None) -> bytes:
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


def whole_if_small(database: Database, stored: bytes, cuts: bytes | None, bytes_max: int) -> bytes:
    """Return the event as it was delivered when its large strings have at most so many bytes, else as it is stored."""
    if cuts is None:
        return stored
    numbers = [number for _, _, number in _decode_cuts(cuts)]
    marks = ",".join("?" * len(numbers))
    # The length of a value is in its row's head, so nothing large is read for it.
    lengths = database.execute(f"SELECT n, length(body) FROM blobs WHERE n IN ({marks})", numbers)  # noqa: S608  marks only
    of = dict(lengths.fetchall())
    return whole(database, stored, cuts) if sum(of[number] for number in numbers) <= bytes_max else stored


def forget(database: Database, session: int) -> None:
    """Delete the large strings that only this session has."""
    database.execute(
        "DELETE FROM blobs WHERE n IN (SELECT blob FROM blob_uses WHERE session = ?)"
        " AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob = blobs.n AND session <> ?)",
        (session, session),
    )
    database.execute("DELETE FROM blob_uses WHERE session = ?", (session,))


def _keep(database: Database, session: int, payloads: dict[bytes, bytes]) -> dict[bytes, int]:
    numbers: dict[bytes, int] = {}
    while missing := payloads.keys() - numbers.keys():  # again for what another transaction deletes in between
        # In order, so that two transactions with the same strings wait for each other once.
        database.insert("blobs", "sha256, body", [(one, payloads[one]) for one in sorted(missing)], unless_there=True)
        condition, values = database.among("sha256", tuple(missing))
        rows = database.execute(f"SELECT sha256, n FROM blobs WHERE {condition}", values)  # noqa: S608  marks only
        numbers.update(rows.fetchall())
    uses = [(session, number) for number in numbers.values()]
    database.insert("blob_uses", "session, blob", uses, unless_there=True)
    return numbers


def _stand_in(body: bytes, one: LargeString) -> bytes:
    found = _START.match(body[one.start : min(one.end, one.start + 8 * _START_LENGTH)].decode("utf-8", "ignore"))
    start = found.group(1) if found else ""
    about = f'"sha256":"{one.sha256.hex()}","bytes":{one.end - one.start},"start":"{start}"'
    return f'{{"$large":{{{about}}}}}'.encode()
