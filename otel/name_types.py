"""The type of a name: its spelling per convention, its value type, and its content level."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

InstrumentKind: TypeAlias = Literal["counter", "histogram", "up_down_counter", "gauge"]
Semconv: TypeAlias = Literal["latest", "legacy", "both"]
Value: TypeAlias = str | bool | int | float | tuple[str, ...]


class Content(IntEnum):
    """The content levels, each with everything of the ones before it; a name is sent from its own level up."""

    NONE = 0
    METADATA = 1
    REDACTED = 2


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """One attribute of spans, span events, log records or metric points. Compared by identity: a name exists once.

    `legacy` is the spelling of CLI 1.0.48, when it differs. `since` is the CLI version that has it, or "exporter"
    for what only we send.
    """

    latest: str
    type: type
    content: Content
    since: str
    legacy: str | None = None

    def spellings(self, semconv: Semconv) -> tuple[str, ...]:
        """Return the keys to write in a convention: one, or two when both are asked for and they differ."""
        if self.legacy is None or semconv == "latest":
            return (self.latest,)
        return (self.legacy,) if semconv == "legacy" else (self.latest, self.legacy)


@dataclass(frozen=True, slots=True, eq=False)
class EventName:
    """The name of a span event."""

    name: str
    since: str


@dataclass(frozen=True, slots=True, eq=False)
class Instrument:
    """A metric. `semconv` is the convention with which it is sent; "both" means always.

    `since` is the CLI version that has it, or "exporter" for what only we send.
    """

    name: str
    kind: InstrumentKind
    unit: str
    since: str
    semconv: Semconv = "both"
    labels: tuple[Attribute, ...] = ()
    bounds: tuple[float, ...] = field(default=())
    meaning: str = ""
