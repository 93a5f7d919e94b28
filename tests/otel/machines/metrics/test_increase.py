"""`increase(x[R])`, by the rules of Prometheus, is the number of events in R: live, after restarts, of history."""

from collections.abc import Sequence
from typing import Final

import pytest

from otel.instruments import TOOL_CALLS
from otel.machines.metrics.aggregate import Aggregate, Metrics, MetricStream
from otel.model import Measurement, Point
from tests.otel.prometheus import Sample, increase

_MINUTE: Final = 60.0
_HOUR: Final = 3_600.0
_DAY: Final = 86_400.0
_BEGIN: Final = 1_700_000_000.0
_BUSY: Final = [_BEGIN + 600 * number for number in range(50)]
"""Fifty events in the first hours."""
_AFTER: Final = _BEGIN + 31.3 * _DAY
"""And one after 31 quiet days."""
_RANGES: Final = ((_DAY, 1), (30 * _DAY, 1), (60 * _DAY, 51))


class _Host:
    """An exporter that lives now and then, with a clock that the test moves; what it sent is kept as samples."""

    def __init__(self, stream: MetricStream) -> None:
        self.samples: list[Sample] = []
        self._stream = stream
        self._aggregate = Aggregate(stream)

    def restart(self) -> None:
        """End without a word and begin again."""
        loaded = Aggregate.load(self._aggregate.dump(), self._stream)
        assert loaded is not None
        self._aggregate = loaded

    def live(self, begin: float, end: float, events: Sequence[float]) -> None:
        """Live for a while: measure events as they come, and collect once a minute and after each event."""
        minutes = [begin + number * _MINUTE for number in range(int((end - begin) / _MINUTE) + 1)]
        for now in sorted({*minutes, *(at + 5 for at in events)}):
            due = [at for at in events if at + 5 == now]
            self._aggregate.add([_event(at) for at in due])
            self._take(self._aggregate.collect(int(now * 1e9), repeats=True), now)

    def _take(self, metrics: Metrics, now: float) -> None:
        while metrics:
            self._keep(metrics)
            metrics = self._aggregate.collect(int(now * 1e9), repeats=True)

    def backfill(self, events: Sequence[float]) -> None:
        """Send history."""
        self._aggregate.add([_event(at) for at in events])
        while metrics := self._aggregate.points() or self._aggregate.close():
            self._keep(metrics)

    def _keep(self, metrics: Metrics) -> None:
        points = [point for _, some in metrics for point in some if isinstance(point, Point)]
        self.samples += [(point.time_ns // 1_000_000 / 1e3, float(point.value)) for point in points]
        self._aggregate.accepted()


def _event(at: float) -> Measurement:
    return Measurement(TOOL_CALLS, int(at * 1e9), 1, ("bash", True, "owner/repo", "s", None, None), None)


def _increases(host: _Host, now: float) -> dict[float, int]:
    """Return the increase of each range, to the nearest event."""
    return {seconds: round(increase(host.samples, now - seconds, now) or 0) for seconds, _ in _RANGES}


@pytest.mark.parametrize("stream", [MetricStream(), MetricStream(repeats_idle=False)])
@pytest.mark.parametrize("later", [20 * _MINUTE, 3 * _HOUR])
def test_one_event_after_a_month_of_quiet_is_one(stream: MetricStream, later: float) -> None:
    host = _Host(stream)

    host.live(_BEGIN - _HOUR, _AFTER + later, [*_BUSY, _AFTER])

    assert _increases(host, _AFTER + later) == dict(_RANGES)


@pytest.mark.parametrize("stream", [MetricStream(), MetricStream(repeats_idle=False)])
def test_one_event_after_a_month_in_which_no_exporter_ran_is_one(stream: MetricStream) -> None:
    host = _Host(stream)
    host.live(_BEGIN - _HOUR, _BEGIN + _DAY, _BUSY)
    host.restart()

    host.live(_AFTER - 600, _AFTER + 600, [_AFTER])

    assert _increases(host, _AFTER + 620) == dict(_RANGES)


def test_ten_restarts_in_a_day_of_work_count_nothing_twice() -> None:
    host, events = _Host(MetricStream()), [_BEGIN + 300 * number for number in range(200)]
    for first in range(0, 200, 20):
        some = events[first : first + 20]
        host.live(some[0] - 60, some[-1] + 60, some)
        host.restart()

    now = events[-1] + 61

    assert increase(host.samples, now - _DAY, now) == pytest.approx(200, rel=0.01)


def test_one_event_after_a_month_of_quiet_is_one_in_history() -> None:
    host = _Host(MetricStream())

    host.backfill([*_BUSY, _AFTER])

    for later in (1.0, _HOUR, 5 * _HOUR):
        assert _increases(host, _AFTER + later) == dict(_RANGES)


@pytest.mark.parametrize("place", [0, 20, 40])
def test_a_bar_that_holds_one_event_of_history_is_one(place: int) -> None:
    """Prometheus extends what N points tell by one part in 2 (N - 1), which is a half for two points."""
    host, events = _Host(MetricStream()), [_BEGIN + number * 3 * _HOUR for number in range(41)]

    host.backfill(events)

    for later in (60.0, _HOUR):
        assert increase(host.samples, events[place] + later - 2 * _HOUR, events[place] + later) == pytest.approx(
            1, abs=0.06
        )


def test_two_hosts_are_two_series_whose_increases_add_up() -> None:
    one, other = _Host(MetricStream()), _Host(MetricStream())
    one.live(_BEGIN - _HOUR, _AFTER + _HOUR, [*_BUSY, _AFTER])
    other.live(_AFTER - _DAY, _AFTER + _HOUR, [_AFTER - 7_000, _AFTER - 100])

    sums = [
        _increases(one, _AFTER + _HOUR)[seconds] + _increases(other, _AFTER + _HOUR)[seconds] for seconds, _ in _RANGES
    ]

    assert sums == [3, 3, 53]


def test_an_increase_is_not_the_number_where_a_series_is_only_continued() -> None:
    """The control: what a series without repeats and without a new start tells after 31 days, two points of it."""
    continued = [(_AFTER - 0.001, 50.0), (_AFTER, 51.0)]

    assert round(increase(continued, _AFTER - _DAY + 60, _AFTER + 60) or 0) == 2
