"""Messages of the exporter about itself: values that `NoticeLog` counts and writes."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum


class Level(IntEnum):
    """What the operator must do: act now, look some day, nothing."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


@dataclass(frozen=True, slots=True)
class Notice:
    """A constant `message` with variable `fields`; never session content, never a secret."""

    level: Level
    message: str
    session: str | None = None
    sink: str | None = None
    fields: dict[str, object] = field(default_factory=dict)


class NoticeLog:
    """Counts every notice by its message and writes those at or above `level`."""

    def __init__(self, level: Level, write: Callable[[Notice], None]) -> None:
        self.counts: Counter[str] = Counter()
        self._level = level
        self._write = write

    def __call__(self, notice: Notice) -> None:
        """Take one notice."""
        self.counts[notice.message] += 1
        if notice.level >= self._level:
            self._write(notice)
