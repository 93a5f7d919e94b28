"""Messages of the exporter about itself: values that `NoticeLog` writes, those about one fault of a sink together."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum, unique
from typing import Final

_WINDOWS_SECONDS: Final = (60.0, 600.0, 3_600.0)
"""How long repetitions are gathered: after the first line, after the second, and from then on."""
_FORGOTTEN_SECONDS: Final = 180.0
"""When a fault is over that did not come again: longer than the pauses in which sinks are tried."""
_FAULTS_MAX: Final = 1_000


class Level(IntEnum):
    """What the operator must do: act now, look some day, nothing."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


@unique
class NoticeName(StrEnum):
    """What a notice is about: `event` of a line of the log. docs/operations.md says what each means."""

    STARTED = "started"
    PAGE = "page"
    READY = "ready"
    CAUGHT_UP = "caught_up"
    LINGERING = "lingering"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"
    NOTE = "note"
    LIBRARY = "library"
    SETTINGS_NOTE = "settings_note"

    SINK_WAITING = "sink_waiting"
    SINK_ACTION_REQUIRED = "sink_action_required"
    SINK_REFUSED = "sink_refused"
    SINK_RECOVERED = "sink_recovered"
    SINK_WARNS = "sink_warns"
    SIGNAL_OFF = "signal_off"
    TELEMETRY_REJECTED = "telemetry_rejected"
    METRIC_SUMS_LOST = "metric_sums_lost"
    RECEIVER_STORE_CHANGED = "receiver_store_changed"
    RECEIVER_STORE_OLDER = "receiver_store_older"

    SESSION_STOPPED = "session_stopped"
    SESSION_DELAYED = "session_delayed"
    SESSION_RESUMED = "session_resumed"
    SESSION_RECREATED = "session_recreated"
    SESSION_RESENT = "session_resent"
    SESSION_REWOUND = "session_rewound"
    SESSION_FILE_GONE = "session_file_gone"
    QUARANTINED = "quarantined"
    QUARANTINE_FULL = "quarantine_full"

    HOME_MISSING = "home_missing"
    HOME_FOUND = "home_found"
    HOME_UNREADABLE = "home_unreadable"
    SESSION_IN_TWO_HOMES = "session_in_two_homes"
    SOURCE_STOPPED = "source_stopped"
    SOURCE_PAUSED = "source_paused"
    TAP_CANNOT_LISTEN = "tap_cannot_listen"

    STATE_COPIED = "state_copied"
    STATE_GONE = "state_gone"
    DATABASE_SET_ASIDE = "database_set_aside"
    KEY_SET_ASIDE = "key_set_aside"
    STORE_KEPT = "store_kept"
    STORE_AWAY = "store_away"
    FEW_OPEN_FILES = "few_open_files"
    TOO_MANY_OPEN_FILES = "too_many_open_files"
    DEFECT = "defect"


@dataclass(frozen=True, slots=True)
class Notice:
    """A constant `message` with variable `fields`; never session content, never a secret."""

    name: NoticeName
    level: Level
    message: str
    session: str | None = None
    sink: str | None = None
    url: str | None = None
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class _Fault:
    """A fault that was written, and what came of it since: how often, of how many sessions, about how many events."""

    notice: Notice
    until: float
    last: float
    window: int = 0
    times: int = 0
    events: int = 0
    sessions: set[str] = field(default_factory=set)

    def add(self, notice: Notice, now: float) -> None:
        self.times += 1
        self.last = now
        if isinstance(events := notice.fields.get("events"), int):
            self.events += events
        if notice.session is not None:
            self.sessions.add(notice.session)

    def summary(self) -> Notice:
        counted = {"events": self.events, "sessions": len(self.sessions), "times": self.times}
        fields = dict(self.notice.fields) | {name: count for name, count in counted.items() if count}
        return replace(self.notice, session=None, fields=fields)


class NoticeLog:
    """Writes notices at or above `level`.

    A fault of a sink is written at once, and then as one line with how often it came, after a minute, ten minutes and
    every hour, whatever sessions it comes of. `flush` has to be called now and then; `now` is a monotonic clock.
    """

    def __init__(self, level: Level, write: Callable[[Notice], None], now: Callable[[], float]) -> None:
        self._level = level
        self._write = write
        self._now = now
        self._faults: dict[tuple[object, ...], _Fault] = {}

    def __call__(self, notice: Notice) -> None:
        """Take one notice."""
        if notice.level < self._level:
            return
        is_fault = notice.level >= Level.WARNING or notice.name is NoticeName.SINK_RECOVERED
        if notice.sink is None or not is_fault:
            self._write(notice)
            return
        what = [notice.fields.get(name) for name in ("why", "reason", "status")]
        key = (notice.name, notice.sink, notice.message, *map(str, what))
        if (fault := self._faults.get(key)) is not None:
            fault.add(notice, self._now())
            return
        if len(self._faults) < _FAULTS_MAX:
            now = self._now()
            self._faults[key] = _Fault(notice, now + _WINDOWS_SECONDS[0], now)
        self._write(notice)

    def flush(self, *, at_once: bool = False) -> None:
        """Write what was gathered for long enough, or all of it; forget what did not come again."""
        now = self._now()
        for key, fault in list(self._faults.items()):
            if fault.times and (now >= fault.until or at_once):
                self._write(fault.summary())
                window = min(fault.window + 1, len(_WINDOWS_SECONDS) - 1)
                self._faults[key] = _Fault(fault.notice, now + _WINDOWS_SECONDS[window], fault.last, window)
            elif not fault.times and now >= fault.last + _FORGOTTEN_SECONDS:
                del self._faults[key]
