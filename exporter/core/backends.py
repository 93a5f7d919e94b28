"""Which backends are known to drop what is old, by the address they are reached at."""

from typing import Final

_KNOWN: Final = (
    (
        "/api/v1/otlp",
        "metrics",
        "Prometheus takes old points only within storage.tsdb.out_of_order_time_window",
    ),
    (
        "/insert/opentelemetry",
        "",
        "Victoria answers 200 and drops what is older than its -retentionPeriod",
    ),
    (":3100", "logs", "Loki refuses what is older than limits_config.reject_old_samples_max_age, 7 days by default"),
    (".grafana.net/otlp", "", "Grafana Cloud refuses points older than some hours, and logs older than a week"),
    (":9009", "metrics", "Mimir takes old points only within out_of_order_time_window"),
)


def drops_history(url: str, signal: str) -> str | None:
    """Return what is known about an address that takes a signal and does not keep history as it is, None if nothing."""
    for part, of_signal, told in _KNOWN:
        if part in url and of_signal in ("", signal):
            return told
    return None
