"""Names that files and sinks have, in one place because several parts must agree on them."""

from typing import Final

MARKS: Final = "marks.db"
QUARANTINE: Final = "quarantine.db"
RECEIVER: Final = "mission_control.db"
LOCAL: Final = "local"
"""The sink that is the embedded Mission Control."""


def sink_name(configured: str) -> str:
    """Return the name as a sink of a Mission Control that the settings call `configured`."""
    return "mission_control" if configured == "default" else f"mission_control.{configured}"


def host_of(url: str) -> str:
    """Return the host of an address, without what may be secret in it."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2]
