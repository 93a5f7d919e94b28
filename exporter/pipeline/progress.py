"""What a lane has done, and what troubles it."""

import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exporter.core.delivery.segment import Segment

UNWRITABLE: Final = "store_unwritable"
"""The problem of a lane whose mark cannot be written."""


@dataclass(slots=True)
class LaneProgress:
    """What one lane has done since the daemon started, and what troubles it."""

    events: int = 0
    bytes: int = 0
    masked: int = 0
    chain_breaks: int = 0
    bytes_gone: int = 0
    problem: str | None = None
    why: str | None = None
    troubled_since: float | None = None
    rules: Counter[str] = field(default_factory=Counter)

    def add(self, segment: Segment, events: int) -> None:
        """Count a segment of which the sink took so many events."""
        self.events += events
        self.bytes += segment.size
        for (_, rule), count in segment.masked.items():
            self.masked += count
            self.rules[rule] += count
        self.chain_breaks += segment.chain_breaks


def place_of(error: Exception) -> str:
    """Return where in our code an error came from, without its text."""
    *_, (frame, line) = traceback.walk_tb(error.__traceback__)
    return f"{Path(frame.f_code.co_filename).name}:{line}"
