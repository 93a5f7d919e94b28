"""How fast sessions become telemetry: made into OTLP's bytes, delivered, delivered as history, delivered live."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from otel.bridge import SIGNALS, Bridge, SignalOptions
from otel.encode.records import metric_bytes
from otel.instruments import instruments
from otel.machines.metrics.aggregate import Aggregate, MetricStream
from otel.model import Measurement
from otel.names import Content
from tests.bench import conversations, measure, session_otel
from tests.bench.conversations import Conversation, Teller
from tests.bench.otlp_receiver import OtlpReceiver
from tests.bench.product import READY_TIMEOUT_SECONDS, Home, home
from tests.bench.receiver import REPOSITORY
from tests.bench.report import Row

MAPPED_MIN = 60_000
SPANS_MIN = 30_000
REPEAT_CORE_MAX = 0.005
PEER_RATIO_MIN = 7.0
HISTORY_MIN = 55_000
RSS_MAX_MB = 120
LAG_MAX_SECONDS = 0.5
SPANS_PER_SECOND = 20
EVENTS_EACH = 10_000
TIMEOUT_SECONDS = 600
_SLICE_EVENTS = 256
"""How many events the exporter gives a bridge at a time."""


@dataclass(frozen=True, slots=True)
class Run:
    """One program that delivered what it had and ended; `seconds` go from its start to the last answer."""

    seconds: float
    records: dict[str, int]
    distinct_spans: int
    body_bytes: int
    requests: int
    finished: measure.Finished
    pss_max_bytes: int = 0
    """Of all its processes together."""
    rss_max_bytes: int = 0
    """Of the largest of them."""


def rows(*, quick: bool) -> list[Row]:
    """All of them."""
    return [
        *_mapped(20_000 if quick else 100_000, 1 if quick else 3),
        *_spans(1 if quick else 18, 1 if quick else 3),
        *_history(2 if quick else 100),
        _repeats(),
        _lag(5 if quick else 60),
    ]


def _mapped(events: int, rounds: int) -> list[Row]:
    """Events in memory to the bytes of records, on one core, beginning with the redacted lines."""
    session, lines, _ = conversations.lines(events)
    choices: dict[str, Sequence[str]] = {"all three signals": SIGNALS, **{signal: (signal,) for signal in SIGNALS}}
    taken: dict[str, list[float]] = {name: [] for name in choices}
    for _ in range(rounds):
        for name, signals in choices.items():
            bridge = Bridge(session, SignalOptions(signals, Content.METADATA))
            began = time.process_time()
            for first in range(0, len(lines), _SLICE_EVENTS):
                bridge.take(lines[first : first + _SLICE_EVENTS], 1)
            taken[name].append(time.process_time() - began)
    rates = {name: len(lines) / statistics.median(seconds) for name, seconds in taken.items()}
    best = {name: round(len(lines) / min(seconds)) for name, seconds in taken.items()}
    alone = ", ".join(f"{name} alone {rate:,.0f}" for name, rate in list(rates.items())[1:])
    rate = rates["all three signals"]
    return [
        Row(
            "telemetry: events mapped and encoded per CPU second, all three signals",
            f"≥ {MAPPED_MIN:,}",
            f"{rate:,.0f} ({alone})",
            rate >= MAPPED_MIN,
            {"events": len(lines), "bytes": sum(map(len, lines)), "median": rates, "best": best},
        )
    ]


def _spans(sessions: int, rounds: int) -> list[Row]:
    """Traces alone, beside the peer, each with as many spans; what a program takes to start is taken off."""
    told = conversations.cached(sessions, EVENTS_EACH)
    spans = sum(one.spans for one in told)
    ours: list[Run] = []
    theirs: list[Run] = []
    peer = session_otel.find()
    for _ in range(rounds):
        ours.append(_deliver(told, ("traces",)))
        if ours[-1].distinct_spans != spans:
            raise RuntimeError(f"{ours[-1].distinct_spans} of {spans} spans arrived")
        if peer is not None and not (theirs and theirs[-1].seconds > TIMEOUT_SECONDS / 20):
            theirs.append(_peer_delivers(peer, spans))
    start = _deliver(conversations.cached(1, 10), ("traces",)).seconds
    rate = _rate(ours, start)
    found = [
        Row(
            "telemetry: spans delivered per second, start-up apart",
            f"≥ {SPANS_MIN:,}",
            f"{rate:,.0f} ({statistics.median(one.finished.cpu_seconds for one in ours):.1f} CPU s)",
            rate >= SPANS_MIN,
            {"spans": spans, "start_seconds": round(start, 2), **_figures(ours)},
        )
    ]
    if peer is not None:
        peer_start = _peer_delivers(peer, 10).seconds
        ratio = rate / _rate(theirs, peer_start)
        found.append(
            Row(
                f"telemetry: spans per second to agent-session-otel {session_otel.VERSION}",
                f"≥ {PEER_RATIO_MIN:g} x",
                f"{ratio:.1f} x ({_rate(theirs, peer_start):,.0f} spans/s)",
                ratio >= PEER_RATIO_MIN,
                {"ratio": round(ratio, 2), "start_seconds": round(peer_start, 2), **_figures(theirs)},
            )
        )
    return found


def _history(sessions: int) -> list[Row]:
    """All three signals of a month of sessions, by `backfill`."""
    told = conversations.cached(sessions, EVENTS_EACH)
    events = sum(one.events for one in told)
    run = _deliver(told, SIGNALS, "backfill", "--all", "--sink", "otel")
    expected = {"logs": events, "traces": sum(one.spans for one in told)}
    if any(run.records.get(signal) != count for signal, count in expected.items()):
        raise RuntimeError(f"{run.records} arrived instead of {expected}")
    start = _deliver(conversations.cached(1, 10), SIGNALS, "backfill", "--all", "--sink", "otel").seconds
    seconds = run.seconds - start
    rate, rss, pss = events / seconds, run.rss_max_bytes / 1e6, run.pss_max_bytes / 1e6
    figures = {"events": events, "start_seconds": round(start, 2), **_figures([run])}
    return [
        Row(
            f"telemetry: history of {events:,} events, all three signals, start-up apart",
            f"≥ {HISTORY_MIN:,} events/s",
            f"{rate:,.0f} events/s ({seconds:.1f} s, {run.finished.cpu_seconds:.1f} CPU s)",
            rate >= HISTORY_MIN,
            figures,
        ),
        Row(
            "telemetry: memory meanwhile, all processes together (PSS)",
            f"≤ {RSS_MAX_MB} MB",
            f"{pss:.0f} MB (RSS of the largest {rss:.0f} MB)",
            pss <= RSS_MAX_MB,
        ),
    ]


def _lag(seconds: float) -> Row:
    """From the append of the event that ends a span to the answer to the request with the span."""
    teller = Teller(77)
    lines, ends = [teller.start()], {}
    while teller.spans < seconds * SPANS_PER_SECOND:
        lines.extend(teller.interaction())
    found = Bridge(teller.session_id, SignalOptions(("traces",))).take([line.rstrip(b"\n") for line in lines], 1)[
        "traces"
    ]
    events_per_second = SPANS_PER_SECOND * len(lines) / teller.spans
    with home() as place, OtlpReceiver(place.directory) as receiver:
        _configure(place, receiver.url, SIGNALS)
        path = place.session_path(teller.session_id)
        path.write_bytes(lines[0])
        with place.running("run") as program:
            measure.wait_until(lambda: place.follows(1), READY_TIMEOUT_SECONDS, "the control socket")
            for number, line in enumerate(lines[1:], start=1):
                time.sleep(1 / events_per_second)
                program.check()
                ends[number] = time.monotonic()
                with path.open("ab") as file:
                    file.write(line)
            time.sleep(2)
            program.stop()
        accepted = {span: one.at for one in receiver.requests() if one.signal == "traces" for span in one.span_ids()}
    lags = [accepted[bytes.fromhex(span)] - ends[number] for number, span, _ in found]
    p95, middle = measure.percentile(lags, 0.95), measure.percentile(lags, 0.5)
    return Row(
        f"telemetry: event that ends a span → span accepted, p95, at {SPANS_PER_SECOND} spans/s",
        f"≤ {LAG_MAX_SECONDS * 1000:.0f} ms",
        f"{p95 * 1000:.0f} ms (p50 {middle * 1000:.0f})",
        p95 <= LAG_MAX_SECONDS,
        {"spans": len(lags), "p50_ms": middle * 1000, "p95_ms": p95 * 1000, "max_ms": max(lags) * 1000},
    )


def _configure(place: Home, url: str, signals: Sequence[str]) -> None:
    place.configure(None)
    with place.config.open("a") as config:
        config.write(f'[otel]\nendpoint = "{url}"\nsignals = {list(signals)}\nhistory_days = 36500\n')


def _deliver(told: Sequence[Conversation], signals: Sequence[str], *arguments: str) -> Run:
    """One run of the exporter from a fresh state over these sessions."""
    with home() as place, OtlpReceiver(place.directory) as receiver:
        for one in told:
            path = place.session_path(one.session_id)
            os.link(one.path, path)
            path.chmod(0o600)
            os.utime(path)
        _configure(place, receiver.url, signals)
        command = place.command(arguments or ("run", "--until-idle"))
        with _program(place, command) as (process, started), _memory(process.pid) as samples:
            finished = measure.wait(process, started)
        together, largest = (max(one) for one in zip(*samples, strict=True))
        run = _run(receiver, finished, started, place.directory / "log")
        return replace(run, pss_max_bytes=together, rss_max_bytes=largest)


def _memory(process: int) -> AbstractContextManager[list[tuple[int, int]]]:
    """Note twice a second how much memory a process and its children take together, and the largest has had."""
    return measure.sampled(0.5, lambda: (measure.pss_bytes(process), measure.largest_rss_bytes(process)))


def _peer_delivers(program: Path, spans: int) -> Run:
    with home() as place, OtlpReceiver(place.directory) as receiver:
        root = place.directory / "claude"
        session_otel.write(root, spans)
        with _program(place, session_otel.command(program, root, receiver.url)) as (process, started):
            finished = measure.wait(process, started)
        return _run(receiver, finished, started, place.directory / "log")


@contextmanager
def _program(place: Home, command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """Start a program in a home; it is killed when it is left before it has ended."""
    with (place.directory / "log").open("wb") as output:
        started = time.monotonic()
        process = subprocess.Popen(command, env=place.environ(), cwd=REPOSITORY, stdout=output, stderr=output)
    try:
        yield process, started
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()


def _run(receiver: OtlpReceiver, finished: measure.Finished, started: float, log: Path) -> Run:
    if finished.exit_code != 0:
        raise RuntimeError(f"ended with {finished.exit_code}: {log.read_text()[-1000:]}")
    records: dict[str, int] = dict.fromkeys(SIGNALS, 0)
    spans: set[bytes] = set()
    last, size, requests = started, 0, 0
    for one in receiver.requests():
        ids = one.span_ids() if one.signal == "traces" else []
        records[one.signal] += len(ids) if ids else sum(1 for _ in one.records())
        spans.update(ids)
        last, size, requests = max(last, one.at), size + one.size, requests + 1
    return Run(last - started, records, len(spans), size, requests, finished)


def _rate(runs: Sequence[Run], start: float) -> float:
    return statistics.median(one.distinct_spans / max(one.seconds - start, 1e-3) for one in runs)


def _figures(runs: Sequence[Run]) -> dict[str, object]:
    return {
        "seconds": [round(one.seconds, 2) for one in runs],
        "cpu_seconds": [round(one.finished.cpu_seconds, 2) for one in runs],
        "rss_max_bytes": [one.rss_max_bytes for one in runs],
        "pss_max_bytes": [one.pss_max_bytes for one in runs],
        "requests": [one.requests for one in runs],
        "body_bytes": [one.body_bytes for one in runs],
    }


def _repeats() -> Row:
    """What repeating ten thousand series every minute takes of a core."""
    known = [one for one in instruments() if "cli" in one.semconvs]
    aggregate, begin = Aggregate(MetricStream(series_max=10_000)), 1_700_000_000 * 10**9
    labels = [f"value-{number}" for number in range(10_000 // len(known) + 1)]
    aggregate.add([Measurement(one, begin, 1, (text,) * len(one.labels), None) for one in known for text in labels])
    _collect(aggregate, begin)
    cpu = []
    for minute in range(1, 6):
        begun = time.process_time()
        _collect(aggregate, begin + minute * 60 * 10**9)
        cpu.append(time.process_time() - begun)
    share = statistics.median(cpu) / 60
    name = "telemetry: 10,000 series repeated every minute"
    return Row(name, f"≤ {REPEAT_CORE_MAX:.1%} of a core", f"{share:.2%}", share <= REPEAT_CORE_MAX)


def _collect(aggregate: Aggregate, now_ns: int) -> None:
    while metrics := aggregate.collect(now_ns, repeats=True):
        for instrument, points in metrics:
            metric_bytes(instrument, points, "cumulative", Content.METADATA, "cli")
        aggregate.accepted()
    aggregate.dump()
