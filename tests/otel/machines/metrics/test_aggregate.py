"""Sums of measurements: points in the order of time, and nothing lost or counted twice, whatever crashes when."""

from math import inf, nan
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from otel.instruments import (
    CALL_DURATION,
    COST,
    NOTIFICATIONS,
    OPERATION_DURATION,
    TOKEN_USAGE,
    TOOL_CALLS,
    TOOL_DURATION,
    WORKFLOW_DURATION,
)
from otel.machines.metrics.aggregate import Aggregate, Metrics, MetricStream
from otel.model import Context, Exemplar, HistogramPoint, Measurement, Point, Temporality
from otel.names import Content, Instrument, Value

SECOND = 1_000_000_000
T0 = 1_790_000_000 * SECOND
DELTA = MetricStream("delta")
SPAN = Context(b"t" * 16, b"s" * 8)


def tool_call(
    at: float, value: float = 1, tool: str = "bash", session: str = "s1", context: Context | None = None
) -> Measurement:
    return Measurement(
        TOOL_CALLS, T0 + int(at * SECOND), value, (tool, True, "owner/repo", session, None, None), context
    )


def took(at: float, seconds: float, tool: str = "bash") -> Measurement:
    return Measurement(TOOL_DURATION, T0 + int(at * SECOND), seconds, (tool, "owner/repo", "s1", None, None), None)


def sent(aggregate: Aggregate, until: float | None = None) -> Metrics:
    """Everything that is to be sent, taken by a receiver."""
    metrics: Metrics = []
    while some := aggregate.points(None if until is None else T0 + int(until * SECOND)):
        metrics += some
        aggregate.accepted()
    return metrics


def counts(metrics: Metrics) -> list[tuple[float, float]]:
    """Times and values of the points of counters."""
    points = [point for _, points in metrics for point in points if isinstance(point, Point)]
    return [((point.time_ns - T0) / SECOND, point.value) for point in points]


def test_measurements_of_ten_seconds_are_one_point_with_the_time_of_the_last_of_them() -> None:
    aggregate = Aggregate(DELTA)

    aggregate.add([tool_call(1), tool_call(2, 3), tool_call(15)])

    assert counts(sent(aggregate)) == [(2, 4), (15, 1)]


