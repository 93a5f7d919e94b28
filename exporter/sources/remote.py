"""What sources without a file share: their events, callbacks, counts and state."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from exporter.sources.event_types import KNOWN, method_name, type_name

TYPES_MAX: Final = 256
PAUSE_SECONDS: Final = (0.5, 60.0)


class LostError(Exception):
    """The connection has ended. The message says why and quotes nothing that the server sent."""


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
    history: Callable[[str, Set[str]], None] = lambda session, ids: None  # what is stored and not in it was rewound


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

    def count_stored(self, page: Sequence[SourceEvent]) -> None:
        """Count the events of a page that was stored."""
        ephemeral = sum(event.is_ephemeral for event in page)
        self.ephemeral += ephemeral
        self.durable += len(page) - ephemeral

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


class ServerSource(ABC):
    """A source that observes one server until its task is cancelled, over as many connections as it takes.

    `state` is a sentence, with the remedy where there is one; it contains no secret. The pause before the next
    connection is random, between a floor and a ceiling that grows with every failure.
    """

    def __init__(self, server: str, callbacks: Callbacks, pause_seconds: tuple[float, float] | None) -> None:
        self.state = "not started"
        self.is_connected = False
        self.is_refused = False
        """Whether nothing listens at the address, as the latest attempt to connect found."""
        self.connections = 0
        self.counts = Counts()
        self._server = server
        self._callbacks = callbacks
        self._pause_seconds = pause_seconds or PAUSE_SECONDS

    def is_live(self, session: str) -> bool:
        """Tell whether the server has a session loaded, and it is followed now."""
        return False

    @abstractmethod
    def observed(self) -> Observed:
        """Return the present state."""

    def _report(self, sessions: int, troubles: dict[str, str], *, is_reading: bool, notice: str = "") -> Observed:
        state = f"{self.state}; {notice}" if self.is_connected and notice else self.state
        is_catching_up = self.state in ("not started", "connecting") or (self.is_connected and is_reading)
        return Observed(state, self.is_connected, is_catching_up, sessions, troubles, self.counts)

    @abstractmethod
    async def _observe(self) -> None:
        """Observe over one connection; when it has ended, raise `LostError` or `OSError`, or what a callback raised."""

    async def run(self) -> None:
        """Connect, observe, and connect again, until cancelled. Raises only what a callback raised."""
        failures = 0
        while True:
            self.state = "connecting"
            try:
                await self._observe()
            except LostError as error:
                failures = 0 if self.is_connected else failures + 1
                self.state = str(error)
                self.is_refused = False
            except OSError as error:
                failures += 1
                self.state = f"the {self._server} cannot be reached: {error.strerror or 'no connection'}"
                self.is_refused = isinstance(error, ConnectionRefusedError)
            self.is_connected = False
            await asyncio.sleep(self._pause(failures))

    def _pause(self, failures: int) -> float:
        shortest, longest = self._pause_seconds
        ceiling = min(longest, shortest * 2.0 ** min(failures, 16))
        return shortest + (ceiling - shortest) * random.random()  # noqa: S311  no secret
