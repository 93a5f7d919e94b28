"""Where entries stand in time: the days that begin with them, the bars of their interactions, the colours of agents."""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from exporter.missioncontrol.pages.formats import parsed, utc
from exporter.missioncontrol.pages.timeline.entry import Bar, Entry

_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_AGENT_COLOURS: Final = 6


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
            entry.bar = Bar(f"{took * 1000:.0f}", f"{left:.2f}", f"{width:.2f}")


def colour_of(agent: str) -> str:
    """Return the class of an agent's colour, the same wherever it is shown."""
    return f"agent-{blake2b(agent.encode('utf-8', 'replace'), digest_size=1).digest()[0] % _AGENT_COLOURS}"