def test_a_cumulative_counter_begins_at_zero_a_millisecond_before_its_first_measurement() -> None:
    aggregate = Aggregate()

    aggregate.add([tool_call(1, 5)])
    metrics = sent(aggregate)

    assert counts(metrics) == [(0.999, 0), (1, 5)]
    assert {point.start_ns for _, points in metrics for point in points} == {T0 + 999 * SECOND // 1000}


def test_a_cumulative_counter_says_after_a_silence_what_it_was_until_then() -> None:
    aggregate = Aggregate()

    aggregate.add([tool_call(1), tool_call(12), tool_call(300)])

    assert counts(sent(aggregate)) == [(0.999, 0), (1, 1), (12, 2), (299.999, 2), (300, 3)]


def test_a_cumulative_counter_begins_anew_after_a_silence_that_backends_forget_it_in() -> None:
    aggregate = Aggregate()

    aggregate.add([tool_call(1), tool_call(12), tool_call(3600)])

    points = sent(aggregate)
    before_silence = [(12 + place / 1000, 2) for place in range(1, 9)]
    assert counts(points) == [(0.999, 0), (1, 1), (12, 2), *before_silence, (3599.999, 0), (3600, 1)]
    starts = [point.start_ns - T0 for _, some in points for point in some]
    assert starts == [999 * _MS] * 11 + [3_599_999 * _MS] * 2


@pytest.mark.parametrize(("silence", "before"), [(300, [1, 1, 2]), (301, [1, *[1] * 8, 0, 1])])
def test_a_series_is_as_it_was_after_a_silence_of_five_minutes(silence: float, before: list[float]) -> None:
    """So far back Prometheus looks for the last value of a series."""
    aggregate = Aggregate()

    aggregate.add([tool_call(1), tool_call(1 + silence)])

    assert [value for _, value in counts(sent(aggregate))][1:] == before


def test_deltas_follow_each_other_without_a_gap() -> None:
    aggregate = Aggregate(DELTA)

    aggregate.add([tool_call(1), tool_call(12), tool_call(3600)])
    points = [point for _, points in sent(aggregate) for point in points]

    assert [point.start_ns for point in points[1:]] == [point.time_ns for point in points[:-1]]


def test_a_histogram_counts_what_is_not_above_a_bound_below_it() -> None:
    aggregate = Aggregate(DELTA)

    aggregate.add([took(1, 0.01), took(2, 0.0101), took(3, 500)])
    [(_, [point])] = sent(aggregate)

    assert isinstance(point, HistogramPoint)
    assert (point.bucket_counts[0], point.bucket_counts[1], point.bucket_counts[-1]) == (1, 1, 1)
    assert (point.count, point.minimum, point.maximum) == (3, 0.01, 500)
    assert len(point.bucket_counts) == len(TOOL_DURATION.bounds) + 1


def test_a_cumulative_histogram_counts_all_that_came_before_too() -> None:
    aggregate = Aggregate()

    aggregate.add([took(1, 0.01), took(2, 500), took(15, 0.01)])
    last = sent(aggregate)[-1][1][-1]

    assert isinstance(last, HistogramPoint)
    assert (last.bucket_counts[0], last.bucket_counts[-1], last.count, last.total) == (2, 1, 3, 500.02)


def test_points_of_all_instruments_come_in_the_order_of_time() -> None:
    aggregate = Aggregate(DELTA)

    aggregate.add([took(900, 1), tool_call(500), took(40, 1), tool_call(3)])

    times = [point.time_ns for _, points in sent(aggregate) for point in points]
    assert times == sorted(times)


def test_a_span_of_time_that_is_not_over_waits() -> None:
    aggregate = Aggregate(DELTA)
    aggregate.add([tool_call(1), tool_call(11)])

    first = sent(aggregate, until=12)
    aggregate.add([tool_call(19)])

    assert counts(first) == [(1, 1)]
    assert counts(sent(aggregate, until=20)) == [(19, 2)]


def test_a_measurement_older_than_what_was_sent_counts_in_the_newest_point() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    sent(aggregate)

    aggregate.add([tool_call(5), tool_call(6), tool_call(105)])

    assert counts(sent(aggregate)) == [(105, 4)]
    assert aggregate.late == 2


def test_late_measurements_alone_move_time_by_a_millisecond() -> None:
    aggregate = Aggregate(DELTA)
    aggregate.add([tool_call(100)])
    sent(aggregate)

    aggregate.add([tool_call(5), tool_call(50)])

    assert counts(sent(aggregate)) == [(100.001, 2)]


def test_points_stay_the_same_until_they_are_accepted_whatever_is_added() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(1)])

    first = aggregate.points()
    aggregate.add([tool_call(2)])

    assert aggregate.points() == first
    aggregate.accepted()
    assert counts(aggregate.points()) == [(2, 2)]


def test_no_more_than_so_many_sets_of_labels_are_told_apart() -> None:
    aggregate = Aggregate(MetricStream("delta", series_max=2))

    aggregate.add([tool_call(1, tool=f"tool{number}") for number in range(5)])
    [(_, points)] = sent(aggregate)

    assert [(point.labels[0], point.overflow) for point in points] == [("tool0", False), ("tool1", False), (None, True)]
    assert counts([(TOOL_CALLS, points)]) == [(1, 1), (1, 1), (1, 3)]


@pytest.mark.parametrize(
    ("stream", "labels"),
    [
        (MetricStream(content=Content.NONE), ("bash", True, None, None, None, None)),
        (MetricStream(content=Content.METADATA), ("bash", True, "owner/repo", None, None, None)),
        (MetricStream(content=Content.METADATA, session_label=True), ("bash", True, "owner/repo", "s1", None, None)),
    ],
)
def test_labels_above_the_content_level_and_unasked_sessions_are_not_told(
    stream: MetricStream, labels: tuple[Value | None, ...]
) -> None:
    aggregate = Aggregate(stream)

    aggregate.add([tool_call(1)])

    assert {point.labels for _, points in sent(aggregate) for point in points} == {labels}


def test_sessions_share_a_series_when_nobody_asks_for_them() -> None:
    aggregate = Aggregate(DELTA)

    aggregate.add([tool_call(1, session="s1"), tool_call(2, session="s2")])

    assert counts(sent(aggregate)) == [(2, 2)]


