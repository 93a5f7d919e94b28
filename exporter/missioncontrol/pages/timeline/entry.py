"""One thing that a person sees in a timeline: made of one event or of several that belong together.

An entry also has its place in time: the day that begins with it, and its bar in its interaction.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Any, Final, Literal

from exporter.core.events.envelope import Envelope, read_object
from exporter.missioncontrol.pages.formats import parsed, seconds_between, utc
from exporter.missioncontrol.store.amounts import amount

Kind = Literal["user", "assistant", "tool", "turn", "note", "mark", "problem", "wait", "helper", "other"]
Level = Literal["", "notice", "warning", "error"]
TEXT_MAX: Final = 20_000
BLOCK_MAX: Final = 4_000
LINE_MAX: Final = 240
Data = dict[str, Any]


class Large(str):
    """The beginning of a text of which the rest is kept apart, and read only where the whole event is."""

    __slots__ = ()


def restored(value: object) -> object:
    """Return data with `Large` texts where the store holds stand-ins for them."""
    if isinstance(value, dict):
        stand_in = value.get("$large") if len(value) == 1 else None
        if isinstance(stand_in, dict) and isinstance(stand_in.get("start"), str):
            return Large(stand_in["start"] + "…")
        return {name: restored(one) for name, one in value.items()}
    return [restored(one) for one in value] if isinstance(value, list) else value


def data_of(envelope: Envelope) -> Data:
    """Return the data of an event as far as it can be read."""
    data = read_object(envelope.data)
    if b'"$large"' not in bytes(envelope.data):
        return data
    try:
        return {name: restored(value) for name, value in data.items()}
    except RecursionError:
        return {}


@dataclass(frozen=True, slots=True)
class Block:
    """A longer text under an entry; `is_cut` when the event holds more of it."""

    label: str
    text: str
    is_cut: bool = False
    event: str = ""


@dataclass(slots=True)
class Entry:
    """What is shown, independent of how. It grows while further events of the same thing come."""

    kind: Kind
    id: str
    at: str
    agent: str | None
    place: tuple[int, int]
    type: str
    title: str = ""
    line: str = ""
    text: str = ""
    level: Level = ""
    facts: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    end: str | None = None
    is_running: bool = False
    key: str = ""
    stops: tuple[str, ...] = ()
    day: str = ""
    bar: tuple[str, str, str] | None = None
    """How long it took, in milliseconds, and where its bar stands in its interaction, in hundredths: left and width."""

    @property
    def seconds(self) -> float | None:
        """How long it took, when it has ended."""
        return seconds_between(self.at, self.end)

    @property
    def version(self) -> str:
        """Changes whenever what is shown changes."""
        return f"{len(self.ids)}.{len(self.facts)}.{len(self.blocks)}.{int(self.is_running)}"


def begin(kind: Kind, envelope: Envelope, place: tuple[int, int], title: str = "") -> Entry:
    """Return an entry that begins with an event."""
    return Entry(
        kind, envelope.id, envelope.timestamp, envelope.agentId, place, envelope.type, title, ids=[envelope.id]
    )


def text_of(data: Data, *names: str) -> str:
    """Return the first of these fields that is a text and not empty."""
    for name in names:
        value = data.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def number_of(data: Data, name: str) -> float | None:
    """Return a field that is a number with which one can calculate."""
    return amount(data.get(name))


def inner(data: Data, name: str) -> Data:
    """Return a field that is an object, else an empty one."""
    value = data.get(name)
    return value if isinstance(value, dict) else {}


def one_line(text: str) -> str:
    """Return the beginning of a text on one line."""
    flat = " ".join(text[: LINE_MAX * 4].split())
    return flat if len(flat) <= LINE_MAX else flat[: LINE_MAX - 1] + "…"


def block(label: str, text: str, event: str, length_max: int = BLOCK_MAX) -> Block:
    """Return a text as a block, cut when it is long."""
    return Block(label, str(text[:length_max]), len(text) > length_max or isinstance(text, Large), event)


_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def mark_days(entries: Iterable[Entry], above: str = "") -> str:
    """Give each entry the day that begins with it, and return the last; `above` is the day of what stands above."""
    for entry in entries:
        day = day_of(entry.at)
        if day and day != above:
            entry.day = above = day
    return above


def day_of(timestamp: str) -> str:
    """Return the day in UTC, as in "Wednesday 2026-11-18"; nothing when the timestamp does not tell it."""
    at = utc(timestamp)
    return _name_of(at.date()) if at else ""


@lru_cache(maxsize=64)
def _name_of(day: date) -> str:
    return f"{_WEEKDAYS[day.weekday()]} {day.isoformat()}"


def mark_bars(entries: Sequence[Entry]) -> None:
    """Give each call and turn its bar: when in its interaction it was, and how long it took."""
    start = 0
    for number, entry in enumerate(entries):
        if entry.kind == "user" and entry.agent is None and number > start:
            _mark_interaction(entries[start:number])
            start = number
    _mark_interaction(entries[start:])


def _mark_interaction(entries: Sequence[Entry]) -> None:
    told = [entry for entry in entries if entry.kind in ("user", "assistant", "tool", "turn")]
    times = [at for entry in told for text in (entry.at, entry.end) if (at := parsed(text)) and at.tzinfo]
    if not times:
        return
    first = min(times)
    whole = max((max(times) - first).total_seconds(), 0.001)
    for entry in told:
        start = parsed(entry.at)
        if entry.kind in ("tool", "turn") and start is not None and start.tzinfo is not None:
            took = entry.seconds or 0.0
            left = min(100.0, max(0.0, (start - first).total_seconds() / whole * 100))
            width = min(100 - left, max(0.4, took / whole * 100))
            entry.bar = (f"{took * 1000:.0f}", f"{left:.2f}", f"{width:.2f}")
