"""What the exporter has to say about itself: values that `observe.py` turns into a log line and a count each."""

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