def test_an_instrument_of_another_convention_is_not_sent() -> None:
    def instruments_of(semconv: str) -> set[Instrument]:
        aggregate = Aggregate(MetricStream(semconv=semconv))  # type: ignore[arg-type]  # a parameter of the test
        for instrument in (TOKEN_USAGE, CALL_DURATION, TOOL_CALLS, OPERATION_DURATION, WORKFLOW_DURATION):
            aggregate.add([Measurement(instrument, T0, 1, ("x",) * len(instrument.labels), None)])
        return {instrument for instrument, _ in sent(aggregate)}

    assert instruments_of("cli") == {CALL_DURATION, TOOL_CALLS, OPERATION_DURATION}
    assert instruments_of("latest") == {CALL_DURATION, TOOL_CALLS, WORKFLOW_DURATION}
    assert instruments_of("legacy") == {TOKEN_USAGE, TOOL_CALLS, OPERATION_DURATION}
    assert instruments_of("both") == {TOKEN_USAGE, CALL_DURATION, TOOL_CALLS, OPERATION_DURATION}


@pytest.mark.parametrize("value", [-1, nan, inf, 1e300])
def test_a_value_that_is_none_is_refused_and_counted(value: float) -> None:
    aggregate = Aggregate()

    aggregate.add([tool_call(1, value)])

    assert (aggregate.points(), aggregate.refused) == ([], 1)


@pytest.mark.parametrize("time_ns", [0, -1, 2**70])
def test_a_measurement_without_a_time_is_refused_and_counted(time_ns: int) -> None:
    aggregate = Aggregate()

    aggregate.add([msgspec.structs.replace(tool_call(1), time_ns=time_ns)])

    assert (aggregate.points(), aggregate.refused) == ([], 1)


def test_the_exemplar_is_the_last_measurement_that_was_made_in_a_span() -> None:
    aggregate = Aggregate(DELTA)

    aggregate.add([tool_call(1, 2, context=SPAN), tool_call(3, 1)])
    [(_, [first])] = sent(aggregate)
    aggregate.add([tool_call(11), tool_call(12, 4, context=SPAN), tool_call(13)])
    [(_, [second])] = sent(aggregate)

    assert first.exemplar == Exemplar(T0 + SECOND, 2, SPAN)
    assert second.exemplar == Exemplar(T0 + 12 * SECOND, 4, SPAN)


def test_a_point_that_tells_of_late_measurements_too_has_the_exemplar_of_its_own() -> None:
    aggregate = Aggregate(DELTA)
    aggregate.add([tool_call(100)])
    sent(aggregate)

    aggregate.add([tool_call(5), tool_call(105, context=SPAN)])
    [(_, [point])] = sent(aggregate)

    assert point.exemplar == Exemplar(T0 + 105 * SECOND, 1, SPAN)


@pytest.mark.parametrize("now", [1500, 5000])
def test_a_span_of_time_that_grew_over_the_present_is_sent_with_no_time_after_it(now: float) -> None:
    aggregate = Aggregate(MetricStream("delta", cells_max=4))
    aggregate.add([tool_call(1000 * step) for step in range(8)])

    first = counts(sent(aggregate, until=now))

    assert max(time for time, _ in first) <= now
    assert sum(value for _, value in first) + sum(value for _, value in counts(sent(aggregate))) == 8


def test_a_long_history_is_summed_in_longer_spans_of_time_and_complete() -> None:
    aggregate = Aggregate(MetricStream("delta", cells_max=100))

    aggregate.add([tool_call(100 * step) for step in range(10_000)])
    found = counts(sent(aggregate))

    assert len(found) <= 100
    assert sum(value for _, value in found) == 10_000
    aggregate.add([tool_call(2_000_001), tool_call(2_000_011)])
    assert len(sent(aggregate)) == 2


def test_spans_of_time_grow_no_more_than_they_must() -> None:
    aggregate = Aggregate(MetricStream("delta", cells_max=100))

    aggregate.add([tool_call(100 * step) for step in range(101)])

    assert 25 <= len(counts(sent(aggregate))) <= 50


def test_what_is_added_while_spans_of_time_grow_is_not_lost() -> None:
    aggregate = Aggregate(MetricStream("delta", cells_max=4))
    others = [tool_call(100 * step, tool="view") for step in range(1, 5)]

    aggregate.add([tool_call(1), *others[:3], tool_call(2), others[3], tool_call(3)])

    assert sum(value for _, value in counts(sent(aggregate))) == 7


