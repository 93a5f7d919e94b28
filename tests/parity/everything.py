"""Every way in which what we make of a session is not what the CLI wrote of it, named so that a table explains it."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from otel import names
from otel.machines.metrics.aggregate import AnyPoint
from otel.model import Attributes, HistogramPoint, Kind, Span
from otel.names import Instrument, Semconv
from tests.parity.compare import Comparison
from tests.parity.oracle import CliEvent, CliMetric, CliSpan

_KINDS: Final = {0: Kind.INTERNAL, 2: Kind.CLIENT}
_SECONDS_APART_MAX: Final = 0.15
_MS_APART_MAX: Final = 12
_RESOURCE: Final = (
    names.SERVICE_NAME,
    names.SERVICE_VERSION,
    names.SERVICE_INSTANCE_ID,
    names.HOST_NAME,
    names.USER_NAME,
)
SCOPE: Final = "session-exporter"


class Difference(NamedTuple):
    """One difference: of which signal, where in it (an operation, an event, a metric), which name, and in what.

    `what` is absent (the CLI has it, we have not), extra (the other way round), type, value, or what it says.
    """

    signal: str
    where: str
    name: str
    what: str


def differences(one: Comparison) -> set[Difference]:
    """Return how our telemetry of a session differs from the CLI's."""
    semconv = one.session.semconv
    found = {each for cli, ours in one.matched for each in _of_span(cli, ours, semconv)}
    if one.session.whole:
        matched = {id(ours) for _, ours in one.matched}
        found |= {Difference("span", span.operation, "", "extra") for span in one.ours if id(span) not in matched}
        found |= {Difference("span", "all", "links", "extra") for span in one.ours if span.links}
        found |= {Difference("log", "all", "", "extra"), *_of_resource(one.session.cli)}
        found |= set(_of_metrics(one.session.metrics, one.points, semconv))
        return found
    return {each for each in found if each.what != "extra"}


def spelled(attributes: Attributes, semconv: Semconv) -> dict[str, Any]:
    """Return attributes as they are sent."""
    return {key: value for name, value in attributes.items() for key in name.spellings(semconv)}


def _of_span(cli: CliSpan, ours: Span, semconv: Semconv) -> Iterator[Difference]:
    where = cli.operation
    yield from _of_attributes("span", where, cli.attributes, spelled(ours.attributes, semconv))
    if _KINDS.get(cli.kind) != ours.kind:
        yield Difference("span", where, "kind", "value")
    if cli.status.get("code", 0) != int(ours.status):
        yield Difference("span", where, "status", "value")
    if bool(cli.status.get("message")) != (ours.failure is not None or bool(ours.status == 2)):
        yield Difference("span", where, "status.message", "value")
    theirs = Counter(event.name for event in cli.events)
    mine = Counter(event.name.name for event in ours.events)
    yield from (Difference("event", name, "", "absent") for name in theirs - mine)
    yield from (Difference("event", name, "", "extra") for name in mine - theirs)
    for name in theirs & mine:
        some = [event for event in cli.events if event.name == name]
        own = [event for event in ours.events if event.name.name == name]
        for event, made in zip(some, own, strict=False):
            yield from _of_attributes("event", name, event.attributes, spelled(made.attributes, semconv))
            yield from _of_time(name, event, made.time_ns)


def _of_time(name: str, event: CliEvent, time_ns: int) -> Iterator[Difference]:
    if abs(event.time_ns - time_ns) > _MS_APART_MAX * 1e6:
        yield Difference("event", name, "time", "value")


def _of_attributes(signal: str, where: str, theirs: dict[str, Any], mine: dict[str, Any]) -> Iterator[Difference]:
    for key in theirs.keys() - mine.keys():
        yield Difference(signal, where, key, "absent")
    for key in mine.keys() - theirs.keys():
        yield Difference(signal, where, key, "extra")
    for key in theirs.keys() & mine.keys():
        their, own = theirs[key], list(mine[key]) if isinstance(mine[key], tuple) else mine[key]
        if type(their) is not type(own):
            yield Difference(signal, where, key, "type")
        elif their != own:
            yield Difference(signal, where, key, "value")


