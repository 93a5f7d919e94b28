"""What sources without a file share: their events, callbacks, counts and state."""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from exporter.sources.event_types import KNOWN, method_name, type_name

TYPES_MAX: Final = 256


class LostError(Exception):
    """The connection has ended; says why in words of ours."""


class SourceEvent(NamedTuple):
    """One event as the server sent it, on one line."""

    line: bytes
    is_ephemeral: bool


class Want(Enum):
    """Which events of a session are wanted."""

    NOTHING = "nothing"
    LIVE = "live"  # ephemeral events only: another source has the durable ones
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Where events go, and what is stored of a session. Each callback takes a session id first.

    `store` returns whether a whole page is durable (journal and fsync); until it is, the same page is offered again and
    nothing more is read. `mark` is the last durable event stored, `has_event` whether one is stored, `is_elsewhere`
    whether another source delivers the durable events of the session.
    """

    store: Callable[[str, Sequence[SourceEvent]], Awaitable[bool]]
    mark: Callable[[str], str | None]
    has_event: Callable[[str, str], bool]
    want: Callable[[str, str], Want]  # with the time of the last change, empty if unknown
    deleted: Callable[[str], None]  # the session was deleted
    is_elsewhere: Callable[[str], bool] = lambda session: False
    missed: Callable[[str], None] = lambda session: None  # ephemeral events may have been missed


@dataclass(slots=True)
class Counts:
    """What a source has read, for the status and for `doctor --schema`."""

    durable: int = 0
    ephemeral: int = 0
    repeats: int = 0
    expired: int = 0
    dropped: int = 0
    unknown_types: Counter[str] = field(default_factory=Counter)
    unknown_methods: Counter[str] = field(default_factory=Counter)

    def count_method(self, name: str) -> None:
        """Count an unknown method that a server used."""
        _count(self.unknown_methods, method_name(name))

    def unknown(self) -> dict[str, int]:
        """Return unknown event types and, ending in "()", unknown methods."""
        return {**self.unknown_types, **{f"{name}()": count for name, count in self.unknown_methods.items()}}

    def count_type(self, type: str) -> None:
        """Count an event if its type is unknown."""
        if type not in KNOWN:
            _count(self.unknown_types, type_name(type))


def reconnect_pause(bounds_seconds: tuple[float, float], failures: int) -> float:
    """Return how long to wait before the next connection: random between a floor and a growing ceiling."""
    shortest, longest = bounds_seconds
    ceiling = min(longest, shortest * 2.0 ** min(failures, 16))
    return shortest + (ceiling - shortest) * random.random()  # noqa: S311  no secret


def _count(counter: Counter[str], name: str) -> None:
    if name in counter or len(counter) < TYPES_MAX:
        counter[name] += 1


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of a source, for the daemon and its status. `state` and, by session, `troubles` are sentences."""

    state: str
    is_connected: bool
    is_catching_up: bool
    sessions: int
    troubles: dict[str, str]
    counts: Counts


class Observer(Protocol):
    """A source that observes one server until its task is cancelled, over as many connections as it takes."""

    async def run(self) -> None:
        """Observe; raises only what a callback raised."""

    def observed(self) -> Observed:
        """Return the present state; it contains no secret."""
