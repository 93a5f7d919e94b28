"""Names of sinks, and what is known and said of the addresses behind them."""

import pytest

from exporter.core.names import (
    INSTALLATION_HEADER,
    LOCAL,
    STORE_HEADER,
    drops_history,
    last_error_name,
    leaving,
    names_of,
    otlp_name,
    sink_name,
)


def test_a_sink_is_named_by_its_table_and_its_name_there() -> None:
    assert [sink_name("archive", name) for name in ("default", "cold")] == ["archive", "archive.cold"]
    assert [otlp_name("default"), otlp_name("lab", "logs")] == ["otel", "otel.lab:logs"]
    assert last_error_name(3) != last_error_name(4)


def test_what_others_read_is_written_as_the_documents_say() -> None:
    assert LOCAL == "local"
    assert (STORE_HEADER, INSTALLATION_HEADER) == ("session-exporter-store", "session-exporter-installation")


@pytest.mark.parametrize(
    ("sink", "names"),
    [
        ("archive", {"archive"}),
        ("otel:logs", {"otel:logs", "otel"}),
        ("otel.lab:logs", {"otel.lab:logs", "otel.lab", "otel"}),
        ("other.lab:logs", {"other.lab:logs", "other.lab"}),
    ],
)
def test_a_sink_is_asked_for_by_its_own_name_its_endpoints_and_that_of_all_endpoints(
    sink: str, names: set[str]
) -> None:
    assert names_of(sink) == names


@pytest.mark.parametrize(
    ("url", "signal", "word"),
    [
        ("http://host:9090/api/v1/otlp/v1/metrics", "metrics", "Prometheus"),
        ("http://host:9090/api/v1/otlp/v1/logs", "logs", None),
        ("http://host:9428/insert/opentelemetry/v1/logs", "logs", "Victoria"),
        ("http://host:8428/insert/opentelemetry/v1/metrics", "metrics", "Victoria"),
        ("http://host:3100/otlp/v1/logs", "logs", "Loki"),
        ("http://host:3100/otlp/v1/metrics", "metrics", None),
        ("https://otlp-gateway-prod.grafana.net/otlp/v1/traces", "traces", "Grafana Cloud"),
        ("http://host:9009/otlp/v1/metrics", "metrics", "Mimir"),
        ("http://host:9009/otlp/v1/traces", "traces", None),
        ("http://host:4318/v1/metrics", "metrics", None),
    ],
)
def test_what_drops_old_telemetry_is_known_by_its_address(url: str, signal: str, word: str | None) -> None:
    fact = drops_history(url, signal)

    assert fact is None if word is None else word in str(fact)


def test_what_leaves_the_machine_is_said_with_its_host_and_without_secrets() -> None:
    addresses = {
        "local": "http://127.0.0.1:1",
        "archive": "file:///data",
        "mission_control": "https://name:password@host.example:8443/path",
        "otel": "http://other.example/v1?key=secret",
    }

    assert leaving(addresses) == ["mission_control (host.example:8443)", "otel (other.example)"]
