"""What a lane asks of a sink, whatever is spoken on the wire."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import msgspec

from exporter.core.delivery.batches import BatchLimits
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


class Sink(Protocol):
    """One place that takes events. `token` is what it is authorised by now; a refused one closes the sink's gate.

    `store` is which store answered last, where the receiver says so: another one than before has lost what it had.
    """

    name: str
    url: str
    token: Callable[[], str | None]
    token_refused: str | None
    store: str | None
    capabilities: Capabilities

    def limits(self) -> BatchLimits: ...

    def body_refused(self, size: int) -> None: ...

    async def register(self, session: str, remote_id: str | None, *, restore: bool = False) -> Registration: ...

    async def send(
        self, remote_id: str, ids: Sequence[str], lines: Sequence[bytes], rewound: Sequence[str] = ()
    ) -> Sent: ...

    async def items(self, remote_id: str) -> dict[str, bytes] | Verdict: ...

    async def report(self, path: str, method: str, body: Mapping[str, object]) -> bool: ...

    async def live(self, remote_id: str, lines: Sequence[bytes]) -> None: ...

    async def close(self) -> None: ...