def test_one_answer_holds_no_more_than_so_many_points_of_a_long_history() -> None:
    aggregate = Aggregate(DELTA)
    aggregate.add([tool_call(10 * step) for step in range(5_000)])

    answers = []
    while metrics := aggregate.points():
        answers.append(len(counts(metrics)))
        aggregate.accepted()

    assert answers == [4_096, 904]


def test_what_is_kept_as_bytes_and_is_none_of_ours_is_nothing() -> None:
    assert Aggregate.load(b"") is None
    assert Aggregate.load(b"\x93\x01\x02\x03") is None
    assert Aggregate.load(Aggregate().dump()[:-1]) is None


def test_a_session_that_is_told_no_more_leaves_what_waits_and_begins_its_series_anew() -> None:
    before = Aggregate(MetricStream(session_label=True))
    before.add([tool_call(1, session="s1"), tool_call(1, session="s2")])
    sent(before)
    before.add([tool_call(20, session="s1"), tool_call(20, session="s2")])

    after = Aggregate.load(before.dump(), MetricStream())

    assert after is not None
    assert counts(sent(after)) == [(19.999, 0), (20, 2)]


LABELS: dict[Instrument, list[tuple[Value | None, ...]]] = {
    COST: [("m1", None, "s", None, None), ("m2", "r", "s", "1.0.102", "u")],
    NOTIFICATIONS: [("shell_completed", "completed", "r", "s", None, "u")],
    TOOL_DURATION: [("bash", "r", "s", "1.0.102", "u"), ("view", None, "s", None, None)],
}
MEASUREMENTS = st.sampled_from(list(LABELS)).flatmap(
    lambda instrument: st.builds(
        Measurement,
        st.just(instrument),
        st.integers(0, 600).map(lambda seconds: T0 + seconds * SECOND),
        st.integers(0, 64).map(lambda number: number / 8),
        st.sampled_from(LABELS[instrument]),
        st.none() | st.just(SPAN),
    )
)
STEPS = st.lists(st.sampled_from(["add", "send", "send until", "lost", "crash"]), max_size=30)


class Caller:
    """Counts chunks and sends their sums as a daemon does: state is written before and after every request."""

    def __init__(self, chunks: list[list[Measurement]], stream: MetricStream) -> None:
        self.received: list[tuple[Instrument, Point | HistogramPoint]] = []
        self._chunks = chunks
        self._stream = stream
        self._aggregate = Aggregate(stream)
        self._next = 0
        self._durable = (self._aggregate.dump(), 0)

    def run(self, step: str) -> None:
        match step:
            case "add" if self._next < len(self._chunks):
                self._aggregate.add(self._chunks[self._next])
                self._next += 1
                self._durable = (self._aggregate.dump(), self._next)
            case "send" | "send until" | "lost":
                metrics = self._aggregate.points(T0 + 300 * SECOND if step == "send until" else None)
                self._durable = (self._aggregate.dump(), self._next)
                self.received += [(instrument, point) for instrument, points in metrics for point in points]
                if step != "lost":
                    self._aggregate.accepted()
                    self._durable = (self._aggregate.dump(), self._next)
            case "crash":
                state, self._next = self._durable
                loaded = Aggregate.load(state, self._stream)
                assert loaded is not None
                self._aggregate = loaded

    def finish(self) -> None:
        for _ in self._chunks:
            self.run("add")
        while self._aggregate.points():
            self.run("send")


def by_series(
    received: list[tuple[Instrument, Point | HistogramPoint]],
) -> dict[tuple[str, tuple[Value | None, ...]], list[Point | HistogramPoint]]:
    """What a receiver has stored of each series, when it stores what is repeated once."""
    series: dict[tuple[str, tuple[Value | None, ...]], list[Point | HistogramPoint]] = {}
    for instrument, point in received:
        stored = series.setdefault((instrument.name, point.labels), [])
        if point not in stored:
            stored.append(point)
    return series


