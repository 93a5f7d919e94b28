"""`exporter status`: is it running, and does every sink have everything."""

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from exporter.cli.command import CommandContext, command, option
from exporter.cli.output.table import Cell, Column, TerminalView, Tone, pairs, table, warning
from exporter.cli.output.text import ago, count, duration, number, plain, size, words
from exporter.errors import Exit, worst

_TONES: Final[dict[str, Tone]] = {"ok": "good", "waiting": "warn", "not running": "dim", "never used": "dim"}


@command()
@option("--check", is_flag=True, help="end with 7, 5, 6 or 4 when something is wrong, for monitors")
def status(context: CommandContext, check: bool) -> int:
    """Shows whether the daemon runs, and for each sink its state, lag, last success, last error and retries.

    With --check the exit code tells a monitor how it is, the worst first: 7 no exporter runs, 5 a sink refuses, 6 one
    cannot be reached, 4 one is behind or has events in quarantine (see the settings of [check]) or the journals take no
    events, 0 all is well.

    Examples:
    exporter status  # as text
    exporter status --json  # for scripts
    exporter status --check  # for a monitor
    """
    answer = context.ask({"do": "status"})
    if service := _service(context):
        answer["service"] = service
    if check:
        from exporter.status import faults

        limits = context.load(secrets=False).settings.check
        found = faults(answer, lag_seconds=limits.lag_seconds, quarantined=limits.quarantined)
        answer |= {"faults": [said for _, said in found], "exit": worst(Exit.DONE, *(code for code, _ in found))}
    return context.report(answer, lambda view: status_text(answer, view))


def status_text(status: Mapping[str, Any], view: TerminalView) -> str:
    """The daemon, then a line per sink, then a line per source with its problems."""
    facts = [("daemon", _daemon(status["daemon"], view.now))]
    if defects := status["daemon"].get("defects"):
        facts.append(("defects", _defects(defects)))
    if service := status.get("service"):
        facts.append(("service", _service_cell(service)))
    if copies := max((sink.get("copies", 0) for sink in status["sinks"]), default=0):
        also = f"also that of {count(copies, 'other exporter')} that runs: was the state directory copied?"
        facts.append(("identity", Cell(also, "warn")))
    blocks = [pairs(facts, view)]
    if sinks := status["sinks"]:
        blocks.append(_sinks(sinks, view))
    if earlier := list(_earlier(status["sinks"], view)):
        blocks.append("\n".join([view.palette.paint("history", "dim"), *earlier]))
    if sources := status["sources"]:
        heads = _SOURCES if any(source.get("state") for source in sources) else _SOURCES[:-1]
        blocks.append(table(heads, sources, view))
    if problems := [f"  {_problem(problem)}" for source in sources for problem in source.get("problems", ())]:
        blocks.append("\n".join([view.palette.paint("problems", "warn"), *problems]))
    if wrong := status.get("faults"):
        blocks.append("\n".join([view.palette.paint("faults", "bad"), *(f"  {plain(one)}" for one in wrong)]))
    return "\n\n".join(blocks)


def _daemon(daemon: Mapping[str, Any], now: datetime) -> Cell:
    if not daemon.get("running"):
        return Cell("not running · start it with: exporter run", "warn")
    parts = ["running", f"pid {daemon.get('pid')}", f"version {daemon.get('version')}"]
    if daemon.get("since"):
        parts.append(f"started {ago(daemon['since'], now)}")
    return Cell(" · ".join(parts), "good")


def _service(context: CommandContext) -> dict[str, Any] | None:
    from exporter.wiring.service import health

    found = health(context.load(secrets=False), os.environ)
    return {**found[0].document(), "problems": found[1]} if found is not None else None


def _service_cell(service: Mapping[str, Any]) -> Cell:
    state = service["state"] or f"{service['manager']} does not answer"
    said = "; ".join([f"version {service['version']} · {state}", *service["problems"]])
    return Cell(said, "warn" if service["problems"] else "good")


