"""What Prometheus answers to `increase(x[R])`, computed by its rules from the points that a receiver accepted.

A range holds the samples after its begin up to its end. The increase is the last value less the first, with what was
lost at each fall of the value added; it is then extended to the range's edges: to an edge that is nearer than 1.1 times
the mean distance of samples by all of it, else by half that distance, and at the begin not below zero.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

from tests.otel.receiver import Received, text_of

Series: TypeAlias = tuple[str, ...]
Sample: TypeAlias = tuple[float, float]
_NEAR: Final = 1.1


def samples(requests: Iterable[Received], name: str) -> dict[Series, list[Sample]]:
    """Return the samples of a counter, or of the count of a histogram, by series; times in whole milliseconds."""
    found: dict[Series, dict[float, float]] = {}
    for request in requests:
        for part in request.decoded().resource_metrics if request.signal == "metrics" and request.kept else ():
            instance = text_of(part.resource, "service.instance.id")
            for metric in (one for scope in part.scope_metrics for one in scope.metrics if one.name == name):
                for labels, at, value in _values(metric):
                    found.setdefault((instance, *labels), {})[at] = value
    return {series: sorted(some.items()) for series, some in found.items()}


def _values(metric: Any) -> Iterator[tuple[list[str], float, float]]:
    for point in (*metric.sum.data_points, *metric.histogram.data_points):
        labels = [f"{one.key}={one.value}" for one in sorted(point.attributes, key=lambda one: str(one.key))]
        value = point.count if hasattr(point, "bucket_counts") else point.as_int or point.as_double
        yield labels, point.time_unix_nano // 1_000_000 / 1e3, float(value)


def increase(found: Sequence[Sample], begin: float, end: float) -> float | None:
    """Return what a counter grew by in a range, None where fewer than two samples are in it."""
    inside = [(at, value) for at, value in found if begin < at <= end]
    if len(inside) < 2:
        return None
    (first_at, first), (last_at, last) = inside[0], inside[-1]
    grown = last - first + sum(before for (_, before), (_, after) in pairwise(inside) if after < before)
    covered = last_at - first_at
    mean = covered / (len(inside) - 1)
    to_begin, to_end = first_at - begin, end - last_at
    to_begin = to_begin if to_begin < mean * _NEAR else mean / 2
    if grown > 0:
        to_begin = min(to_begin, covered * first / grown)
    to_end = to_end if to_end < mean * _NEAR else mean / 2
    return grown * (covered + to_begin + to_end) / covered


def total_increase(found: dict[Series, list[Sample]], begin: float, end: float) -> float:
    """Return the sum over all series, as `sum(increase(x[R]))`."""
    return sum(increase(some, begin, end) or 0.0 for some in found.values())
