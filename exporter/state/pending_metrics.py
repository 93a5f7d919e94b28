"""What was counted for a sink that is sent sums: first as it was found, with the mark it belongs to, then summed up.

A stream is a row of sums that goes on; the bodies and the sums are the caller's own bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from exporter.state.marks import MarkStore

COUNTED_TABLES: Final = """
    CREATE TABLE counted (n INTEGER PRIMARY KEY, sink INTEGER NOT NULL, stream TEXT NOT NULL, body BLOB NOT NULL);
    CREATE TABLE sums (
        sink INTEGER NOT NULL, stream TEXT NOT NULL, state BLOB NOT NULL, PRIMARY KEY (sink, stream)
    ) WITHOUT ROWID
"""
COUNT: Final = "INSERT INTO counted (sink, stream, body) VALUES (?, ?, ?)"


@dataclass(slots=True)
class PendingMetrics:
    """What was counted for a stream and is not in its sums yet; `state` are the sums, None when there are none."""

    stream: str
    state: bytes | None
    until: int = 0
    bodies: list[bytes] = field(default_factory=list)


def waiting(store: "MarkStore", sink: int, segments_max: int) -> list[PendingMetrics]:
    """Return every stream of a sink, with what was counted longest ago, of so many segments at most."""
    streams = {
        str(stream): PendingMetrics(str(stream), state if isinstance(state, bytes) else None)
        for stream, state in store.rows("SELECT stream, state FROM sums WHERE sink = ?", (sink,))
    }
    found = store.rows("SELECT n, stream, body FROM counted WHERE sink = ? ORDER BY n LIMIT ?", (sink, segments_max))
    for number, stream, body in found:
        if isinstance(number, int) and isinstance(body, bytes):
            one = streams.setdefault(str(stream), PendingMetrics(str(stream), None))
            one.until = number
            one.bodies.extend(msgspec.msgpack.decode(body, type=list[bytes]))
    return list(streams.values())


def sum_up(store: "MarkStore", sink: int, stream: str, state: bytes, until: int) -> None:
    """Remember the sums of a stream, which hold everything that was counted for it up to a number."""
    statements: list[tuple[str, Sequence[object]]] = [
        ("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (sink, stream, state)),
        ("DELETE FROM counted WHERE sink = ? AND stream = ? AND n <= ?", (sink, stream, until)),
    ]
    store.change(statements)
