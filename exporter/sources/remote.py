"""What sources without a file have in common: what they give, to whom, and what they count."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from exporter.core.events.types import KNOWN, method_name, type_name

TYPES_MAX: Final = 256


class LostError(Exception):
    """The connection has ended; says why in words of ours."""


class SourceEvent(NamedTuple):
    """One event as the server sent it, on one line."""

    line: bytes
    is_ephemeral: bool


class Want(Enum):
    """What is asked for of a session."""

    NOTHING = "nothing"
    LIVE = "live"  # ephemeral events only: another source has the durable ones
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Where events go, and what is known of what went there. All of it is about one session by its id.

    `take` returns whether it has taken all of a page for good (journal and fsync); the same page is offered again
    until it has, and nothing more is read meanwhile. `mark` is the last durable event taken, `known` whether one was,
    `is_elsewhere` whether another source has the durable events of the session.
    """

    take: Callable[[str, Sequence[SourceEvent]], Awaitable[bool]]
    mark: Callable[[str], str | None]
    known: Callable[[str, str], bool]
    want: Callable[[str, str], Want]  # with the time the session was changed last, empty if not told
    gone: Callable[[str], None]  # the session was deleted
    is_elsewhere: Callable[[str], bool] = lambda session: False
    missed: Callable[[str], None] = lambda session: None  # ephemeral events may have passed unseen


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

    def saw_method(self, name: str) -> None:
        """Count a method that a server used and that is in no list of ours."""
        _count(self.unknown_methods, method_name(name))

    def unknown(self) -> dict[str, int]:
        """Return what is in no list of ours: types of events and, ending in "()", methods."""
        return {**self.unknown_types, **{f"{name}()": count for name, count in self.unknown_methods.items()}}

    def saw(self, type: str) -> None:
        """Count an event whose type is in no list of ours."""
        if type not in KNOWN:
            _count(self.unknown_types, type_name(type))


def _count(counter: Counter[str], name: str) -> None:
    if name in counter or len(counter) < TYPES_MAX:
        counter[name] += 1


@dataclass(frozen=True, slots=True)
class Observed:
    """How a source is, for the daemon and its status. `state` says in words what is so, and `troubles` by session."""

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
        """Return how it is now; nothing in it is secret."""
