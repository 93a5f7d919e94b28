"""Sessions measured: events in, what they add up to out."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from otel.event import read
from otel.instruments import OF_RESOURCE
from otel.machines.metrics.machine import Metering
from otel.machines.traces.machine import Traces
from otel.model import Measurement
from otel.names import CONVERSATION_ID, GIT_REPOSITORY, Attribute, Instrument, Semconv, Value

SESSION = "0b9f2a31-0000-4000-8000-000000000001"


class Total(NamedTuple):
    """How many measurements there were of one set of labels, and what they come to."""

    times: int
    total: float


Totals = dict[tuple[str, frozenset[tuple[str, Value]]], Total]


def lines(*events: tuple[str, float, dict[str, Any]], agent: str | None = None) -> list[bytes]:
    """Events of a session, each a type, the second at which it happened and its data."""
    return [
        msgspec.json.encode(
            {
                "type": kind,
                "data": data,
                "id": f"e{number}-{at}",
                "timestamp": f"2026-11-18T10:{int(at) // 60:02}:{int(at) % 60:02}.{round(at % 1 * 1000):03}Z",
                "parentId": None,
                **({"agentId": agent} if agent else {}),
            }
        )
        for number, (kind, at, data) in enumerate(events)
    ]


def measure(session_lines: Iterable[bytes], semconv: Semconv = "cli", ended: bool = True) -> Iterator[Measurement]:
    """What a session adds, as the bridge measures it; `ended` says that its process is gone."""
    traces, metering = Traces(SESSION, semconv=semconv), Metering(SESSION, semconv)
    for line in session_lines:
        event = read(line)
        if event is not None:
            yield from metering.measure(event, traces.take(event))
    if ended:
        yield from metering.ended(traces.process_died())


def labels(measurement: Measurement, leave_out: tuple[Attribute, ...] = ()) -> frozenset[tuple[str, Value]]:
    """The labels that a measurement is sent with, by name."""
    leave_out = (*leave_out, *OF_RESOURCE)
    pairs = zip(measurement.instrument.labels, measurement.labels, strict=True)
    return frozenset((label.name, value) for label, value in pairs if value is not None and label not in leave_out)


def totals(measurements: Iterable[Measurement], semconv: Semconv = "cli") -> Totals:
    """What measurements come to, session and repository apart, for the instruments of a convention."""
    found: Totals = {}
    for measurement in measurements:
        if semconv not in measurement.instrument.semconvs:
            continue
        key = measurement.instrument.name, labels(measurement, (CONVERSATION_ID, GIT_REPOSITORY))
        before = found.get(key, Total(0, 0))
        found[key] = Total(before.times + 1, before.total + measurement.value)
    return found


def of(instrument: Instrument, found: Totals) -> dict[frozenset[Value], float]:
    """What was added up for one instrument: the values of the labels, and the total."""
    return {
        frozenset(value for _, value in key[1]): total.total
        for key, total in found.items()
        if key[0] == instrument.name
    }
