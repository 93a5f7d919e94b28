"""Where a person stops who goes from error to error or from notification to notification.

The page's keys and the address that leads to what the page does not hold stop at the same events.
"""

from typing import Final

from exporter.missioncontrol.pages.timeline import notes, tools, windows
from exporter.missioncontrol.pages.timeline.entry import Data, Stop, data_of
from exporter.missioncontrol.store.port import Database

_NOTIFICATION: Final = "system.notification"
_ALWAYS: Final = ("session.error", "subagent.failed", "model.call_failure")
_UNLESS_GOOD: Final = ("hook.end", "session.compaction_complete")
TYPES: Final[dict[Stop, tuple[str, ...]]] = {
    "error": (windows.TOOL_END, _NOTIFICATION, "session.shutdown", *_ALWAYS, *_UNLESS_GOOD),
    "note": (_NOTIFICATION, "session.custom_notification", "session.warning"),
}
"""What may be a stop of each kind."""


def stops_of(event_type: str, data: Data) -> tuple[Stop, ...]:
    """Return what a person may look for who wants to see this event; each such event has an entry in the timeline."""
    kinds: tuple[Stop, ...] = ("error",) if _is_trouble(event_type, data) else ()
    return (*kinds, "note") if event_type in TYPES["note"] else kinds


def _is_trouble(event_type: str, data: Data) -> bool:
    if event_type == windows.TOOL_END:
        return tools.is_trouble(data)
    if event_type == _NOTIFICATION:
        told = notes.told(event_type, data)
        return told is not None and told[1] in ("warning", "error")
    if event_type == "session.shutdown":
        return data.get("shutdownType") == "error"
    return event_type in _ALWAYS or (event_type in _UNLESS_GOOD and data.get("success") is False)


def next_stop(database: Database, session_id: str, kind: Stop, after: str | None, *, is_back: bool) -> str | None:
    """Return the event of the stop behind another event, or before it; going round at the end."""
    stops = [stop for stop in _stops(database, session_id, kind) if stop[1] != after]
    if after is None or not stops:
        return stops[-1 if is_back else 0][1] if stops else None
    here = windows.place_of(database, session_id, after)[1:]
    if is_back:
        return next((id for place, id in reversed(stops) if place < here), stops[-1][1])
    return next((id for place, id in stops if place > here), stops[0][1])


def _stops(database: Database, session_id: str, kind: Stop) -> list[tuple[tuple[int, int], str]]:
    """Return where the entries of a kind are and their events, in the order of the timeline.

    A call and its end are one entry, which stands where the call began.
    """
    stops: list[tuple[tuple[int, int], str]] = []
    for row in windows.all_of_types(database, session_id, TYPES[kind]):
        if kind in stops_of(row.envelope.type, data_of(row.envelope)):
            is_end = row.envelope.type == windows.TOOL_END
            entry = (windows.beginning_of(database, session_id, row) if is_end else None) or row
            stops.append((entry.place, entry.envelope.id))
    return sorted(stops)
