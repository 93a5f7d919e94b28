"""What stores need for history: as real ones say it of themselves."""

import pytest

from exporter.core.delivery.history_needs import needs, store_at

PROMETHEUS = '{"status":"success","data":{"yaml":"storage:\\n  tsdb:\\n    out_of_order_time_window: 400d\\n"}}'
LOKI = "limits_config:\n  reject_old_samples: true\n  reject_old_samples_max_age: 1w\n"


@pytest.mark.parametrize(
    ("url", "signal", "name", "path"),
    [
        ("http://host:9090/api/v1/otlp/v1/metrics", "metrics", "Prometheus", "/api/v1/status/config"),
        ("http://host/prom/api/v1/otlp/v1/metrics", "metrics", "Prometheus", "/prom/api/v1/status/config"),
        ("http://host:3100/otlp/v1/logs", "logs", "Loki", "/config"),
        ("http://host:9009/otlp/v1/metrics", "metrics", "Mimir", "/config"),
        ("http://host:8428/opentelemetry/v1/metrics", "metrics", "VictoriaMetrics", "/flags"),
        ("http://host:9428/insert/opentelemetry/v1/logs", "logs", "VictoriaLogs or VictoriaTraces", "/flags"),
    ],
)
def test_a_store_is_known_by_its_address(url: str, signal: str, name: str, path: str) -> None:
    found = store_at(url, signal)

    assert found is not None
    assert (found[0].name, found[1]) == (name, path)


@pytest.mark.parametrize(
    ("url", "signal"), [("http://host:4318/v1/metrics", "metrics"), ("http://host:9090/api/v1/otlp/v1/logs", "logs")]
)
def test_what_may_hand_telemetry_on_is_no_store(url: str, signal: str) -> None:
    assert store_at(url, signal) is None


@pytest.mark.parametrize(
    ("url", "signal", "days", "answer", "said"),
    [
        (
            "http://h/api/v1/otlp/v1/metrics",
            "metrics",
            30,
            PROMETHEUS,
            "the last 400 days, which is enough for 30",
        ),
        ("http://h/api/v1/otlp/v1/metrics", "metrics", 30, "{}", "the last 0 days only. For 30 days set storage.tsdb"),
        ("http://h/api/v1/otlp/v1/metrics", "metrics", 3, "out_of_order_time_window: 1d12h", "the last 36 hours only"),
        ("http://h/api/v1/otlp/v1/metrics", "metrics", 3, "out_of_order_time_window: 90m30s", "the last 2 hours only"),
        ("http://h/otlp/v1/metrics", "metrics", 400, "out_of_order_time_window: 1y2w500ms", "the last 379 days only"),
        ("http://h/otlp/v1/logs", "logs", 3, LOKI, "of the last 7 days, which is enough"),
        ("http://h/otlp/v1/logs", "logs", 30, LOKI, "set limits_config.reject_old_samples_max_age to 31d or more"),
        ("http://h/otlp/v1/logs", "logs", 900, LOKI.replace("true", "false"), "logs of any age"),
        ("http://h/opentelemetry/v1/metrics", "metrics", 30, '-retentionPeriod="400d"', "of the last 400 days"),
        ("http://h/opentelemetry/v1/metrics", "metrics", 60, "-retentionPeriod=1", "of the last 31 days only"),
        ("http://h/otlp/v1/logs", "logs", 30, None, "does not say how old logs it keeps. For 30 days see its limits"),
        ("http://h:4318/v1/logs", "logs", 30, None, "the store behind it refuses. For 30 days: Loki takes"),
        ("http://h:4318/v1/traces", "traces", 1, None, "For 24 hours: Tempo finds old spans"),
    ],
)
def test_what_history_needs_is_said(url: str, signal: str, days: float, answer: str | None, said: str) -> None:
    found = store_at(url, signal)

    assert said in needs(url, signal, days, found[0] if found else None, answer)
