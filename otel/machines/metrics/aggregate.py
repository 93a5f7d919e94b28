"""The sums of one stream of metrics: measurements in, points in the order of time out, state that outlives a crash.

Measurements carry the times of their events, may be years old and arrive in any order. They are summed per interval:
one point per series and interval. `points` returns them oldest first, and returns the same ones until `accepted`. State
stored by `dump` before sending makes a crash repeat exactly the same points, so nothing is counted twice or lost. No
clock, no input or output; no measurement makes it fail.

What happens now is collected as an SDK does it: `collect` returns one point of each series that has moved, and all
points of a request have the time of the collection, which grows from request to request. A store that takes no point
older than its newest takes all of these. A repeated collection has a later time and the same sums.

Backends interpolate between cumulative points and ignore the value of a series' first point. So the first point, and a
point after a silence, is preceded by a point with the value until then. A backend that has heard nothing of a series
for longer than it looks back counts its next value whole; so after such a silence a series begins anew: with a new
start and zero. While something repeats the points of what happens now, there is no such silence.

Prometheus takes a counter to grow beyond its last point by half a mean distance of points, so that N points tell one
part in 2 (N - 1) too much, whatever their distance. So in history a series that falls silent for long has a few more
points there, and at the end of it (`close`) each series has more.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import add
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from otel.instruments import instruments
from otel.model import Context, Exemplar, HistogramPoint, Measurement, Point, Temporality
from otel.names import CONVERSATION_ID, Content, Instrument, Semconv, Value

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
        return replace(self, buckets=self.buckets.copy())

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


def _more(key: Key, series: Accumulator, count: int) -> "list[AnyPoint]":
    """Return so many more points of a series as it is."""
    times = (series.last_ns + place * MILLISECOND for place in range(1, count + 1))
    return [series.point(key, series.first_ns, at) for at in times]


def empty(bounds: tuple[float, ...]) -> Accumulator:
    """Return a cell of nothing, which takes its time from what is added first."""
    return Accumulator(2**63 - 1, 0, 0, 0, _NO_MINIMUM, _NO_MAXIMUM, [0] * (len(bounds) + 1) if bounds else [])


def _exemplar(cell: Accumulator) -> Exemplar | None:
    if cell.exemplar is None:
        return None
    time_ns, value, trace_id, span_id = cell.exemplar
    return Exemplar(time_ns, value, Context(trace_id, span_id))


_VERSION: Final = 1
_ShowLabels: TypeAlias = "Callable[[Instrument, Mapping[str, Value | None]], Labels]"


@dataclass(slots=True)
class Sums:
    """`cells` are pending sums by interval; `ready` the sums being sent; `series` the sums already sent of each series.

    In a series, `first_ns` is its start and `last_ns` the time of its newest point.
    """

    width_ns: int
    cells: dict[int, dict[Key, Accumulator]] = field(default_factory=dict)
    ready: list[list[tuple[Key, Accumulator]]] = field(default_factory=list)
    series: dict[Key, Accumulator] = field(default_factory=dict)
    late: int = 0
    refused: int = 0

    def known(self) -> Iterator[Key]:
        """Every series that is known, some of them several times."""
        yield from self.series
        for spans in self.cells.values():
            yield from spans
        for pairs in self.ready:
            yield from (key for key, _ in pairs)


_Entry: TypeAlias = "tuple[str, list[str | bool | int | float | list[str] | None] | None, Accumulator]"


class _Written(msgspec.Struct, array_like=True):
    version: int
    width_ns: int
    labels: dict[str, list[str]]
    cells: list[tuple[int, list[_Entry]]]
    ready: list[list[_Entry]]
    series: list[_Entry]
    late: int
    refused: int


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Written).decode


def written(sums: Sums) -> bytes:
    """Return the state as bytes."""
    known = dict.fromkeys([instrument for instrument, _ in sums.known()])
    return _encode(
        [
            _VERSION,
            sums.width_ns,
            {instrument.name: [label.name for label in instrument.labels] for instrument in known},
            [(span, _entries(cells.items())) for span, cells in sums.cells.items()],
            [_entries(pairs) for pairs in sums.ready],
            _entries(sums.series.items()),
            sums.late,
            sums.refused,
        ]
    )


def _entries(pairs: Iterable[tuple[Key, Accumulator]]) -> list[tuple[str, Labels, Accumulator]]:
    return [(instrument.name, labels, cell) for (instrument, labels), cell in pairs]


def read(state: bytes, shown: _ShowLabels) -> Sums | None:
    """Return the state that `written` made into bytes, or None when they are none.

    Labels come back by name as `shown` wants to have them. What belongs to instruments that are gone, or have other
    buckets now, is left out, and so are series whose labels are others now: they begin anew.
    """
    try:
        found = _decode(state)
    except msgspec.MsgspecError:
        return None
    if found.version != _VERSION:
        return None
    known = {instrument.name: instrument for instrument in instruments()}
    sums = Sums(found.width_ns, late=found.late, refused=found.refused)

    def pairs(entries: list[_Entry], keep_changed: bool) -> Iterator[tuple[Key, Accumulator]]:
        for name, values, cell in entries:
            instrument = known.get(name)
            if instrument is None or len(cell.buckets) != (len(instrument.bounds) + 1 if instrument.bounds else 0):
                continue
            before = _labels(values)
            after = None if before is None else shown(instrument, dict(zip(found.labels[name], before, strict=False)))
            if keep_changed or before == after:
                yield (instrument, after), cell

    for span, entries in found.cells:
        merge_into(sums.cells.setdefault(span, {}), pairs(entries, True))
    for entries in found.ready:
        merged: dict[Key, Accumulator] = {}
        merge_into(merged, pairs(entries, True))
        sums.ready.append(list(merged.items()))
    sums.series.update(pairs(found.series, False))
    return sums


def _labels(values: list[str | bool | int | float | list[str] | None] | None) -> Labels:
    if values is None:
        return None
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def merge_into(cells: dict[Key, Accumulator], pairs: Iterable[tuple[Key, Accumulator]]) -> None:
    """Insert cells; merge those of the same series."""
    for key, cell in pairs:
        if key in cells:
            cells[key].merge(cell)
        else:
            cells[key] = cell


_SECOND: Final = 1_000_000_000
_SILENCE_NS: Final = 90 * _SECOND
_STALE_NS: Final = 300 * _SECOND
"""Prometheus forgets a series that is silent for so long, and looks back no further."""
_LAST_POINTS: Final = 24
_POINTS_BEFORE_SILENCE: Final = 8
_REPEATED_MAX: Final = 2_000
_READY_MAX: Final = 4_096
_POINTS_MAX: Final = 256
_TIME_NS_MAX: Final = 2**63 - 1 - MILLISECOND
_VALUE_MAX: Final = 2**40
_NO_CELLS: Final[Mapping[Key, Accumulator]] = MappingProxyType({})

Metrics: TypeAlias = list[tuple[Instrument, list[AnyPoint]]]
_Sort: TypeAlias = Literal["history", "closed", "begun", "moved", "repeated"]


@dataclass(frozen=True, slots=True)
class MetricStream:
    """How a stream is counted. `session_label` gives every session series of its own.

    At most `series_max` sets of labels are distinguished per instrument; the rest is one more series. No more than
    about `cells_max` spans of time of all series together wait to be sent: the spans grow instead. What happens now is
    repeated every `repeat_ns`, 0: not; without `repeats_idle` only series that moved within the last five minutes are.
    """

    temporality: Temporality = "cumulative"
    content: Content = Content.METADATA
    semconv: Semconv = "cli"
    session_label: bool = False
    width_ns: int = 10 * _SECOND
    series_max: int = 1_000
    cells_max: int = 8_000
    repeat_ns: int = 60 * _SECOND
    repeats_idle: bool = True


@dataclass(slots=True)
class _Series:
    """The series that measurements with the same labels belong to, and its cell of the span of time of the last one."""

    key: Key
    bounds: tuple[float, ...]
    span: int
    cell: Accumulator


class Aggregate:
    """The sums of one stream. `late` counts measurements older than what was sent before, `refused` unusable ones."""

    def __init__(self, stream: MetricStream | None = None) -> None:
        self._stream = stream or MetricStream()
        self._sums = Sums(self._stream.width_ns)
        self._waiting = 0
        self._label_sets: dict[Instrument, set[Labels]] = {}
        self._hidden = {instrument: self._hidden_positions(instrument) for instrument in instruments()}
        self._next_series: dict[Key, Accumulator] = {}
        self._next_late = 0
        self._collected: list[Key] = []
        self._newest_ns = 0
        self._repeat_at_ns = 0
        self._to_repeat: list[Key] = []
        self._moved_ns: dict[Key, int] = {}
        self._open: dict[Key, None] = {}
        self._last: _Sort = "history"

    @property
    def repeated(self) -> bool:
        """Whether the last points repeat what was accepted before, so that nothing is lost with them."""
        return self._last in ("repeated", "closed")

    @property
    def was_accepted(self) -> bool:
        """Whether any point was ever accepted."""
        return bool(self._sums.series)

    @property
    def late(self) -> int:
        """How many measurements came after newer ones of their series had been sent; they are in newer points."""
        return self._sums.late

    @property
    def refused(self) -> int:
        """How many measurements had no usable value or time."""
        return self._sums.refused

    @property
    def waits(self) -> bool:
        """Whether measurements were added that are not in accepted points."""
        return bool(self._sums.cells or self._sums.ready)

    def add(self, measurements: Iterable[Measurement]) -> None:
        """Add measurements; those of instruments outside the stream's convention are ignored."""
        sums, width_ns = self._sums, self._sums.width_ns
        series: dict[tuple[Instrument, Labels], _Series | None] = {}
        for measurement in measurements:
            key = (measurement.instrument, measurement.labels)
            try:
                one = series[key]
            except KeyError:
                one = series[key] = self._series(*key)
            if one is None:
                continue
            time_ns, value = measurement.time_ns, measurement.value
            if not (0 < time_ns <= _TIME_NS_MAX and 0 <= value <= _VALUE_MAX):
                sums.refused += 1
                continue
            span = time_ns // width_ns
            if span != one.span:
                cell = sums.cells.get(span, _NO_CELLS).get(one.key)
                if cell is None:
                    self._add_first(measurement, one.key[1])
                    if width_ns != sums.width_ns:  # all cells are others now
                        width_ns = sums.width_ns
                        series.clear()
                    continue
                one.span, one.cell = span, cell
            one.cell.add(measurement, one.bounds)

    def _series(self, instrument: Instrument, labels: tuple[Value | None, ...]) -> "_Series | None":
        """Return what measurements with these labels are added to, or None when nothing is sent of them."""
        places = self._hidden.get(instrument)
        if places is None:
            return None
        shown = tuple([None if place in places else label for place, label in enumerate(labels)]) if places else labels
        return _Series((instrument, shown), instrument.bounds, -1, empty(()))

    def points(self, until_ns: int | None = None) -> Metrics:
        """Return points to send, oldest first: of spans of time that ended by `until_ns`, or of all that there are.

        Nothing is forgotten before `accepted`; until then the answer is the same, whatever is added. There may be more
        than one answer holds, so ask again. An empty answer needs no `accepted`.
        """
        if not self._sums.ready:
            self._make_ready(until_ns)
        self._next_series, self._next_late, self._collected, self._last = {}, 0, [], "history"
        metrics: Metrics = []
        held: dict[Key, Accumulator] = {}
        for pairs in self._sums.ready:
            grouped: dict[Instrument, list[AnyPoint]] = {}
            for key, cell in pairs:
                series = self._next_series.get(key) or self._sums.series.get(key)
                if series is None or cell.last_ns > series.last_ns:
                    grouped.setdefault(key[0], []).extend(self._advance(key, cell, series, held.pop(key, None)))
                    continue
                self._next_late += cell.count
                if key in held:
                    held[key].merge(cell)
                else:
                    held[key] = cell.copy()
            metrics.extend(grouped.items())
        for key, cell in held.items():
            series = self._next_series.get(key) or self._sums.series.get(key)
            metrics.append((key[0], self._advance(key, cell, series, None)))
        return metrics

    def close(self) -> Metrics:
        """Return the last points of history: each series that moved a few times more, as it is.

        To be asked for when `points` has nothing left.
        """
        self._next_series, self._next_late, self._collected, self._last = {}, 0, [], "closed"
        metrics: Metrics = []
        for key in list(self._open)[:_POINTS_MAX]:
            series = self._sums.series.get(key)
            if series is None:
                continue
            total = series.copy()
            total.last_ns += _LAST_POINTS * MILLISECOND
            self._next_series[key] = total
            metrics.append((key[0], _more(key, series, _LAST_POINTS)))
        return metrics

    def collect(self, now_ns: int, *, repeats: bool = False) -> Metrics:
        """Return one point of each of some series that have moved since the last collection, for one request.

        A series that is new or was quiet first gets a point of the value until then; it begins anew where it was quiet
        for long. With `repeats` the other series follow when it is time to repeat them. Points that `points` returned
        and that were not accepted come first. Ask again until the answer is empty; `accepted` is as for `points`. For
        cumulative sums.
        """
        sums = self._sums
        if sums.ready:
            return self.points()
        time_ns = max(now_ns, self._newest_ns + MILLISECOND)
        moved = dict.fromkeys(key for cells in sums.cells.values() for key in cells)
        begins = [key for key in moved if time_ns - self._last_ns(key) > _SILENCE_NS][:_POINTS_MAX]
        chosen = begins or list(moved)[:_POINTS_MAX]
        self._last = "begun" if begins else "moved" if moved else "repeated"
        if not moved and repeats and self._stream.repeat_ns:
            chosen = self._due(time_ns)
        self._next_series, self._next_late = {}, 0
        self._collected = chosen if self._last == "moved" else []
        grouped: dict[Instrument, list[AnyPoint]] = {}
        for key in chosen:
            total = self._begun(key, time_ns, time_ns - MILLISECOND)
            start_ns, gained = total.first_ns, None
            if self._collected:
                gained = self._gained(key)
                total.merge(gained)
            total.first_ns, total.last_ns = start_ns, time_ns
            self._next_series[key] = total
            grouped.setdefault(key[0], []).append(total.point(key, start_ns, time_ns, gained))
        return list(grouped.items())

    def _begun(self, key: Key, time_ns: int, start_ns: int) -> Accumulator:
        """Return a copy of the sums of a series; of one that is new, or has been silent for long, nothing."""
        before = self._sums.series.get(key)
        if before is not None and time_ns - before.last_ns <= _STALE_NS:
            return before.copy()
        total = empty(key[0].bounds)
        total.first_ns = start_ns
        return total

    def _gained(self, key: Key) -> Accumulator:
        gained = empty(key[0].bounds)
        for cells in self._sums.cells.values():
            if key in cells:
                gained.merge(cells[key])
        return gained

    def _due(self, time_ns: int) -> list[Key]:
        """Return the series that are to be repeated now, some of them at a time."""
        if not self._to_repeat and time_ns >= self._repeat_at_ns:
            self._repeat_at_ns = time_ns + self._stream.repeat_ns * 9 // 10  # a timer may be early
            if not self._stream.repeats_idle:
                self._moved_ns = {key: at for key, at in self._moved_ns.items() if time_ns - at <= _STALE_NS}
            half = self._stream.repeat_ns // 2
            known = self._sums.series if self._stream.repeats_idle else self._moved_ns
            self._to_repeat = [key for key in known if time_ns - self._last_ns(key) > half]
        return self._to_repeat[-_REPEATED_MAX:]

    def _last_ns(self, key: Key) -> int:
        series = self._sums.series.get(key)
        return series.last_ns if series is not None else 0

    def accepted(self) -> None:
        """Record that the last points were accepted; the next call of `points` or `collect` returns newer ones."""
        sums = self._sums
        sums.series.update(self._next_series)
        sums.late += self._next_late
        self._newest_ns = max([self._newest_ns, *(one.last_ns for one in self._next_series.values())])
        if self._last == "repeated":
            del self._to_repeat[-_REPEATED_MAX:]
        elif self._last == "closed":
            self._open = dict.fromkeys(list(self._open)[_POINTS_MAX:])
        elif self._last == "history" and self._stream.temporality == "cumulative":
            self._open.update(dict.fromkeys(self._next_series))
        if not self._stream.repeats_idle:
            self._moved_ns.update(dict.fromkeys(self._collected, self._newest_ns))
        for key in self._collected:
            self._waiting -= sum(cells.pop(key, None) is not None for cells in sums.cells.values())
        if self._collected:
            sums.cells = {span: cells for span, cells in sums.cells.items() if cells}
            if not sums.cells:
                sums.width_ns = self._stream.width_ns
        sums.ready, self._next_series, self._next_late, self._collected = [], {}, 0, []

    def dump(self) -> bytes:
        """Return the whole state as bytes."""
        return written(self._sums)

    @classmethod
    def load(cls, state: bytes, stream: MetricStream | None = None) -> "Aggregate | None":
        """Return what `dump` wrote, or None when the bytes are not a state.

        The stream may be counted differently from now on: what waits is kept, and series whose labels are other ones
        begin anew, as a restarted counter does.
        """
        loaded = cls(stream)
        sums = read(state, loaded._shown)
        if sums is None:
            return None
        loaded._sums = sums
        for instrument, labels in sums.known():
            loaded._label_sets.setdefault(instrument, set()).add(labels)
        loaded._waiting = sum(map(len, sums.cells.values()))
        loaded._newest_ns = max((one.last_ns for one in sums.series.values()), default=0)
        return loaded

    def _hidden_positions(self, instrument: Instrument) -> tuple[int, ...] | None:
        """Return the positions of hidden labels, None for an instrument that is not sent."""
        stream = self._stream
        if stream.semconv not in instrument.semconvs:
            return None
        return tuple(
            place
            for place, label in enumerate(instrument.labels)
            if label.content > stream.content or (label is CONVERSATION_ID and not stream.session_label)
        )

    def _shown(self, instrument: Instrument, by_name: Mapping[str, Value | None]) -> Labels:
        hidden = self._hidden[instrument] or ()
        return tuple(
            None if place in hidden else by_name.get(label.name) for place, label in enumerate(instrument.labels)
        )

    def _add_first(self, measurement: Measurement, labels: Labels) -> None:
        """Add a measurement to a span of time that has none of its series yet."""
        instrument, sums = measurement.instrument, self._sums
        known = self._label_sets.get(instrument)
        if known is None:
            known = self._label_sets[instrument] = set()
        if labels not in known:
            if len(known) >= self._stream.series_max:
                labels = None
            known.add(labels)
        place = measurement.time_ns // sums.width_ns
        span = sums.cells.get(place)
        if span is None:
            span = sums.cells[place] = {}
        elif (cell := span.get((instrument, labels))) is not None:
            cell.add(measurement, instrument.bounds)
            return
        span[instrument, labels] = cell_of(measurement, instrument.bounds)
        self._waiting += 1
        if self._waiting > self._stream.cells_max:
            self._widen()

    def _widen(self) -> None:
        """Double the intervals until at most half of the cells are left."""
        sums = self._sums
        while self._waiting > self._stream.cells_max // 2 and len(sums.cells) > 1:
            sums.width_ns *= 2
            wide: dict[int, dict[Key, Accumulator]] = {}
            for span in sorted(sums.cells):
                merge_into(wide.setdefault(span // 2, {}), sums.cells[span].items())
            sums.cells = wide
            self._waiting = sum(map(len, wide.values()))

    def _make_ready(self, until_ns: int | None) -> None:
        """Take out the oldest spans of time that are over; those that grew are over when the present is in them."""
        sums, count = self._sums, 0
        for span in sorted(sums.cells):
            ends = (span + (1 if sums.width_ns == self._stream.width_ns else 0)) * sums.width_ns
            if count >= _READY_MAX or (until_ns is not None and ends > until_ns):
                break
            pairs = list(sums.cells.pop(span).items())
            for _, cell in pairs if until_ns is not None else ():
                cell.last_ns = min(cell.last_ns, max(until_ns or 0, cell.first_ns))
            count += len(pairs)
            sums.ready.append(pairs)
        self._waiting -= count
        if not sums.cells:
            sums.width_ns = self._stream.width_ns

    def _advance(
        self, key: Key, cell: Accumulator, series: Accumulator | None, held: Accumulator | None
    ) -> list[AnyPoint]:
        """Add a cell, and what is too old for a point of its own, to a series; return the resulting points."""
        bounds, cumulative = key[0].bounds, self._stream.temporality == "cumulative"
        before_ns = max(cell.first_ns - MILLISECOND, 1)
        last_ns = series.last_ns if series is not None else 0
        goes_on = series is not None and (before_ns - last_ns <= _STALE_NS or not cumulative)
        total = series.copy() if series is not None and goes_on else empty(bounds)
        start_ns = series.first_ns if series is not None and goes_on else before_ns
        time_ns = max(cell.last_ns, last_ns + MILLISECOND)
        points = _more(key, series, _POINTS_BEFORE_SILENCE) if series is not None and not goes_on else []
        if cumulative and before_ns - last_ns > _SILENCE_NS:
            points.append(total.point(key, start_ns, before_ns))
        gained = cell
        if held is not None:
            gained = held.copy()
            gained.merge(cell)
        total.merge(gained)
        total.first_ns, total.last_ns = start_ns, time_ns
        self._next_series[key] = total
        if cumulative:
            points.append(total.point(key, start_ns, time_ns, gained))
        else:
            points.append(gained.point(key, last_ns or start_ns, time_ns, gained))
        return points
