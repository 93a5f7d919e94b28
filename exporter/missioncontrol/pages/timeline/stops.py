"""Where a person stops who goes from error to error or from notification to notification.

The page's keys and the address that leads to what the page does not hold stop at the same events.
"""

from typing import Final

from exporter.missioncontrol.pages.timeline import notes, tools
from exporter.missioncontrol.pages.timeline.entry import Data, Stop

TOOL_END: Final = "tool.execution_complete"
_NOTIFICATION: Final = "system.notification"
_ALWAYS: Final = ("session.error", "subagent.failed", "model.call_failure")
_UNLESS_GOOD: Final = ("hook.end", "session.compaction_complete")
TYPES: Final[dict[Stop, tuple[str, ...]]] = {
    "error": (TOOL_END, _NOTIFICATION, "session.shutdown", *_ALWAYS, *_UNLESS_GOOD),
    "note": (_NOTIFICATION, "session.custom_notification", "session.warning"),
}
"""What may be a stop of each kind."""


def stops_of(event_type: str, data: Data) -> tuple[Stop, ...]:
    """Return what a person may look for who wants to see this event; each such event has an entry in the timeline."""
    kinds: tuple[Stop, ...] = ("error",) if _is_trouble(event_type, data) else ()
    return (*kinds, "note") if event_type in TYPES["note"] else kinds


def _is_trouble(event_type: str, data: Data) -> bool:
    if event_type == TOOL_END:
        return tools.is_trouble(data)
    if event_type == _NOTIFICATION:
        told = notes.told(event_type, data)
        return told is not None and told[1] in ("warning", "error")
    if event_type == "session.shutdown":
        return data.get("shutdownType") == "error"
    return event_type in _ALWAYS or (event_type in _UNLESS_GOOD and data.get("success") is False)
