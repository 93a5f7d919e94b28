"""Where in which file a sink is: an offset that is only believed if the bytes before it are still the same.

The CLI appends to the file, replaces it by a shorter one (rewind, truncate, repair), and may leave it for days. Other
programs may truncate it in place, copy it, move its directory away and back, or delete it. Three facts distinguish
all of these: the identity of the file, its size, and the bytes before the offset.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final

TAIL_BYTES: Final = 256


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file: device and inode. Two files never share it at the same time; reuse is detected by the tail."""

    device: int
    inode: int


def rewritten(known: Identity | None, size: int, seen: Identity, seen_size: int) -> str | None:
    """Say how the past of a file has changed since it was `known` with a `size`; None when it can only have grown.

    After a change the file is read again from its first event, and what was not sent is sent.
    """
    if known is not None and seen != known:
        return "replaced"
    return "truncated" if seen_size < size else None


def tail_hash(tail: bytes) -> bytes:
    """Return a hash, 16 bytes, of the up to `TAIL_BYTES` bytes before an offset."""
    return hashlib.blake2b(tail[-TAIL_BYTES:], digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Position:
    """An offset after a whole line, with the hash of the bytes before it."""

    offset: int
    tail: bytes

    def tail_length(self) -> int:
        """Return how many bytes before the offset are hashed."""
        return min(self.offset, TAIL_BYTES)

    def follows(self, tail: bytes) -> bool:
        """Tell whether `tail`, the bytes now before the offset, are those that were there."""
        return len(tail) >= self.tail_length() and tail_hash(tail[len(tail) - self.tail_length() :]) == self.tail


START: Final = Position(0, tail_hash(b""))

FOLLOWING, DELETED_THERE, FOREIGN_THERE = "following", "deleted_there", "foreign_there"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a sink has a session: `position` in the file `identity`, reached with the event `last_id`.

    `confirmed_at` is when the sink said last that it holds what it accepted, which were `confirmed` events then.
    """

    last_id: str | None = None
    position: Position = START
    identity: Identity | None = None
    remote_id: str | None = None
    state: str = FOLLOWING
    delivered: int = 0
    confirmed_at: float | None = field(default=None, compare=False)
    confirmed: int = field(default=-1, compare=False)

    @property
    def is_confirmed(self) -> bool:
        """Tell whether the sink said that it holds exactly what it accepted, and nothing casts doubt on that."""
        return self.confirmed == self.delivered
