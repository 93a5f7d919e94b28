"""What a store needs to keep telemetry of the past, by what it says of itself.

A store is recognised by the address that it takes telemetry at. What stands at another address may hand telemetry on,
so nobody there can be asked.
"""

import re
from dataclasses import dataclass
from typing import Final

_UNIT_DAYS: Final = {
    "ms": 1 / 86_400_000, "s": 1 / 86_400, "m": 1 / 1_440, "h": 1 / 24, "d": 1.0, "w": 7.0, "M": 31.0, "y": 365.0,
}  # fmt: skip
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdwMy])")
_EVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class KnownStore:
    """A sort of store: the end of its address, the signals that it keeps, where and what it is asked.

    `setting` is found in its answer by `pattern`, and is `default` days where the answer does not have it.
    """

    name: str
    end: str
    signals: tuple[str, ...]
    path: str
    setting: str
    pattern: re.Pattern[str]
    default: float = 0.0


_WINDOW: Final = re.compile(r"out_of_order_time_window: *([\w.]+)")
_STORES: Final = (
    KnownStore("Prometheus", "/api/v1/otlp", ("metrics",), "/api/v1/status/config",
               "storage.tsdb.out_of_order_time_window", _WINDOW),
    KnownStore("Loki", "/otlp", ("logs",), "/config", "limits_config.reject_old_samples_max_age",
               re.compile(r"reject_old_samples_max_age: *([\w.]+)"), 7.0),
    KnownStore("Mimir", "/otlp", ("metrics",), "/config", "out_of_order_time_window", _WINDOW),
    KnownStore("VictoriaMetrics", "/opentelemetry", ("metrics",), "/flags", "-retentionPeriod",
               re.compile(r'retentionPeriod="?([\w.]+)'), 31.0),
    KnownStore("VictoriaLogs or VictoriaTraces", "/insert/opentelemetry", ("logs", "traces"),
               "/flags", "-retentionPeriod", re.compile(r'retentionPeriod="?([\w.]+)'), 7.0),
)  # fmt: skip
_TAKES_ALL: Final = re.compile(r"reject_old_samples: *false")
_UNASKED: Final = {
    "metrics": "Prometheus takes old points within storage.tsdb.out_of_order_time_window",
    "logs": "Loki takes old records within limits_config.reject_old_samples_max_age, or with reject_old_samples: false",
    "traces": "Tempo finds old spans by search if query_frontend.search.query_backend_after is short (deploy/tempo)",
}


def store_at(url: str, signal: str) -> tuple[KnownStore, str] | None:
    """Return which store takes a signal at an address, and the path of the answer about itself; None if not known."""
    path = re.sub(r"^[a-z]+://[^/]*|[?#].*$", "", url).removesuffix(f"/v1/{signal}").rstrip("/")
    end = max((one.end for one in _STORES if path.endswith(one.end)), key=len, default=None)
    store = next((one for one in _STORES if one.end == end and signal in one.signals), None)
    return (store, path.removesuffix(store.end) + store.path) if store is not None else None


def needs(place: str, signal: str, days: float, store: KnownStore | None, answer: str | None) -> str:
    """Return what `days` of history need of what takes a signal at a place; `answer` is what the store said."""
    wanted = _shown(days)
    if store is None:
        return (
            f"nobody at {place} can be asked: it may hand {signal} on, and then nobody here hears of what the store "
            f"behind it refuses. For {wanted}: {_UNASKED[signal]}"
        )
    if answer is None:
        return f"{store.name} at {place} does not say how old {signal} it keeps. For {wanted} see its {store.setting}"
    kept = _EVER if _TAKES_ALL.search(answer) else _days(store, answer)
    if kept >= days:
        limit = "of any age" if kept == _EVER else f"of the last {_shown(kept)}"
        return f"{store.name} at {place} keeps {signal} {limit}, which is enough for {wanted}"
    return (
        f"{store.name} at {place} keeps {signal} of the last {_shown(kept)} only. For {wanted} set {store.setting} to "
        f"{int(days) + 1}d or more, or what is older is lost"
    )


def _days(store: KnownStore, answer: str) -> float:
    found = store.pattern.search(answer)
    if found is None:
        return store.default
    if found[1].isdecimal():  # of a retention, in months; of a window, none
        return int(found[1]) * _UNIT_DAYS["M"] if store.setting == "-retentionPeriod" else int(found[1])
    return sum(float(number) * _UNIT_DAYS[unit] for number, unit in _PART.findall(found[1]))


def _shown(days: float) -> str:
    return f"{days:.0f} days" if days >= 2 or not days else f"{days * 24:.0f} hours"
