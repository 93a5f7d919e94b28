"""Every way in which `semconv = "latest"` tells a session otherwise than `cli` does, as a backend reads the two."""

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from otel.bridge import SIGNALS, Bridge, SignalOptions
from otel.encode.records import metric_bytes, request_bytes
from otel.machines.metrics.aggregate import AnyPoint
from otel.model import Measurement
from otel.names import Content, Instrument, Semconv
from tests.otel.reply import REQUESTS
from tests.parity.everything import Difference
from tests.parity.oracle import FIXTURES, Session, summed
from tests.shared import REAL

_PLACES: Final = (REAL, FIXTURES, FIXTURES.parent / "sessions")
_DEMO: Final = Path(__file__).parents[2] / "exporter" / "demo" / "session.jsonl"
_MADE_UP: Final = FIXTURES / "latest.jsonl"
Told = dict[str, dict[Hashable, tuple[str, Any]]]
"""By signal: what was sent, by what tells it apart, with the name under which it stands in the table."""


def sessions() -> list[Session]:
    """Every session that is here: captures, fixtures, the demo, and one made up of what none of them has."""
    paths = [path for place in _PLACES for path in sorted(place.rglob("events.jsonl"))]
    return [_session(path, path.parent.name) for path in paths] + [
        _session(_DEMO, "demo"),
        _session(_MADE_UP, "latest"),
    ]


def _session(path: Path, name: str) -> Session:
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    data = json.loads(lines[0])["data"]
    return Session(name, data.get("copilotVersion", ""), data["sessionId"], [], [], lines)


def departures(one: Session, semconv: Semconv = "latest") -> set[Difference]:
    """Return how a convention differs from `cli`; absent is what `cli` alone has, extra what the other alone has."""
    cli, latest = _told(one, "cli"), _told(one, semconv)
    found = set(_of_all("log", cli["logs"], latest["logs"], _of_log))
    found |= set(_of_all("metric", cli["metrics"], latest["metrics"], _of_metric))
    operations = {place: where for told in (cli, latest) for place, (where, _) in told["traces"].items()}
    return found | set(_of_all("span", cli["traces"], latest["traces"], partial(_of_span, operations)))


def _told(one: Session, semconv: Semconv) -> Told:
    """Return what is sent of a session and of the death of its process, with all that is opt-in."""
    options = SignalOptions(content=Content.REDACTED, semconv=semconv, inference_details=True)
    bridge = Bridge(one.id, options)
    taken, died = bridge.take(one.lines, 1), bridge.process_died(1)
    sent = {signal: [record for _, _, record in taken[signal] + died[signal]] for signal in SIGNALS}
    sent["metrics"] = list(_metrics([each for some in sent["metrics"] for each in some], semconv))
    logs = defaultdict[Hashable, int](int)
    told: Told = {signal: {} for signal in SIGNALS}
    for span in _read("traces", sent["traces"]):
        told["traces"][span.span_id] = span.name.split(" ")[0], span
    for metric in _read("metrics", sent["metrics"]):
        told["metrics"][metric.name] = metric.name, metric
    for log in _read("logs", sent["logs"]):
        about = log.event_name, _attributes(log.attributes)["event.id"]
        told["logs"][*about, logs[about]] = log.event_name, log
        logs[about] += 1
    return told


def _metrics(measured: Iterable[Measurement], semconv: Semconv) -> Iterator[bytes]:
    points = defaultdict[Instrument, list[AnyPoint]](list)
    for instrument, point in summed(list(measured), semconv):
        points[instrument].append(point)
    for instrument, some in points.items():
        yield metric_bytes(instrument, some, "cumulative", Content.REDACTED, semconv)


def _read(signal: str, records: Iterable[bytes]) -> Iterator[Any]:
    request = REQUESTS[signal].FromString(request_bytes(b"", b"", records))
    inner = {"traces": "spans", "metrics": "metrics", "logs": "log_records"}[signal]
    for resource in getattr(request, {"logs": "resource_logs"}.get(signal, f"resource_{inner}")):
        for scope in getattr(resource, {"logs": "scope_logs"}.get(signal, f"scope_{inner}")):
            yield from getattr(scope, inner)


