"""`exporter status`: is it running, and does every sink have everything."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from exporter.cli.command import CommandContext, command
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, pairs, table
from exporter.cli.output.text import ago, count, duration, number, plain, size, words

_SINKS: Final = (
    Column("SINK"),
    Column("STATE"),
    Column("LAG"),
    Column("LAST SUCCESS", spare=2),
    Column("RETRIES", right=True, spare=4),
    Column("QUARANTINED", right=True, spare=3),
    Column("LAST ERROR", flex=True, spare=1),
)
_SOURCES: Final = (
    Column("SOURCE"),
    Column("SESSIONS", right=True),
    Column("READING", right=True),
    Column("STATE", flex=True, spare=1),
)
_TONES: Final[dict[str, Tone]] = {"ok": "good", "waiting": "warn", "not running": "dim", "never used": "dim"}


@command()
def status(context: CommandContext) -> int:
    """Shows whether the daemon runs, and for each sink its state, lag, last success, last error and retries.

    Examples:
    exporter status  # as text
    exporter status --json  # for scripts
    """
    answer = context.ask({"do": "status"})
    return context.report(answer, lambda view: status_text(answer, view))


def status_text(status: Mapping[str, Any], view: TerminalView) -> str:
    """The daemon, then a line per sink, then a line per source with its problems."""
    facts = [("daemon", _daemon(status["daemon"], view.now))]
    if defects := status["daemon"].get("defects"):
        facts.append(("defects", _defects(defects)))
    blocks = [pairs(facts, view)]
    if sinks := status["sinks"]:
        blocks.append(table(_SINKS, [_sink(sink, view.now) for sink in sinks], view))
    if sources := status["sources"]:
        tells = any(source.get("state") for source in sources)
        rows = [(s["name"], number(s["sessions"]), _rate(s), _state(s) if tells else "") for s in sources]
        blocks.append(table(_SOURCES, rows, view))
    if problems := [f"  {_problem(problem)}" for source in sources for problem in source.get("problems", ())]:
        blocks.append("\n".join([view.palette.paint("problems", "warn"), *problems]))
    return "\n\n".join(blocks)


def _daemon(daemon: Mapping[str, Any], now: datetime) -> Cell:
    if not daemon.get("running"):
        return Cell("not running · start it with: exporter run", "warn")
    parts = ["running", f"pid {daemon.get('pid')}", f"version {daemon.get('version')}"]
    if daemon.get("since"):
        parts.append(f"started {ago(daemon['since'], now)}")
    return Cell(" · ".join(parts), "good")


def _defects(defects: Mapping[str, int]) -> Cell:
    where = ", ".join(f"{place} ({count(times, 'time')})" for place, times in sorted(defects.items()))
    return Cell(f"telemetry of some events is incomplete; please report {where}", "bad")


def _sink(sink: Mapping[str, Any], now: datetime) -> tuple[Cell | str, ...]:
    state, quarantined = str(sink["state"]), sink.get("quarantined", 0)
    return (
        sink["name"],
        Cell(words(state), _TONES.get(state, "bad")),
        _lag(sink),
        ago(sink.get("last_success"), now),
        number(sink.get("retries", 0)),
        Cell(number(quarantined), "warn" if quarantined else ""),
        Cell(sink.get("last_error"), "bad"),
    )


def _lag(sink: Mapping[str, Any]) -> Cell:
    sums_wait = bool(sink.get("sums_wait"))
    if not sink.get("lag_events") and not sink.get("lag_bytes"):
        if sums_wait:
            return Cell("latest metrics pending", "good" if sink["state"] == "ok" else "warn")
        return Cell("nothing sent yet", "dim") if sink["state"] == "never used" else Cell("up to date", "good")
    about = "about " if sink.get("is_estimate") else ""
    parts = [about + count(sink.get("lag_events", 0), "event"), size(sink.get("lag_bytes", 0))]
    parts += ["metrics"] if sums_wait else []
    if sink.get("lag_seconds"):
        parts.append(duration(sink["lag_seconds"]))
    return Cell(", ".join(parts), "warn")


def _rate(source: Mapping[str, Any]) -> str:
    rate = source.get("events_per_second") or 0
    return f"{rate:,.1f} events/s" if rate else "idle"


def _state(source: Mapping[str, Any]) -> str:
    parts = [plain(source.get("state") or "")]
    if source.get("bytes"):
        parts.append(size(source["bytes"]))
    if source.get("dropped"):
        parts.append(f"{count(source['dropped'], 'live event')} dropped")
    if source.get("unattributed"):
        parts.append(f"{count(source['unattributed'], 'event')} without a known session")
    return " · ".join(parts)


def _problem(problem: Mapping[str, Any]) -> str:
    times = problem.get("count", 1)
    where = f" at byte {problem['offset']:,}" if problem.get("offset") else ""
    repeated = f" ({times:,} times)" if times > 1 else ""
    return f"{words(problem['kind'])}{repeated} in {plain(problem.get('session'))}{where}"