def _defects(defects: Mapping[str, int]) -> Cell:
    where = ", ".join(f"{place} ({count(times, 'time')})" for place, times in sorted(defects.items()))
    return Cell(f"telemetry of some events is incomplete; please report {where}", "bad")


def _sinks(sinks: Sequence[Mapping[str, Any]], view: TerminalView) -> str:
    columns = (
        Column("SINK", "name"),
        Column("STATE", _sink_state),
        Column("LAG", lambda sink: _lag(sink, view.now)),
        Column("LAST SUCCESS", lambda sink: ago(sink.get("last_success"), view.now), spare=2),
        Column("RETRIES", lambda sink: number(sink.get("retries", 0)), right=True, spare=4),
        Column("QUARANTINED", lambda sink: warning(sink.get("quarantined", 0)), right=True, spare=3),
        Column("LAST ERROR", lambda sink: Cell(sink.get("last_error"), "bad"), flex=True, spare=1),
    )
    return table(columns, sinks, view)


def _earlier(sinks: Sequence[Mapping[str, Any]], view: TerminalView) -> Iterator[str]:
    """Yield a line for each OTLP endpoint that was not sent what was before it was met."""
    by_endpoint: dict[str, list[Mapping[str, Any]]] = {}
    for sink in sinks:
        if sink.get("earlier"):
            by_endpoint.setdefault(str(sink["name"]).partition(":")[0], []).append(sink)
    for name, some in by_endpoint.items():
        sessions, met = count(max(sink["earlier"] for sink in some), "session"), ago(some[0]["since"], view.now)
        yield f"  {plain(name)} was met {met} and is sent what began since then; the past of {sessions} is sent by"
        yield f"    exporter backfill --all --sink {plain(name)}"


def _sink_state(sink: Mapping[str, Any]) -> Cell:
    return Cell(words(sink["state"]), _TONES.get(sink["state"], "bad"))


def _lag(sink: Mapping[str, Any], now: datetime) -> Cell:
    sums_wait = bool(sink.get("sums_wait"))
    stopped = {"deleted": "deleted there", "foreign": "of another token there"}
    deleted = [f"{count(sink[name], 'session')} {words}" for name, words in stopped.items() if sink.get(name)]
    if not sink.get("lag_events") and not sink.get("lag_bytes"):
        if sums_wait:
            return Cell("latest metrics pending", "good" if sink["state"] == "ok" else "warn")
        if sink["state"] == "never used":
            return Cell("nothing sent yet", "dim")
        if not sink.get("unconfirmed"):
            return Cell(", ".join(["up to date", *deleted]), "good")
        since = f" (last confirmed {ago(sink['confirmed_at'], now)})" if sink.get("confirmed_at") else ""
        return Cell(", ".join([f"accepted, not confirmed{since}", *deleted]))
    about = "about " if sink.get("is_estimate") else ""
    parts = [about + count(sink.get("lag_events", 0), "event"), size(sink.get("lag_bytes", 0))]
    parts += ["metrics"] if sums_wait else []
    if sink.get("lag_seconds"):
        parts.append(duration(sink["lag_seconds"]))
    return Cell(", ".join(parts + deleted), "warn")


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
    if source.get("calls_unknown"):
        parts.append(f"{count(source['calls_unknown'], 'tool result')} without a known command")
    return " · ".join(parts)


def _problem(problem: Mapping[str, Any]) -> str:
    times = problem.get("count", 1)
    where = f" at byte {problem['offset']:,}" if problem.get("offset") else ""
    repeated = f" ({times:,} times)" if times > 1 else ""
    return f"{words(problem['kind'])}{repeated} in {plain(problem.get('session'))}{where}"


_SOURCES: Final = (
    Column("SOURCE", "name"),
    Column("SESSIONS", lambda source: number(source["sessions"]), right=True),
    Column("READING", _rate, right=True),
    Column("STATE", _state, flex=True, spare=1),
)