def _of_all(signal: str, theirs: Any, mine: Any, compared: Any) -> Iterator[Difference]:
    for place, (where, sent) in theirs.items():
        if place in mine:
            yield from compared(where, sent, mine[place][1])
        else:
            yield Difference(signal, where, "", "absent")
    yield from (Difference(signal, where, "", "extra") for place, (where, _) in mine.items() if place not in theirs)


def _of_span(operations: Mapping[Hashable, str], where: str, cli: Any, latest: Any) -> Iterator[Difference]:
    fields = ("trace_id", "name", "kind", "start_time_unix_nano", "end_time_unix_nano", "status", "flags", "links")
    yield from _of_fields("span", where, fields, cli, latest)
    if cli.parent_span_id != latest.parent_span_id:
        yield Difference("span", where, f"below {operations.get(latest.parent_span_id, 'nothing')}", "value")
    yield from _of_attributes("span", where, cli.attributes, latest.attributes)
    theirs, mine = _by_name(cli.events), _by_name(latest.events)
    yield from _of_all("event", theirs, mine, _of_event)


def _by_name(events: Sequence[Any]) -> dict[Hashable, tuple[str, Any]]:
    before: dict[str, int] = defaultdict(int)
    found: dict[Hashable, tuple[str, Any]] = {}
    for event in events:
        found[event.name, before[event.name]] = event.name, event
        before[event.name] += 1
    return found


def _of_event(where: str, cli: Any, latest: Any) -> Iterator[Difference]:
    yield from _of_fields("event", where, ("time_unix_nano",), cli, latest)
    yield from _of_attributes("event", where, cli.attributes, latest.attributes)


def _of_log(where: str, cli: Any, latest: Any) -> Iterator[Difference]:
    fields = ("time_unix_nano", "observed_time_unix_nano", "severity_number", "severity_text", "body", "trace_id")
    yield from _of_fields("log", where, (*fields, "span_id", "flags"), cli, latest)
    yield from _of_attributes("log", where, cli.attributes, latest.attributes)


def _of_metric(where: str, cli: Any, latest: Any) -> Iterator[Difference]:
    yield from _of_fields("metric", where, ("description", "unit"), cli, latest)
    kind = cli.WhichOneof("data")
    if kind != latest.WhichOneof("data"):
        yield Difference("metric", where, "kind", "value")
        return
    theirs, mine = (_points(getattr(metric, kind).data_points) for metric in (cli, latest))
    if theirs != mine:
        labels, own = ({key for some in points for key, _ in some} for points in (theirs, mine))
        yield from (Difference("metric", where, key, "absent") for key in labels - own)
        yield from (Difference("metric", where, key, "extra") for key in own - labels)
        if labels == own:
            yield Difference("metric", where, "points", "value")


def _points(points: Iterable[Any]) -> dict[frozenset[tuple[str, bytes | str]], bytes]:
    """Return points by their labels; what else they hold, as bytes."""
    found = dict[frozenset[tuple[str, bytes | str]], bytes]()
    for point in points:
        labels = frozenset(_attributes(point.attributes).items())
        del point.attributes[:], point.exemplars[:]
        found[labels] = point.SerializeToString(deterministic=True)
    return found


def _of_fields(signal: str, where: str, fields: Iterable[str], cli: Any, latest: Any) -> Iterator[Difference]:
    for field in fields:
        if getattr(cli, field) != getattr(latest, field):
            yield Difference(signal, where, field, "value")


def _of_attributes(
    signal: str, where: str, cli: Iterable[KeyValue], latest: Iterable[KeyValue]
) -> Iterator[Difference]:
    theirs, mine = _attributes(cli), _attributes(latest)
    yield from (Difference(signal, where, key, "absent") for key in theirs.keys() - mine.keys())
    yield from (Difference(signal, where, key, "extra") for key in mine.keys() - theirs.keys())
    shared = theirs.keys() & mine.keys()
    yield from (Difference(signal, where, key, "value") for key in shared if theirs[key] != mine[key])


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, bytes | str]:
    return {pair.key: pair.value.string_value or pair.value.SerializeToString(deterministic=True) for pair in pairs}
