"""Reading what the CLI's own telemetry wrote about a session, and what we make of the session's events."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel.event import read
from otel.machines.metrics.aggregate import Aggregate, AnyPoint, MetricStream
from otel.machines.metrics.machine import Metering
from otel.machines.traces.machine import Traces
from otel.model import Measurement, Span
from otel.names import Instrument, Semconv
from tests.shared import REAL

FIXTURES = Path(__file__).parents[1] / "fixtures" / "parity"


@dataclass(frozen=True, slots=True)
class CliEvent:
    """An event of a span as the CLI wrote it."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CliSpan:
    """A span as the CLI wrote it; `kind` and `status` have the numbers of its own file."""

    trace: str
    id: str
    parent: str | None
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: list[CliEvent]
    kind: int
    status: dict[str, Any]
    resource: dict[str, Any]
    scope: str

    @property
    def operation(self) -> str:
        """The first word of the name."""
        return self.name.split(" ")[0]


@dataclass(frozen=True, slots=True)
class CliMetric:
    """A metric as one run of the CLI wrote it at last: the value of each set of labels."""

    name: str
    unit: str
    points: list[tuple[dict[str, Any], Any]]


@dataclass(frozen=True, slots=True)
class Told:
    """What we make of a session."""

    spans: list[Span]
    points: list[tuple[Instrument, AnyPoint]]


@dataclass(frozen=True, slots=True)
class Session:
    """A session with both records of it."""

    name: str
    version: str
    id: str
    cli: list[CliSpan]
    metrics: list[CliMetric]
    lines: list[bytes]
    whole: bool = True  # false for our fixtures, in which what no test needed was left out

    @property
    def semconv(self) -> Semconv:
        """The convention in which this version of the CLI speaks."""
        return "legacy" if self.version == "1.0.48" else "cli"

    def told(self) -> Told:
        """What we make of the events."""
        traces, metering = Traces(self.id, semconv=self.semconv, content=True), Metering(self.id, self.semconv)
        spans: list[Span] = []
        measured: list[Measurement] = []
        for line in self.lines:
            event = read(line)
            assert event is not None
            taken = traces.take(event)
            spans += taken.spans
            measured += metering.measure(event, taken)
        died = traces.process_died()
        measured += metering.ended(died)
        return Told(spans + died, list(summed(measured, self.semconv)))


def summed(measured: list[Measurement], semconv: Semconv) -> Iterable[tuple[Instrument, AnyPoint]]:
    """Return the last point of each series."""
    sums = Aggregate(MetricStream(semconv=semconv))
    sums.add(measured)
    found: dict[tuple[Instrument, object], tuple[Instrument, AnyPoint]] = {}
    while points := sums.points():
        for instrument, some in points:
            found |= {(instrument, point.labels): (instrument, point) for point in some}
        sums.accepted()
    return found.values()


def load(name: str, version: str, events: Path, *telemetry: Path, whole: bool = True) -> Session:
    """Read a session from its log and from what telemetry files the CLI wrote of it, one per run."""
    lines = events.read_bytes().removesuffix(b"\n").split(b"\n")
    session = json.loads(lines[0])["data"]["sessionId"]
    written = [json.loads(line) for path in telemetry if path.exists() for line in path.read_bytes().splitlines()]
    spans = [_span(item) for item in written if item["type"] == "span"]
    return Session(name, version, session, spans, _metrics(written), lines, whole)


def captures() -> list[Session]:
    """Every capture that has both records, where this machine has captures, and the sessions of our own fixtures."""
    places = [(REAL / "captures", "1.0.102"), (REAL / "captures-1.0.48", "1.0.48")]
    places += [(FIXTURES / version, version) for version in ("1.0.102", "1.0.48")]
    return [
        load(path.parent.name, version, path.parent / "events.jsonl", path, whole=FIXTURES not in path.parents)
        for directory, version in places
        for path in sorted(directory.glob("*/otel.jsonl"))
    ]


def _span(item: dict[str, Any]) -> CliSpan:
    return CliSpan(
        item["traceId"],
        item["spanId"],
        item.get("parentSpanId"),
        item["name"],
        _nanoseconds(item["startTime"]),
        _nanoseconds(item["endTime"]),
        item["attributes"],
        [CliEvent(event["name"], _nanoseconds(event["time"]), event["attributes"]) for event in item["events"]],
        item.get("kind", 0),
        item.get("status", {}),
        item.get("resource", {}).get("attributes", {}),
        item.get("instrumentationScope", {}).get("name", ""),
    )


def _metrics(written: list[dict[str, Any]]) -> list[CliMetric]:
    """The metrics of each process; one that writes a metric again means the same one."""
    latest: dict[tuple[str, int], CliMetric] = {}
    for item in written:
        if item["type"] == "metric" and item["dataPoints"]:
            began = _nanoseconds(item["dataPoints"][0]["startTime"])
            points = [(point["attributes"], point["value"]) for point in item["dataPoints"]]
            latest[item["name"], began] = CliMetric(item["name"], item["unit"], points)
    return list(latest.values())


def _nanoseconds(pair: list[int]) -> int:
    return pair[0] * 1_000_000_000 + pair[1]
