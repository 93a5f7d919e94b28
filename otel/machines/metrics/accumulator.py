"""What an accumulator adds up: measurements of one short span of time, and the sums of a series since its start."""

from bisect import bisect_left
from operator import add
from typing import TypeAlias

import msgspec

from otel.model import Context, Exemplar, HistogramPoint, Measurement, Point
from otel.name_types import Instrument, Value

Labels: TypeAlias = "tuple[Value | None, ...] | None"
"""Labels in the instrument's own order; None stands for all those that there was no room for."""
Key: TypeAlias = tuple[Instrument, Labels]
AnyPoint: TypeAlias = Point | HistogramPoint

MILLISECOND = 1_000_000
_NO_MINIMUM = float("inf")
_NO_MAXIMUM = float("-inf")


class Accumulator(msgspec.Struct, array_like=True, gc=False):
    """Measurements of one series, added up: of one span of time, or of all time since `first_ns`.

    `buckets` has a count per bucket of a histogram, and is empty for a counter.
    """

    first_ns: int
    last_ns: int
    count: int
    total: int | float
    minimum: float
    maximum: float
    buckets: list[int]
    exemplar: tuple[int, float, bytes, bytes] | None = None

    def add(self, measurement: Measurement, bounds: tuple[float, ...]) -> None:
        """Add one measurement of the same series."""
        time_ns, value, context = measurement.time_ns, measurement.value, measurement.context
        # Comparisons, and not min() and max(), because this is done for every measurement.
        self.last_ns = time_ns if time_ns > self.last_ns else self.last_ns
        self.first_ns = time_ns if time_ns < self.first_ns else self.first_ns
        self.count += 1
        self.total += value
        if bounds:
            self.buckets[bisect_left(bounds, value)] += 1
            self.minimum = value if value < self.minimum else self.minimum
            self.maximum = value if value > self.maximum else self.maximum
        if context is not None:
            self.exemplar = (time_ns, value, context.trace_id, context.span_id)

    def merge(self, other: "Accumulator") -> None:
        """Add what another cell of the same series has."""
        self.first_ns = other.first_ns if other.first_ns < self.first_ns else self.first_ns
        self.last_ns = other.last_ns if other.last_ns > self.last_ns else self.last_ns
        self.count += other.count
        self.total += other.total
        if self.buckets:
            self.minimum = other.minimum if other.minimum < self.minimum else self.minimum
            self.maximum = other.maximum if other.maximum > self.maximum else self.maximum
            self.buckets = list(map(add, self.buckets, other.buckets))
        self.exemplar = other.exemplar or self.exemplar

    def copy(self) -> "Accumulator":
        """Return another cell with the same contents."""
        return Accumulator(
            self.first_ns,
            self.last_ns,
            self.count,
            self.total,
            self.minimum,
            self.maximum,
            self.buckets.copy(),
            self.exemplar,
        )

    def point(self, key: Key, start_ns: int, time_ns: int, shown: "Accumulator | None" = None) -> AnyPoint:
        """Return the data point of these sums, with the exemplar of the cell that is `shown` in it first."""
        instrument, labels = key
        shown_labels = labels if labels is not None else (None,) * len(instrument.labels)
        overflow = labels is None
        exemplar = _exemplar(shown) if shown is not None else None
        if instrument.kind != "histogram":
            return Point(shown_labels, start_ns, time_ns, self.total, exemplar, overflow)
        return HistogramPoint(
            shown_labels,
            start_ns,
            time_ns,
            self.count,
            self.total,
            tuple(self.buckets),
            self.minimum if self.count else 0.0,
            self.maximum if self.count else 0.0,
            exemplar,
            overflow,
        )


def cell_of(measurement: Measurement, bounds: tuple[float, ...]) -> Accumulator:
    """Return a cell with one measurement."""
    time_ns, value, context = measurement.time_ns, measurement.value, measurement.context
    exemplar = (time_ns, value, context.trace_id, context.span_id) if context is not None else None
    if not bounds:
        return Accumulator(time_ns, time_ns, 1, 0 + value, _NO_MINIMUM, _NO_MAXIMUM, [], exemplar)
    buckets = [0] * (len(bounds) + 1)
    buckets[bisect_left(bounds, value)] = 1
    return Accumulator(time_ns, time_ns, 1, 0 + value, value, value, buckets, exemplar)


def empty(bounds: tuple[float, ...]) -> Accumulator:
    """Return a cell of nothing, which takes its time from what is added first."""
    return Accumulator(2**63 - 1, 0, 0, 0, _NO_MINIMUM, _NO_MAXIMUM, [0] * (len(bounds) + 1) if bounds else [])


def _exemplar(cell: Accumulator) -> Exemplar | None:
    if cell.exemplar is None:
        return None
    time_ns, value, trace_id, span_id = cell.exemplar
    return Exemplar(time_ns, value, Context(trace_id, span_id))
