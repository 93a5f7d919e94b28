"""How many events a second every source has read lately."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

NOTED_SECONDS: Final = 2.0
"""How often `note` is to be called."""
_NOTES: Final = 5
_SECONDS_MIN: Final = 1.0


class Rates:
    """Counts, noted every two seconds; the rate of a source is over the last ten. `read` counts since the start."""

    def __init__(self, read: Callable[[], Mapping[str, int]]) -> None:
        self._read = read
        self._noted: deque[tuple[float, Mapping[str, int]]] = deque([(time.monotonic(), {})], maxlen=_NOTES)

    def note(self) -> None:
        """Note how much has been read until now."""
        self._noted.append((time.monotonic(), dict(self._read())))

    def per_second(self) -> dict[str, float]:
        """Return the events of a second by the name of the source."""
        since, before = self._noted[0]
        seconds = max(_SECONDS_MIN, time.monotonic() - since)
        read = {name: max(0, count - before.get(name, 0)) for name, count in self._read().items()}
        return {name: round(count / seconds, 1) for name, count in read.items()}
