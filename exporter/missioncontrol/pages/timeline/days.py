"""The days of a timeline: an entry with which a day begins says which day it is, for its time alone does not."""

from collections.abc import Iterable
from typing import Final

from exporter.missioncontrol.pages.markup import escape, utc
from exporter.missioncontrol.pages.timeline.entry import Entry

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
    return f"{_WEEKDAYS[at.weekday()]} {at.date().isoformat()}" if at else ""


def heading(entry: Entry) -> str:
    """Return the heading of the day that begins with an entry.

    It is a part of its entry, so that whatever moves or renews the entry does so with its heading. Its time element has
    no moment of its own: the script would turn that into how long ago it was.
    """
    if not entry.day:
        return ""
    weekday, _, date = entry.day.partition(" ")
    return f'<h2 class="day">{weekday} <time>{escape(date)}</time></h2>'