def _of_resource(spans: Iterable[CliSpan]) -> Iterator[Difference]:
    ours = {name.name for name in _RESOURCE}
    for span in spans:
        yield from (Difference("resource", "all", key, "absent") for key in span.resource.keys() - ours)
        yield from (Difference("resource", "all", key, "extra") for key in ours - span.resource.keys())
        if span.scope != SCOPE:
            yield Difference("resource", "all", "scope", "value")


def _of_metrics(
    theirs: list[CliMetric], ours: list[tuple[Instrument, AnyPoint]], semconv: Semconv
) -> Iterator[Difference]:
    by_name: dict[str, list[CliMetric]] = {}
    for metric in theirs:
        by_name.setdefault(metric.name, []).append(metric)
    mine = {instrument.name: instrument for instrument, _ in ours}
    yield from (Difference("metric", name, "", "absent") for name in by_name.keys() - mine.keys())
    yield from (Difference("metric", name, "", "extra") for name in mine.keys() - by_name.keys())
    for name in by_name.keys() & mine.keys():
        points = [point for instrument, point in ours if instrument.name == name]
        yield from _of_metric(by_name[name], mine[name], points, semconv)


def _of_metric(
    theirs: list[CliMetric], instrument: Instrument, points: list[AnyPoint], semconv: Semconv
) -> Iterator[Difference]:
    name = instrument.name
    if any(metric.unit != instrument.unit for metric in theirs):
        yield Difference("metric", name, "unit", "value")
    some = [(labels, value) for metric in theirs for labels, value in metric.points]
    own = [(_labels(instrument, point, semconv), point) for point in points]
    if any(isinstance(value, dict) != (instrument.kind == "histogram") for _, value in some):
        yield Difference("metric", name, "kind", "value")
        return
    bounds = [value["buckets"]["boundaries"] for _, value in some if isinstance(value, dict)]
    if any(not _same(one, instrument.bounds) for one in bounds):
        yield Difference("metric", name, "buckets", "value")
    their_keys = {key for labels, _ in some for key in labels}
    own_keys = {key for labels, _ in own for key in labels}
    yield from (Difference("metric", name, key, "absent") for key in their_keys - own_keys)
    yield from (Difference("metric", name, key, "extra") for key in own_keys - their_keys)
    shared = their_keys & own_keys
    counted, measured = _totals(some, shared, _theirs), _totals(own, shared, _ours)
    if counted.keys() != measured.keys():
        yield Difference("metric", name, "labels", "value")
    for labels in counted.keys() & measured.keys():
        count, total = counted[labels]
        if count != measured[labels][0]:
            yield Difference("metric", name, "count", "value")
        elif not _near(total, measured[labels][1], count if instrument.unit == "s" else 0):
            yield Difference("metric", name, "sum", "value")


def _labels(instrument: Instrument, point: AnyPoint, semconv: Semconv) -> dict[str, Any]:
    pairs = zip(instrument.labels, point.labels, strict=True)
    return {
        key: value
        for name, value in pairs
        if value is not None and name is not names.SERVICE_VERSION
        for key in name.spellings(semconv)
    }


def _theirs(value: Any) -> tuple[float, float]:
    return (value["count"], value["sum"]) if isinstance(value, dict) else (0, value)


def _ours(point: AnyPoint) -> tuple[float, float]:
    return (point.count, point.total) if isinstance(point, HistogramPoint) else (0, point.value)


def _totals(
    some: Iterable[tuple[Mapping[str, Any], Any]], shared: set[str], read: Any
) -> dict[frozenset[tuple[str, str]], tuple[float, float]]:
    found: dict[frozenset[tuple[str, str]], tuple[float, float]] = {}
    for labels, value in some:
        key = frozenset((name, str(labels[name])) for name in shared & labels.keys())
        before, (count, total) = found.get(key, (0, 0)), read(value)
        found[key] = (before[0] + count, before[1] + total)
    return found


def _near(one: float, other: float, timed: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=timed * _SECONDS_APART_MAX + 1e-9)


def _same(one: list[float], other: tuple[float, ...]) -> bool:
    return len(one) == len(other) and all(map(math.isclose, one, other))
