"""What a lane asks of a sink, whatever is spoken on the wire. `tests/sinks/contract.py` holds every sink to it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.gathering import Gathering
from exporter.core.delivery.verdict import Verdict


class Capabilities(msgspec.Struct, frozen=True):
    """What a receiver offers above the floor; everything is absent unless it says so."""

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


class Ack(msgspec.Struct, frozen=True):
    """What a receiver says it holds of a session."""

    count: int
    digest: str
    last_event_id: str | None = None
    accepted: int = 0
    duplicates: int = 0
    rejected: list[str] = []


@dataclass(frozen=True, slots=True)
class Registered:
    """The receiver knows the session under `remote_id`. `asked` is False when nobody had to be asked for it."""

    remote_id: str
    ack: Ack | None
    asked: bool = True


@dataclass(frozen=True, slots=True)
class Sent:
    """The answer to a batch. `trusted` is False when a receiver that acknowledges gave no sound acknowledgement.

    `count` is how many events of the session such a receiver says it holds now. `refusal` is why it has not what it
    rejected; `unnamed` is how many it did not take besides, without saying which, and `told` is what it said in words.
    """

    verdict: Verdict
    rejected: tuple[str, ...] = ()
    trusted: bool = True
    count: int | None = None
    refusal: str = "rejected_by_receiver"
    unnamed: int = 0
    told: str = ""


Registration: TypeAlias = Registered | Verdict


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a sink proves to hold of a session, less what is hidden: the ids with the SHA-256 of each.

    `faults` name what is damaged or missing there, and what was damaged does not count as held. `notes` are no faults.
    """

    items: dict[str, bytes]
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def no_token() -> str | None:
    """Return the token of a sink that needs none."""
    return None


class Sink(ABC):
    """One place that takes events. `token` is what it is authorised by now; a refused one closes the sink's gate.

    `store` is which store answered last, where the receiver says so: another one than before has lost what it had.
    `gathering` is what it waits for before it is sent anything of a session. `unproved` says why `verify` cannot ask
    what it holds; it is empty where `verify` can.
    """

    name: str
    url: str
    token: Callable[[], str | None] = staticmethod(no_token)
    token_refused: str | None = None
    store: str | None = None
    capabilities: Capabilities = Capabilities()
    gathering: Gathering | None = None
    unproved: str = ""

    @abstractmethod
    def limits(self) -> BatchLimits:
        """Return what one request may hold."""

    @abstractmethod
    def body_refused(self, size: int) -> None:
        """Remember that a body of this size was too large."""

    @abstractmethod
    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration:
        """Make the session known, or find it again under the id it has there; `restore` undoes a deletion there."""

    @abstractmethod
    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent:
        """Send one batch in file order; `rewound` are ids that are gone from the file."""

    async def items(self, remote_id: str) -> dict[str, bytes] | Verdict:
        """Return the ids that it says it holds, not hidden, in its order, with the SHA-256 of each."""
        return {}

    async def inspect(self, remote_id: str, *, mend: bool = False) -> Inspection | Verdict | None:
        """Look at everything it holds of a session, where that is possible from here; None where it is not.

        With `mend` what is damaged there is held for missing from then on, so that it is sent again.
        """
        return None

    async def forget(self, remote_id: str) -> int | Verdict | None:
        """Delete what it holds of a session for good; return how many pieces, None where that is not ours to do."""
        return None

    async def report(self, path: str, method: str, body: Mapping[str, object]) -> bool:
        """Tell a receiver that takes reports how things are; return False when telling it again may help."""
        return True

    async def live(self, remote_id: str, lines: Sequence[bytes]) -> None:  # noqa: B027  most sinks show nothing
        """Show ephemeral events to a receiver that has a live view; nothing waits for them."""

    async def close(self) -> None:  # noqa: B027  not every sink holds something
        """Let go of connections."""