def number(point: Point | HistogramPoint) -> float:
    return point.value if isinstance(point, Point) else point.total


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(MEASUREMENTS, max_size=8), max_size=8),
    STEPS,
    st.sampled_from(["cumulative", "delta"]),
    st.sampled_from([4, 20_000]),
)
@pytest.mark.slow
def test_any_order_and_any_crash_give_the_same_totals_in_rising_time(
    chunks: list[list[Measurement]], steps: list[str], temporality: Temporality, cells_max: int
) -> None:
    caller = Caller(chunks, MetricStream(temporality, session_label=True, cells_max=cells_max))
    for step in steps:
        caller.run(step)
    caller.finish()

    expected: dict[tuple[str, tuple[Value | None, ...]], list[float]] = {}
    for chunk in chunks:
        for measurement in chunk:
            expected.setdefault((measurement.instrument.name, measurement.labels), []).append(measurement.value)
    stored = by_series(caller.received)
    assert stored.keys() == expected.keys()
    for key, points in stored.items():
        times = [point.time_ns for point in points]
        assert times == sorted(set(times))
        values = [number(point) for point in points]
        if temporality == "cumulative":
            since: dict[int, list[float]] = {}
            for point in points:
                since.setdefault(point.start_ns, []).append(number(point))
            assert all(some == sorted(some) for some in since.values())
            assert sum(some[-1] for some in since.values()) == sum(expected[key])
        else:
            assert sum(values) == sum(expected[key])
        histograms = [point for point in points if isinstance(point, HistogramPoint)]
        assert all(sum(point.bucket_counts) == point.count for point in histograms)


@given(st.lists(MEASUREMENTS, max_size=20), st.lists(MEASUREMENTS, max_size=20))
def test_what_was_loaded_goes_on_exactly_as_what_was_dumped(
    before: list[Measurement], after: list[Measurement]
) -> None:
    one = Aggregate()
    one.add(before)
    sent(one, until=200)
    other = Aggregate.load(one.dump())
    assert other is not None

    one.add(after)
    other.add(after)

    assert sent(one) == sent(other)
    assert one.dump() == other.dump()


# ---- collected as an SDK does it -----------------------------------------------------------------------------


_MS: Final = 1_000_000


def _collected(aggregate: Aggregate, now_ns: int) -> list[list[tuple[int, float]]]:
    """Collect until nothing is left; return time and value of the points of each request."""
    requests = []
    while metrics := aggregate.collect(T0 + now_ns):
        points = [point for _, some in metrics for point in some]
        requests.append([(point.time_ns - T0, point.value) for point in points if isinstance(point, Point)])
        aggregate.accepted()
    return requests


def _values(metrics: Metrics) -> list[float]:
    return [point.value for _, points in metrics for point in points if isinstance(point, Point)]


def test_a_collection_has_one_time_and_a_new_series_begins_with_nothing() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100), tool_call(160), tool_call(130)])

    requests = _collected(aggregate, 200 * SECOND)

    assert requests == [[(200 * SECOND, 0)], [(200 * SECOND + _MS, 3)]]
    assert not aggregate.waits


def test_a_series_that_is_collected_began_a_millisecond_before_its_first_point() -> None:
    aggregate = Aggregate()
    starts = []
    for now in (200, 210):
        aggregate.add([tool_call(now - 50)])
        while metrics := aggregate.collect(T0 + now * SECOND):
            starts += [point.start_ns - T0 for _, some in metrics for point in some]
            aggregate.accepted()

    assert starts == [200 * SECOND - _MS] * 3


def test_times_grow_even_where_the_clock_goes_back_or_nothing_was_accepted() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    first = _collected(aggregate, 200 * SECOND)
    aggregate.add([tool_call(199)])
    lost = aggregate.collect(T0 + 190 * SECOND)
    reloaded = Aggregate.load(aggregate.dump())
    assert reloaded is not None

    again = _collected(reloaded, 191 * SECOND)

    assert [point.time_ns - T0 for _, points in lost for point in points] == [200 * SECOND + 2 * _MS]
    assert again == [[(200 * SECOND + 2 * _MS, 2)]]
    assert first[-1][0][1] == 1


def test_points_after_a_collection_that_was_not_accepted_lose_nothing() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    aggregate.collect(T0 + 101 * SECOND)
    aggregate.accepted()
    aggregate.collect(T0 + 102 * SECOND)  # not accepted
    aggregate.add([tool_call(200)])

    first = _values(aggregate.points(T0 + 150 * SECOND))
    aggregate.accepted()
    rest = _values(aggregate.points())

    assert first[-1] == 1
    assert rest[-1] == 2


