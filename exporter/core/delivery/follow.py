"""What to do with a session file, from what was known of it and what is seen now.

The CLI appends to the file, replaces it by a shorter one (rewind, truncate, repair), and may leave it for days.
Other programs may truncate it in place, copy it, move its directory away and back, or delete it. All of these are
told apart by three facts: the identity of the file, its size, and the bytes before the offset we stand at.
"""

from dataclasses import dataclass
from typing import TypeAlias

from exporter.core.delivery.position import Identity


@dataclass(frozen=True, slots=True)
class FileState:
    """The file as it is now."""

    identity: Identity
    size: int


@dataclass(frozen=True, slots=True)
class Wait:
    """There is nothing new to read."""


@dataclass(frozen=True, slots=True)
class Grow:
    """Read on from the offset, once the bytes before it have been compared."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Read the file again from its first event and send what was not sent: its past has changed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Vanish:
    """The path names no file: drain what is open and forget the rest."""


Decision: TypeAlias = Wait | Grow | Rewritten | Vanish


def decide(known: Identity | None, offset: int, size_checked: int, seen: FileState | None) -> Decision:
    """Decide for a sink at `offset` of the file `known`, whose tail was last compared at `size_checked` bytes."""
    if seen is None:
        return Vanish()
    if known is not None and seen.identity != known:
        return Rewritten("replaced")
    if seen.size < offset or seen.size < size_checked:
        return Rewritten("truncated")
    if seen.size > offset:
        return Grow()
    return Wait()
