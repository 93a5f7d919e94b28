"""Notices are counted and passed on; there is no other logging."""

from collections import Counter
from collections.abc import Callable

from exporter.core.notice import Level, Notice


class NoticeLog:
    """Counts every notice by its message and passes on those at or above `level`."""

    def __init__(self, level: Level, write: Callable[[Notice], None]) -> None:
        self.counts: Counter[str] = Counter()
        self._level = level
        self._write = write

    def __call__(self, notice: Notice) -> None:
        """Take one notice."""
        self.counts[notice.message] += 1
        if notice.level >= self._level:
            self._write(notice)
