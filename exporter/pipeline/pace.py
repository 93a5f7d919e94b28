"""How fast one session goes to one sink: events gather a little, and what does not help is tried less often."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from exporter.core.delivery.verdict import Later
from exporter.sinks.mission_control import retry_delay_seconds

GATHER_SECONDS: Final = 0.005
_GATHER_BYTES_MAX: Final = 65_536
_SETBACKS_HEAD_START: Final = 4


@dataclass(slots=True)
class Pace:
    """When something was sent last, until when the session is left alone, and how often it was set back in a row."""

    rest_until: float = 0.0
    setbacks: int = 0
    _last_sent: float = 0.0

    def sends(self) -> None:
        """Note that something is sent now."""
        self._last_sent = time.monotonic()

    async def gather(self, waiting_bytes: int) -> None:
        """Above 200 requests a second let events gather for some milliseconds; never delay the first after a pause."""
        wait = self._last_sent + GATHER_SECONDS - time.monotonic()
        if wait > 0 and waiting_bytes < _GATHER_BYTES_MAX:
            await asyncio.sleep(wait)

    def rest(self, seconds: float) -> None:
        """Leave the session alone for so long."""
        self.rest_until = time.monotonic() + seconds

    def set_back(self, why: str) -> bool:
        """Slow down when beginning again did not help, from the second time in a row; return whether to say so."""
        self.setbacks += 1
        if self.setbacks > 1:
            self.rest(retry_delay_seconds(self.setbacks + _SETBACKS_HEAD_START, Later(why)))
        return self.setbacks == 2
