"""A list of measurements in the making, all of one session and repository."""

from typing import Final

from otel.model import Context, Measurement
from otel.name_types import Instrument, Value

_TEXT_CHARACTERS_MAX: Final = 256
_CALLS_SPREAD_MAX: Final = 10_000
_AMOUNT_MAX: Final = 2**60


class Meter:
    """Notes measurements of one moment and place; each has the labels that all metrics share behind its own.

    `shared` are the values of `instruments.SHARED`.

    The moment and the place (`time_ns`, `context`) may be set anew for what follows.
    """

    __slots__ = ("context", "found", "shared", "time_ns")

    def __init__(self, shared: tuple[Value | None, ...], time_ns: int, context: Context | None = None) -> None:
        self.found: list[Measurement] = []
        self.time_ns = time_ns
        self.context = context
        self.shared = shared

    def note(self, instrument: Instrument, value: float | None, *labels: Value | None) -> None:
        """Note a value, unless there is none; `labels` are the instrument's own ones."""
        if value is not None:
            self.found.append(Measurement(instrument, self.time_ns, value, labels + self.shared, self.context))

    def add(self, instrument: Instrument, value: float | None, labels: tuple[Value | None, ...]) -> None:
        """Note a value, unless there is none; `labels` are all that it has."""
        if value is not None:
            self.found.append(Measurement(instrument, self.time_ns, value, labels, self.context))

    def spread(self, instrument: Instrument, total: int, calls: int, *labels: Value | None) -> None:
        """Note what is known of several calls in total only: as many values as calls, that come to exactly that."""
        if not 0 < calls <= _CALLS_SPREAD_MAX:
            return
        each, rest = divmod(total, calls)
        for call in range(calls):
            self.note(instrument, each + (call < rest), *labels)


def label(value: object) -> Value | None:
    """Return what of a value of an event can be a label."""
    if type(value) is str:
        return (value if len(value) <= _TEXT_CHARACTERS_MAX else value[:_TEXT_CHARACTERS_MAX]) or None
    return value if isinstance(value, bool | int) else None


def amount(value: object) -> int | float | None:
    """Return what of a value of an event can be added up: nothing negative or endless, and whole numbers as such."""
    if type(value) is int:
        return value if 0 <= value <= _AMOUNT_MAX else None
    if not isinstance(value, float) or not 0 <= value <= _AMOUNT_MAX:
        return None
    return int(value) if value.is_integer() else value
