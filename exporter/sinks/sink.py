"""The interface of a sink, whatever its protocol. `tests/sinks/contract.py` checks every sink against it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.gathering import Gathering
from exporter.core.delivery.verdict import Verdict


class Capabilities(msgspec.Struct, frozen=True):
    """What a receiver offers above the floor; nothing unless it says so."""

    encodings: list[str] = []
    max_body: int = 0
    max_events: int = 0
    max_event_bytes: int = 0
    ack: bool = False
    digest: bool = False
    rewound: bool = False
    reports: bool = False
    live: bool = False
    deletes: bool = False
    installations: bool = False


class Ack(msgspec.Struct, frozen=True):
    """What a receiver says it holds of a session.

    Another `epoch`, or a lower number of `changes`, says that its store may be older than what it answered before.
    """

    count: int
    digest: str
    last_event_id: str | None = None
    accepted: int = 0
    duplicates: int = 0
    rejected: list[str] = []
    epoch: str = ""
    changes: int = 0


class Items(dict[str, bytes]):
    """The ids that a sink holds, not hidden, in its order, with the SHA-256 of each event.

    `others` are those that it knows to be sent by another installation.
    """

    others: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Registered:
    """The receiver knows the session as `remote_id`. `asked` is False if no request was necessary."""

    remote_id: str
    ack: Ack | None
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """The answer to a batch. `trusted` is False if a receiver that acknowledges gave no valid acknowledgement.

    `count` is how many events of the session such a receiver says it holds now. `refusal` is the reason for the
    rejected ids; `unnamed` is how many more were rejected without their ids, and `told` is the receiver's message.
    They may be of other sessions that shared the request: then `shared` has all that was in it; one session is told.
    """

    verdict: Verdict
    rejected: tuple[str, ...] = ()
    trusted: bool = True
    count: int | None = None
    refusal: str = "rejected_by_receiver"
    unnamed: int = 0
    told: str = ""
    shared: bytes = b""


Registration: TypeAlias = Registered | Verdict


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a sink was found to hold of a session, without hidden events: the ids with the SHA-256 of each.

    `faults` name what is damaged or missing; damaged events do not count as held. `notes` are not faults.
    """

    items: dict[str, bytes]
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def no_token() -> str | None:
    """Return the token of a sink that needs none."""
    return None


_REFUSED_BODY_BYTES_MIN: Final = 8_192


class Sink(ABC):
    """A destination of events. `token` returns the present authorisation; a refused one closes the sink's gate.

    `store` is the store that answered last, if the receiver names it: a store with another name has lost the events.
    `epoch` and `changes` are what it said last of its age, and `went_back` is set when the number of changes fell.
    `copies` is how many other exporters it knows with the id of this one. `settings_salt` is with what it compares the
    settings of exporters, empty if it does not; `wants_settings` says that it does not know those of this one.
    `gathering` says how many events are gathered before a batch is sent. `unproved` says why `verify` cannot ask what
    it holds; it is empty if `verify` can. Questions about all sessions are spread over `spread_seconds_min` at least:
    the exporters of many machines must not ask a receiver at once. `body_bytes_max` bounds a request; it falls when a
    body is refused. `in_process` says that it starts and ends with this process. Where `lanes_always` is given, more
    sessions than that are sent at a time only while they have little to send, for the memory's sake. Where
    `history_seconds` is given, `run` sends nothing of what happened earlier than that before it met the sink.
    """

    name: str
    url: str
    token: Callable[[], str | None] = staticmethod(no_token)
    token_refused: str | None = None
    store: str | None = None
    epoch: str = ""
    changes: int = 0
    went_back: bool = False
    copies: int = 0
    settings_salt: str = ""
    wants_settings: bool = False
    capabilities: Capabilities = Capabilities()
    gathering: Gathering | None = None
    unproved: str = ""
    spread_seconds_min: float = 60.0
    in_process: bool = False
    lanes_always: int | None = None
    history_seconds: float | None = None
    body_bytes_max: int = 1 << 62

    @abstractmethod
    def limits(self) -> BatchLimits:
        """Return what one request may hold."""

    def body_refused(self, size: int) -> None:
        """Remember that a body of this size was too large."""
        self.body_bytes_max = max(_REFUSED_BODY_BYTES_MIN, min(size // 2, self.body_bytes_max))

    @abstractmethod
    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Register the session, or find it by the id it has there; `restore` undoes a deletion there."""

    @abstractmethod
    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Send one batch in file order; `rewound` are ids that are no longer in the file."""

    def stream_of_sums(self, session: str, remote_id: str | None, *, is_live: bool) -> str | None:
        """Return under which name what is counted of a session is sent; `is_live` says that it happens now."""
        return remote_id

    async def takes_empty(self) -> bool:
        """Send a request with nothing in it, if there is one; return whether it is accepted."""
        return False

    async def items(self, remote_id: str) -> dict[str, bytes] | Verdict:
        """Return the ids that it says it holds, not hidden, in its order, with the SHA-256 of each event."""
        return {}

    async def inspect(self, remote_id: str, *, mend: bool = False) -> Inspection | Verdict | None:
        """Check everything it holds of a session; None if that is not possible from here.

        With `mend`, damaged events count as missing from then on, so that they are sent again.
        """
        return None

    async def forget(self, remote_id: str) -> int | Verdict | None:
        """Delete what it holds of a session; return how many objects, None if a sink of this kind cannot do that."""
        return None

    async def report(self, path: str, method: str, body: Mapping[str, object]) -> bool:
        """Send a report to a receiver that takes reports; return False if sending it again may help."""
        return True

    async def live(self, remote_id: str, lines: Sequence[bytes]) -> None:  # noqa: B027  most sinks have no live view
        """Send ephemeral events to a receiver that has a live view; an error is ignored."""

    async def close(self) -> None:  # noqa: B027  not every sink has connections
        """Close the connections."""
