"""Tokens and cost of a session, each with the source that tells it, and how far behind its exporter is."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from exporter.missioncontrol.pages.formats import counted, duration, short_number
from exporter.missioncontrol.pages.timeline.windows import Figures

SOURCES: Final = {"usage_record": "usage records", "shutdown": "end of session"}
_SHORT: Final = {"usage_record": "records", "shutdown": "at end"}
_TOKENS: Final = {
    "input": "input",
    "output": "output",
    "cache_read": "read from cache",
    "cache_write": "written to cache",
    "reasoning": "reasoning",
}
_TOKENS_SHORT: Final = {"input": "in", "output": "out"}
_DECIMALS: Final = 6


Number = tuple[bool, str, str, str]
"""Whether another number stands before it; all digits, how it is shown, and what it counts."""


class Told(NamedTuple):
    """What some sources tell in common."""

    numbers: list[Number]
    sources: str


def tokens(figures: Figures, *, long: bool = False) -> list[Told]:
    """Return tokens by source; sources that say the same are named together, others stand below each other."""
    names = _TOKENS if long else _TOKENS_SHORT
    return _told({name: figures[name] for name in names if name in figures}, names, short_number, long)


def cost(figures: Figures, *, long: bool = False) -> list[Told]:
    """Return the cost by source."""
    return _told({"cost": figures.get("cost", {})}, {"cost": ""}, lambda value: f"{value:,.2f}", long)


def _told(figures: Figures, names: dict[str, str], shorten: Callable[[float], str], long: bool) -> list[Told]:
    """Return a line for each source, one line for sources whose numbers are equal to the last digit.

    Where the two differ and would look alike when they are shortened, their digits are told.
    """
    numbers: dict[str, list[Number]] = {}
    for name, told in figures.items():
        digits = {source: exact(value) for source, value in told.items()}
        shown = {source: shorten(value) for source, value in told.items()}
        if len({*shown.values()}) < len({*digits.values()}):
            shown = digits
        for source in told:
            line = numbers.setdefault(source, [])
            line.append((bool(line), digits[source], shown[source], names[name]))
    named = SOURCES if long else _SHORT
    lines = [Told(numbers[source], named[source]) for source in SOURCES if source in numbers]
    if len(lines) == 2 and lines[0].numbers == lines[1].numbers:
        return [Told(lines[0].numbers, f"{lines[0].sources} = {lines[1].sources}")]
    return lines


def exact(value: float) -> str:
    """Return all digits of a number, with its thousands apart; a sum of fractions has some that nobody has told."""
    rounded = round(value, _DECIMALS)
    return f"{int(rounded):,}" if rounded == int(rounded) else f"{rounded:,.{_DECIMALS}f}".rstrip("0")


def lag_of(lag: dict[str, Any]) -> str:
    """Return how far behind the exporter of a session is with it."""
    seconds, events = float(lag["lag_seconds"]), lag.get("lag_events")
    if not events and seconds < 1:
        return "none"
    return f"{duration(seconds)} · {counted(events, 'event')}" if events else duration(seconds)
