"""How much memory the exporter takes while it works off a long backlog."""

from __future__ import annotations

from collections.abc import Callable

from tests.bench import measure
from tests.bench.generate import SessionFile, cached
from tests.bench.otlp_receiver import OtlpReceiver
from tests.bench.product import home
from tests.bench.receiver import Receiver
from tests.bench.report import Row

PSS_MAX_MB = 80
SESSIONS = 4
SAMPLE_SECONDS = 0.25
TIMEOUT_SECONDS = 600


def rows(size_bytes: int) -> list[Row]:
    """The largest samples of the whole tree with the real engine: to a Mission Control alone, and with telemetry.

    The backlog is spread over as many sessions as are delivered at once, which takes more memory than one long session.
    """
    files = [cached(size_bytes // SESSIONS, seed) for seed in range(11, 11 + SESSIONS)]
    return [_row(size_bytes, files, telemetry=telemetry) for telemetry in (False, True)]


def _row(size_bytes: int, files: list[SessionFile], *, telemetry: bool) -> Row:
    with (
        Receiver(arena_bytes=int(size_bytes * 1.1)) as receiver,
        home() as place,
        OtlpReceiver(place.directory) as otlp,
    ):
        for file in files:
            place.add(file)
        place.configure(receiver.url)
        if telemetry:
            with place.config.open("a") as config:
                config.write(f'[otel]\nendpoint = "{otlp.url}"\nhistory_days = 36500\n')
        receiver.reset(sum(file.durable for file in files))
        with (
            place.running("run") as program,
            measure.sampled(SAMPLE_SECONDS, lambda: measure.pss_bytes(program.pid)) as samples,
        ):
            summary = receiver.summary(TIMEOUT_SECONDS, program.check)
            if telemetry:
                logged: Callable[[], bool] = lambda: _is_delivered(place.status())  # noqa: E731
                measure.wait_until(logged, TIMEOUT_SECONDS, "telemetry of the backlog")
    if not summary.complete:
        raise RuntimeError(f"{summary.distinct} events of the backlog arrived within {TIMEOUT_SECONDS} s")
    peak = max(samples) / 1e6
    seconds = summary.last_at - program.started
    return Row(
        f"memory (PSS, largest) at {size_bytes / 1e9:.1f} GB backlog, real engine{', telemetry too' * telemetry}",
        f"≤ {PSS_MAX_MB} MB",
        f"{peak:.0f} MB",
        peak <= PSS_MAX_MB,
        {
            "pss_max_bytes": max(samples),
            "pss_median_bytes": sorted(samples)[len(samples) // 2],
            "samples": len(samples),
            "seconds": round(seconds, 2),
            "megabytes_per_second": round(size_bytes / 1e6 / seconds, 1),
        },
    )


def _is_delivered(status: dict[str, object] | None) -> bool:
    """Whether no sink lacks anything."""
    sinks = status.get("sinks") if status else None
    return isinstance(sinks, list) and bool(sinks) and not any(one["lag_events"] for one in sinks)