def test_a_series_that_was_quiet_is_told_before_it_moves() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    _collected(aggregate, 101 * SECOND)
    aggregate.add([tool_call(300)])

    assert _collected(aggregate, 301 * SECOND) == [[(301 * SECOND, 1)], [(301 * SECOND + _MS, 2)]]


def test_a_series_that_nobody_repeated_for_long_begins_anew() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    _collected(aggregate, 101 * SECOND)
    aggregate.add([tool_call(500)])

    assert _collected(aggregate, 501 * SECOND) == [[(501 * SECOND, 0)], [(501 * SECOND + _MS, 1)]]


def _repeated(aggregate: Aggregate, now_ns: int) -> list[tuple[int, float]]:
    found = []
    while metrics := aggregate.collect(T0 + now_ns, repeats=True):
        found += [
            (point.time_ns - T0, point.value) for _, some in metrics for point in some if isinstance(point, Point)
        ]
        aggregate.accepted()
    return found


def test_what_is_repeated_has_the_time_of_then_and_goes_on_from_there() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    _collected(aggregate, 101 * SECOND)

    repeats = [_repeated(aggregate, at * SECOND) for at in (110, 170, 200, 230, 290)]
    aggregate.add([tool_call(340)])

    assert repeats == [[], [(170 * SECOND, 1)], [], [(230 * SECOND, 1)], [(290 * SECOND, 1)]]
    assert _repeated(aggregate, 345 * SECOND) == [(345 * SECOND, 2)]


def test_after_a_restart_known_series_are_repeated_and_begin_anew_where_that_took_long() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    _collected(aggregate, 101 * SECOND)

    after = {}
    for seconds in (160, 4_000):
        loaded = Aggregate.load(aggregate.dump())
        assert loaded is not None
        after[seconds] = _repeated(loaded, seconds * SECOND)

    assert after == {160: [(160 * SECOND, 1)], 4_000: [(4_000 * SECOND, 0)]}


def test_without_idle_metrics_a_series_is_repeated_for_five_minutes() -> None:
    aggregate = Aggregate(MetricStream(repeats_idle=False))
    aggregate.add([tool_call(100)])
    _collected(aggregate, 101 * SECOND)

    repeats = [at for at in range(160, 1_000, 60) if _repeated(aggregate, at * SECOND)]

    assert repeats == [160, 220, 280, 340, 400]


def test_many_series_are_repeated_in_several_requests_and_each_once() -> None:
    aggregate = Aggregate(MetricStream(series_max=5_000))
    aggregate.add([tool_call(100, tool=f"t{one}") for one in range(4_500)])
    _collected(aggregate, 101 * SECOND)

    requests = []
    while metrics := aggregate.collect(T0 + 300 * SECOND, repeats=True):
        requests.append([point for _, some in metrics for point in some])
        aggregate.accepted()

    assert [len(one) for one in requests] == [2_000, 2_000, 500]
    assert len({point.labels for one in requests for point in one}) == 4_500
    assert [{point.time_ns - T0 for point in one} for one in requests] == [
        {300 * SECOND + place * _MS} for place in range(3)
    ]


def test_history_ends_with_some_points_more_of_each_series() -> None:
    aggregate = Aggregate()
    aggregate.add([tool_call(100)])
    sent(aggregate)

    [(instrument, last)] = aggregate.close()
    aggregate.accepted()

    assert instrument is TOOL_CALLS
    assert [point.time_ns - T0 for point in last] == [100 * SECOND + place * _MS for place in range(1, 25)]
    assert {number(point) for point in last} == {1}
    assert not aggregate.close()


@pytest.mark.parametrize("temporality", ["delta", "cumulative"])
@pytest.mark.parametrize("is_history", [False, True])
def test_only_a_history_of_sums_ends_with_points_more(temporality: Temporality, is_history: bool) -> None:
    """What is collected goes on, and a delta that nothing was added to says nothing."""
    aggregate = Aggregate(MetricStream(temporality))
    aggregate.add([tool_call(100)])
    if is_history:
        sent(aggregate)
    else:
        _collected(aggregate, 101 * SECOND)

    assert bool(aggregate.close()) is (is_history and temporality == "cumulative")
