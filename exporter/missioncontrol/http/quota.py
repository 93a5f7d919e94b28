"""What a tenant may use: events a second, and bytes that are kept."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from exporter.missioncontrol.http.responses import ApiError
from exporter.missioncontrol.store.port import Store

_BURST_SECONDS: Final = 10.0
"""How much of the rate may come at once, and how long it is waited for at most."""
_LOOK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Quota:
    """What each tenant may use; None for no limit."""

    events_per_second: int | None = None
    bytes: int | None = None


class QuotaGate:
    """Refuses the uploads of a tenant that has used more than its quota. Only to be used on the event loop."""

    def __init__(self, quota: Quota, clock: Callable[[], float] = time.monotonic) -> None:
        self.quota = quota
        self.refused = 0
        self._clock = clock
        self._saved = _BURST_SECONDS * (quota.events_per_second or 0)
        self._at = clock()
        self._used, self._looked = 0, -math.inf

    async def admit(self, store: Store) -> None:
        """Raise `ApiError` 429 or 403 when nothing more may come now; a batch that is let in is taken whole."""
        if (rate := self.quota.events_per_second) is not None and self._level(rate) <= 0:
            self.refused += 1
            seconds = max(1, min(math.ceil(1 - self._saved / rate), 60))
            raise ApiError(
                429,
                "too_many_events",
                f"More than {rate} events a second arrive for this tenant.",
                hint="Nothing was stored; send it again later.",
                headers={"Retry-After": str(seconds)},
            )
        if (most := self.quota.bytes) is not None and await self._bytes(store) >= most:
            self.refused += 1
            raise ApiError(
                403,
                "quota_exceeded",
                f"This tenant keeps {most:,} bytes, and more are not stored.",
                hint="Delete sessions, keep them for fewer days, or raise receiver.quota.bytes.",
            )

    def spend(self, events: int, size: int) -> None:
        """Note what was let in."""
        if (rate := self.quota.events_per_second) is not None:
            self._saved = self._level(rate) - events
        self._used += size

    def _level(self, rate: int) -> float:
        now = self._clock()
        self._saved = min(self._saved + (now - self._at) * rate, _BURST_SECONDS * rate)
        self._at = now
        return self._saved

    async def _bytes(self, store: Store) -> int:
        """Return how much is kept: as it was some seconds ago, and what came since."""
        if self._clock() - self._looked > _LOOK_SECONDS:
            self._looked = self._clock()
            self._used = await store.read(lambda database: database.used_bytes())
        return self._used
