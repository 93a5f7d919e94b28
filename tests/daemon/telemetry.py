"""What tests of OTLP endpoints share: the demo's session on a station, and what a receiver was sent of it."""

from collections import Counter
from importlib.resources import files
from typing import Any, Final

from config.settings import Otel, Settings
from exporter.errors import Exit
from tests.daemon.sessions import SessionFile
from tests.daemon.station import Exporter, Station
from tests.otel.receiver import Receiver, text_of

DEMO: Final = files("exporter.demo").joinpath("session.jsonl").read_bytes().splitlines()


def settings_for(station: Station, receiver: Receiver, **changes: Any) -> Settings:
    """Return settings with one endpoint, `otel`, which gets all history; changes are of it, or of the settings."""
    of_endpoint = {key: changes.pop(key) for key in list(changes) if key in Otel.__struct_fields__}
    address = receiver.grpc_url if of_endpoint.get("protocol") == "grpc" else receiver.url
    return station.settings(
        {}, otel={"default": Otel(**{"endpoint": address, "history_days": 36_500, **of_endpoint})}, **changes
    )


def demo_session(station: Station, name: str = "s", lines: list[bytes] | None = None) -> SessionFile:
    """Write the demo's session, or other lines, to a station."""
    session = station.session(name)
    session.append(*(DEMO if lines is None else lines))
    return session


async def delivered(station: Station, settings: Settings) -> Exporter:
    """Start an exporter and return it when everything is delivered."""
    exporter = station.exporter(settings)
    assert await exporter.idle() == Exit.DONE
    return exporter


def span_counts(receiver: Receiver) -> Counter[tuple[bytes, bytes]]:
    """Count how often every span was accepted, by the ids of its trace and its own."""
    return Counter((span.trace_id, span.span_id) for span in receiver.spans())


def logged(receiver: Receiver) -> Counter[str]:
    """Count how often a log record was accepted, by the id of its event."""
    return Counter(attributes_of(record)["event.id"] for record in receiver.logs())


def attributes_of(record: Any) -> dict[str, Any]:
    """Return the attributes of a span, a record, a point or a resource."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in record.attributes}


def totals(receiver: Receiver, name: str) -> dict[tuple[tuple[str, Any], ...], float]:
    """Return what every series of a counter came to: the newest values since each of its starts, of every instance."""
    newest: dict[tuple[str, int, tuple[tuple[str, Any], ...]], tuple[int, float]] = {}
    for part in (
        one for it in receiver.requests if it.signal == "metrics" and it.kept for one in it.decoded().resource_metrics
    ):
        instance = text_of(part.resource, "service.instance.id")
        points = (
            p
            for scope in part.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for p in metric.sum.data_points
        )
        for point in points:
            key = (instance, point.start_time_unix_nano, tuple(sorted(attributes_of(point).items())))
            newest[key] = max(newest.get(key, (0, 0.0)), (point.time_unix_nano, point.as_int or point.as_double))
    sums: dict[tuple[tuple[str, Any], ...], float] = {}
    for (_, _, labels), (_, value) in newest.items():
        sums[labels] = sums.get(labels, 0.0) + value
    return sums
