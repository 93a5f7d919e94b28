"""Reading what the CLI's own telemetry wrote about a session, and what we make of the session's events."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otel.event import read
from otel.machines.traces.machine import Traces
from otel.model import Span
from otel.names import Semconv
from tests.shared import REAL

FIXTURES = Path(__file__).parents[1] / "fixtures" / "parity"


@dataclass(frozen=True, slots=True)
class CliSpan:
    """A span as the CLI wrote it."""

    trace: str
    id: str
    parent: str | None
    name: str
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]

    @property
    def operation(self) -> str:
        """The first word of the name."""
        return self.name.split(" ")[0]


@dataclass(frozen=True, slots=True)
class Session:
    """A session with both records of it."""

    name: str
    version: str
    id: str
    cli: list[CliSpan]
    lines: list[bytes]

    @property
    def semconv(self) -> Semconv:
        """The convention in which this version of the CLI speaks."""
        return "legacy" if self.version == "1.0.48" else "latest"

    def spans(self) -> list[Span]:
        """What we make of the events."""
        machine = Traces(self.id, semconv=self.semconv, content=True)
        spans: list[Span] = []
        for line in self.lines:
            event = read(line)
            assert event is not None
            spans += machine.take(event).spans
        return spans + machine.process_died()


def load(name: str, version: str, events: Path, *telemetry: Path) -> Session:
    """Read a session from its log and from what telemetry files the CLI wrote of it, one per run."""
    lines = events.read_bytes().removesuffix(b"\n").split(b"\n")
    session = json.loads(lines[0])["data"]["sessionId"]
    written = [json.loads(line) for path in telemetry if path.exists() for line in path.read_bytes().splitlines()]
    return Session(name, version, session, [_span(item) for item in written if item["type"] == "span"], lines)


def captures() -> list[Session]:
    """Every capture that has both records, where this machine has captures, and the sessions of our own fixtures."""
    places = [(REAL / "captures", "1.0.102"), (REAL / "captures-1.0.48", "1.0.48")]
    places += [(FIXTURES / version, version) for version in ("1.0.102", "1.0.48")]
    return [
        load(path.parent.name, version, path.parent / "events.jsonl", path)
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
        [(event["name"], event["attributes"]) for event in item["events"]],
    )


def _nanoseconds(pair: list[int]) -> int:
    return pair[0] * 1_000_000_000 + pair[1]
