"""`exporter status`: is it running, and does every sink have everything."""

from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from exporter.cli.context import CommandContext
from exporter.cli.output.table import Cell, Column, Palette, Tone, pairs, table
from exporter.cli.output.text import ago, count, duration, number, plain, size, words
from exporter.cli.registry import Example, Leaf

_SINKS = (
    Column("SINK"),
    Column("STATE"),
    Column("LAG"),
    Column("LAST SUCCESS", spare=2),
    Column("RETRIES", right=True, spare=4),
    Column("QUARANTINED", right=True, spare=3),
    Column("LAST ERROR", flex=True, spare=1),
)
_SOURCES = (Column("SOURCE"), Column("SESSIONS", right=True), Column("READING", right=True))
_STATES = (*_SOURCES, Column("STATE", flex=True, spare=1))
_TONES: dict[str, Tone] = {"ok": "good", "waiting": "warn", "not running": "dim", "never used": "dim"}


def _build(_: ArgumentParser) -> None:
    """`status` takes no arguments of its own."""


def _run(invocation: CommandContext) -> int:
    answer, out = invocation.ask({"do": "status"}), invocation.out
    now = datetime.now().astimezone()
    out.result(answer, lambda: status_text(answer, now=now, width=out.width, palette=out.palette))
    return 0


def status_text(status: Mapping[str, Any], *, now: datetime, width: int | None, palette: Palette) -> str:
    """The daemon, then a line per sink, then a line per source with its problems."""
    facts = [("daemon", _daemon(status["daemon"], now))]
    if defects := status["daemon"].get("defects"):
        facts.append(("defects", _defects(defects)))
    blocks = [pairs(facts, palette=palette)]
    if sinks := status["sinks"]:
        blocks.append(table(_SINKS, [_sink(sink, now) for sink in sinks], width=width, palette=palette))
    if sources := status["sources"]:
        rows = [(Cell(plain(s["name"])), Cell(number(s["sessions"])), Cell(_rate(s)), _state(s)) for s in sources]
        if any(source.get("state") for source in sources):
            blocks.append(table(_STATES, rows, width=width, palette=palette))
        else:
            blocks.append(table(_SOURCES, [row[:3] for row in rows], width=width, palette=palette))
    problems = [_problem(problem) for source in sources for problem in source.get("problems", ())]
    if problems:
        blocks.append("\n".join([palette.paint("problems", "warn"), *(f"  {line}" for line in problems)]))
    return "\n\n".join(blocks)


def _daemon(daemon: Mapping[str, Any], now: datetime) -> Cell:
    if not daemon.get("running"):
        return Cell("not running · start it with: exporter run", "warn")
    parts = ["running", f"pid {daemon.get('pid')}", f"version {plain(daemon.get('version'))}"]
    if daemon.get("since"):
        parts.append(f"started {ago(daemon['since'], now)}")
    return Cell(" · ".join(parts), "good")


def _defects(defects: Mapping[str, int]) -> Cell:
    where = ", ".join(f"{plain(place)} ({count(times, 'time')})" for place, times in sorted(defects.items()))
    return Cell(f"something of events is missing in telemetry; please report {where}", "bad")


def _sink(sink: Mapping[str, Any], now: datetime) -> tuple[Cell, ...]:
    state, quarantined = str(sink["state"]), sink.get("quarantined", 0)
    return (
        Cell(plain(sink["name"])),
        Cell(words(state), _TONES.get(state, "bad")),
        _lag(sink),
        Cell(ago(sink.get("last_success"), now)),
        Cell(number(sink.get("retries", 0))),
        Cell(number(quarantined), "warn" if quarantined else ""),
        Cell(plain(sink.get("last_error") or ""), "bad"),
    )


def _lag(sink: Mapping[str, Any]) -> Cell:
    sums_wait = bool(sink.get("sums_wait"))
    if not sink.get("lag_events") and not sink.get("lag_bytes"):
        if sums_wait:
            return Cell("all but its latest sums", "good" if sink["state"] == "ok" else "warn")
        return Cell("nothing sent yet", "dim") if sink["state"] == "never used" else Cell("has everything", "good")
    about = "about " if sink.get("is_estimate") else ""
    parts = [about + count(sink.get("lag_events", 0), "event"), size(sink.get("lag_bytes", 0))]
    parts += ["sums"] if sums_wait else []
    if sink.get("lag_seconds"):
        parts.append(duration(sink["lag_seconds"]))
    return Cell(", ".join(parts), "warn")


def _rate(source: Mapping[str, Any]) -> str:
    rate = source.get("events_per_second") or 0
    return f"{rate:,.1f} events/s" if rate else "quiet"


def _state(source: Mapping[str, Any]) -> Cell:
    parts = [plain(source.get("state") or "")]
    if source.get("bytes"):
        parts.append(size(source["bytes"]))
    if source.get("dropped"):
        parts.append(f"{count(source['dropped'], 'live event')} dropped")
    if source.get("unattributed"):
        parts.append(f"{count(source['unattributed'], 'event')} of no known session")
    return Cell(" · ".join(parts))


def _problem(problem: Mapping[str, Any]) -> str:
    times = problem.get("count", 1)
    where = f" at byte {problem['offset']:,}" if problem.get("offset") else ""
    repeated = f" ({times:,} times)" if times > 1 else ""
    return f"{words(problem['kind'])}{repeated} in {plain(problem.get('session'))}{where}"


LEAVES = {
    "status": Leaf(
        description=(
            "Whether the daemon runs, and for every sink: state, lag, last success, last error, retries, quarantined."
        ),
        examples=(
            Example("exporter status", "for people"),
            Example("exporter status --json", "for scripts"),
        ),
        build=_build,
        run=_run,
    )
}
