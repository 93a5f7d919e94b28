"""What dealing with a sink about a session can come to."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Delivered:
    """The sink has the segment, except for the events at these indexes, which are in quarantine."""

    refused: frozenset[int]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing can be done now: the sink's gate says when, or the session has stopped."""


@dataclass(frozen=True, slots=True)
class Resync:
    """The sink has exactly these ids, whatever was believed before: compare the file with them."""

    known: dict[str, bytes]


Outcome: TypeAlias = Delivered | Waiting | Resync
