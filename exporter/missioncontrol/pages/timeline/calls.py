"""Tool calls that begin in a window of a timeline and end behind it: they have ended, wherever a reader looks."""

from dataclasses import replace
from typing import Final

from exporter.missioncontrol.pages.timeline.entry import data_of, text_of
from exporter.missioncontrol.pages.timeline.stops import TOOL_END
from exporter.missioncontrol.pages.timeline.windows import EventPlace, TimelineRow, Window, further_of_types
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import number_of

TOOL_START: Final = "tool.execution_start"
_LOOKED_THROUGH_MAX: Final = 2000
"""How many ends, or beginnings, of calls are looked through for those of some."""


def with_ends(database: Database, session_id: str, window: Window) -> Window:
    """Return the window with the ends of the tool calls that are still open where it ends."""
    open_calls: set[str] = set()
    for row in window.rows if window.behind else ():
        if row.envelope.type == TOOL_START:
            open_calls.add(_call_of(row))
        elif row.envelope.type == TOOL_END:
            open_calls.discard(_call_of(row))
    ends: list[TimelineRow] = []
    if open_calls:
        last = EventPlace(number_of(database, session_id), *window.rows[-1].place)
        for row in further_of_types(database, last, (TOOL_END,), _LOOKED_THROUGH_MAX):
            if (call := _call_of(row)) in open_calls:
                open_calls.discard(call)
                ends.append(row)
                if not open_calls:
                    break
    return replace(window, ends=tuple(ends))


def beginning_of(database: Database, session_id: str, call: str, end: TimelineRow) -> TimelineRow | None:
    """Return the event that began the call with this end, or None."""
    if not call:
        return None
    place = EventPlace(number_of(database, session_id), *end.place)
    starts = further_of_types(database, place, (TOOL_START,), _LOOKED_THROUGH_MAX, is_back=True)
    return next((row for row in starts if _call_of(row) == call), None)


def _call_of(row: TimelineRow) -> str:
    return text_of(data_of(row.envelope), "toolCallId")
