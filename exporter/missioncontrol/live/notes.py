"""What receivers of one store tell each other, so that pages at each of them are live.

A note says what happened, not what it is: stored events are read from the store. Only ephemeral events are in a note,
because they are stored nowhere. Notes may be lost, and nothing that is stored depends on one.
"""

from collections.abc import Callable
from typing import Final, Literal, Protocol, TypeAlias

import msgspec


class Note(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One thing that happened at another receiver to a session, or to an exporter.

    `first` and `count` are the numbers of new events, `events` are ephemeral ones.
    """

    kind: Literal["stored", "live", "session", "deleted", "exporter"]
    id: str
    first: int = 0
    count: int = 0
    events: tuple[bytes, ...] = ()


Heard: TypeAlias = Callable[[Note], None]
encode_notes: Final = msgspec.msgpack.Encoder().encode
decode_notes: Final = msgspec.msgpack.Decoder(list[Note]).decode


class Notes(Protocol):
    """Tells the other receivers; `Store.open_notes` was given what hears them."""

    def tell(self, note: Note, /) -> None:
        """Tell a note soon, from any thread; it returns at once."""

    def close(self) -> None:
        """Tell and hear no more. A second call does nothing."""


class NoNotes:
    """For a store with one receiver: nobody is told."""

    def tell(self, note: Note, /) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""
