"""The exporter's own figures, as a receiver gets them."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from otel.health import LABELS_MAX, TABLE, Figures, Health, SinkFigures, points
from otel.send.endpoint import Endpoint, EndpointError
from tests.otel.certificates import make_certificates
from tests.otel.receiver import Receiver
from tests.otel.reply import HANG, Reply
from tests.otel.written import read

TOKEN = "Bearer s3cr3t-t0ken-of-mine"
FIGURES = Figures(
    sinks={"mc": SinkFigures(1, 2, 3.5, 4, 5, 6, 7), "otel": SinkFigures(lag_events=9)},
    redactions={"github-token": 3},
    unknown_events={"session.novel": 2},
    orphans=1,
    quarantined=8,
    defects=2,
)
VALUES = {
    "session_exporter.sink.lag.events": {"mc": 1, "otel": 9},
    "session_exporter.sink.lag.bytes": {"mc": 2, "otel": 0},
    "session_exporter.sink.lag.time": {"mc": 3.5, "otel": 0.0},
    "session_exporter.sink.queue": {"mc": 4, "otel": 0},
    "session_exporter.sink.retries": {"mc": 5, "otel": 0},
    "session_exporter.sink.repeated": {"mc": 6, "otel": 0},
    "session_exporter.sink.rejected": {"mc": 7, "otel": 0},
    "session_exporter.quarantined": {"": 8},
    "session_exporter.redactions": {"github-token": 3},
    "session_exporter.unknown_events": {"session.novel": 2},
    "session_exporter.orphans": {"": 1},
    "session_exporter.defects": {"": 2},
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(with_grpc=True) as receiver:
        yield receiver


def health(receiver: Receiver, failed: Callable[[str], None] = pytest.fail, **settings: Any) -> Health:
    url = receiver.grpc_url if settings.get("protocol") == "grpc" else receiver.url
    own: dict[str, Any] = {name: settings.pop(name) for name in ("interval_seconds", "temporality") if name in settings}
    given: Any = {"address": url, "timeout_seconds": 5} | settings
    own.setdefault("interval_seconds", 60)
    resource = {"service.name": "session-exporter", "service.instance.id": "one"}
    return Health(Endpoint(**given), lambda: FIGURES, resource, "1.2", failed=failed, **own)


def values_of(metrics: list[Metric]) -> dict[str, dict[object, object]]:
    found: dict[str, dict[object, object]] = {}
    for metric in metrics:
        data = metric.sum if metric.HasField("sum") else metric.gauge
        for point in data.data_points:
            (told,) = read(point.attributes) or [("", ("", ""))]
            value = point.as_int if point.WhichOneof("value") == "as_int" else point.as_double
            found.setdefault(metric.name, {})[told[1][1]] = value  # type: ignore[index]  # a pair, see read
    return found


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
@pytest.mark.parametrize("gzip", [False, True])
def test_all_figures_arrive_with_their_names(receiver: Receiver, protocol: str, gzip: bool) -> None:
    sending = health(receiver, protocol=protocol, gzip=gzip, headers=lambda: {"Authorization": "mine"})

    sending.start()
    sending.stop()

    assert values_of(receiver.metrics()) == VALUES
    assert {row.name for row in TABLE} == set(VALUES)
    for row, metric in zip(TABLE, receiver.metrics(), strict=True):
        assert (metric.name, metric.unit, metric.description) == (row.name, row.unit, row.meaning)
        assert metric.HasField("sum") == (row.kind == "counter")
        assert not metric.HasField("sum") or metric.sum.is_monotonic
    assert [(pair.key, pair.value.string_value) for pair in receiver.resources("metrics")[0].attributes] == [
        ("service.name", "session-exporter"), ("service.instance.id", "one"),
    ]  # fmt: skip
    assert receiver.requests[0].headers["authorization"] == "mine"


def test_they_are_sent_again_and_again_and_counters_keep_their_beginning(receiver: Receiver) -> None:
    sending = health(receiver, interval_seconds=0.05)

    sending.start()
    receiver.wait_for(3)
    sending.stop()

    starts: dict[tuple[str, str], set[int]] = {}
    for metric in receiver.metrics():
        for point in metric.sum.data_points:
            starts.setdefault((metric.name, str(read(point.attributes))), set()).add(point.start_time_unix_nano)
    assert len(starts) == 10
    assert all(len(begun) == 1 for begun in starts.values())
    assert {m.sum.aggregation_temporality for m in receiver.metrics() if m.HasField("sum")} == {2}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_delta_is_sent_where_it_is_asked_for(receiver: Receiver, protocol: str) -> None:
    sending = health(receiver, protocol=protocol, temporality="delta")

    sending.start()
    sending.stop()

    assert {m.sum.aggregation_temporality for m in receiver.metrics() if m.HasField("sum")} == {1}


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_nothing_of_the_environment_is_used(receiver: Receiver, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "grpc_proxy", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-other=another-endpoints-secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-more=another-endpoints-secret")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "deflate")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "secret=another-endpoints-secret")
    sending = health(receiver, protocol=protocol, gzip=False)

    sending.start()
    sending.stop()

    (request,) = receiver.requests
    assert "another-endpoints-secret" not in f"{request.headers} {request.body!r}"
    assert values_of(receiver.metrics()) == VALUES
    assert {m.sum.aggregation_temporality for m in receiver.metrics() if m.HasField("sum")} == {2}


def test_headers_are_read_for_each_request_over_http(receiver: Receiver) -> None:
    turns = iter(["one", "two"])
    sending = health(receiver, headers=lambda: {"x-turn": next(turns, "later")}, interval_seconds=0.05)

    sending.start()
    receiver.wait_for(2)
    sending.stop()

    assert [request.headers["x-turn"] for request in receiver.requests[:2]] == ["one", "two"]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_failure_is_told_without_secrets_and_written_nowhere(
    receiver: Receiver, protocol: str, capfd: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    receiver.plan(then=Reply(401, message=f"who is {TOKEN}?"))
    sending = health(receiver, told.append, protocol=protocol, headers=lambda: {"authorization": TOKEN})

    sending.start()
    sending.stop()

    assert told
    assert "s3cr3t" not in " ".join(told)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_stopping_takes_no_longer_than_it_may(receiver: Receiver, protocol: str) -> None:
    receiver.plan(then=HANG)
    sending = health(receiver, lambda _: None, protocol=protocol, timeout_seconds=20)
    sending.start()
    began = time.monotonic()

    sending.stop(0.3)
    sending.stop()

    assert time.monotonic() - began < 2


def test_it_can_be_started_again(receiver: Receiver) -> None:
    for _ in range(2):
        sending = health(receiver)
        sending.start()
        sending.stop()

    assert len(receiver.requests) == 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("OtelPeriodic")]


def test_no_global_provider_is_set(receiver: Receiver) -> None:
    before = metrics.get_meter_provider()
    sending = health(receiver)
    sending.start()
    sending.stop()

    assert metrics.get_meter_provider() is before


def test_many_names_are_added_up_and_no_counter_falls() -> None:
    def unknown(count: int) -> dict[str, float]:
        figures = Figures(unknown_events={f"type {number}\x1b" + "x" * 200: 1 for number in range(count)})
        return next(values for row, values in points(figures).items() if row.name.endswith("unknown_events"))

    before: dict[str, float] = {}
    for count in range(3 * LABELS_MAX):
        after = unknown(count)
        assert all(after[name] >= value for name, value in before.items())
        assert sum(after.values()) == count
        before = after

    assert len(before) == LABELS_MAX + 1
    assert all(name.isprintable() and len(name) <= 100 for name in before)


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_client_certificate_is_shown_and_the_authority_trusted(tmp_path: Any, protocol: str) -> None:
    files = make_certificates(tmp_path)
    with Receiver(
        certificate=files.server, key=files.server_key, client_ca=files.authority, with_grpc=True
    ) as receiver:
        sending = health(
            receiver, protocol=protocol, certificate_file=str(files.authority),
            client_certificate_file=str(files.client), client_key_file=str(files.client_key),
        )  # fmt: skip
        sending.start()
        sending.stop()

        assert values_of(receiver.metrics()) == VALUES


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_endpoint_that_is_no_use_is_refused(receiver: Receiver, protocol: str) -> None:
    with pytest.raises(EndpointError):
        health(receiver, protocol=protocol, address="nowhere").start()
    with pytest.raises(EndpointError):
        health(receiver, protocol=protocol, address="https://127.0.0.1:1", certificate_file="/nowhere").start()
