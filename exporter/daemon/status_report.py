"""The state of a daemon's sessions, sources and sinks, for `status`, `sessions` and the reports to receivers."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exporter.core.events.summary import Summary
from exporter.daemon.daemon import Daemon
from exporter.daemon.offline_status import COUNT_BYTES_MAX, GUESSED_EVENT_BYTES, durable_between
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sources.files.cli_process import has_crashed
from exporter.sources.files.history import durable_events
from exporter.sources.files.session_file import SessionFile
from exporter.sources.files.source import WORKSPACE_NAME
from exporter.sources.files.workspace import read_workspace
from exporter.status import DaemonStatus, Problem, SinkStatus, SourceStatus, StatusReport
from exporter.version import VERSION

if TYPE_CHECKING:
    from exporter.daemon.remote_sources import RemoteSources

_WORKSPACE_NAMES = ("title", "repository", "branch", "cwd", "mc_task_id", "mc_session_id", "mc_last_event_id")


def status_of(daemon: Daemon) -> StatusReport:
    """Return what the daemon is doing and how far every sink is behind."""
    rates, files = daemon.rates(), daemon.source.sessions.values()
    followed = sum(1 for file in files if file.identity is not None)
    return StatusReport(
        DaemonStatus(True, os.getpid(), VERSION, iso(daemon.started), dict(daemon.defects)),
        [
            SourceStatus("files", followed, rates.get("files", 0.0), list(_problems(daemon))),
            *(_remote(daemon.observing, rates) if daemon.observing is not None else ()),
        ],
        [sink_status(run) for run in daemon.runs],
    )


def _remote(observing: "RemoteSources", rates: Mapping[str, float]) -> Iterator[SourceStatus]:
    """Yield the sources without files, and at last the journals that they fill."""
    for name, source in observing.servers.items():
        seen = source.observed()
        problems = [Problem(session, trouble, 0, 1) for session, trouble in seen.troubles.items()]
        state = observing.journaling.problem if observing.journaling.problem and seen.is_connected else seen.state
        rate, dropped, unknown = rates.get(name, 0.0), seen.counts.dropped, seen.counts.unknown()
        yield SourceStatus(name, seen.sessions, rate, problems, state, dropped=dropped, unknown=unknown)
    if observing.tap is not None:
        tap = observing.tap.status
        state = observing.tap_problem or f"{tap.taps} connected"
        dropped = tap.counts.dropped + tap.dropped_by_taps
        rate, unknown = rates.get("tap", 0.0), tap.counts.unknown()
        yield SourceStatus("tap", len(tap.sessions), rate, [], state, dropped=dropped, unknown=unknown)
    sessions = sum(1 for session in observing.files.sessions if observing.has_journal(session))
    state, used = observing.journaling.problem or "ok", observing.journals.used_bytes
    unattributed = observing.journaling.unattributed
    yield SourceStatus("journals", sessions, 0.0, [], state, used, observing.showing.dropped, unattributed)


def _problems(daemon: Daemon) -> Iterator[Problem]:
    malformed: dict[str, list[int]] = {}
    for entry in daemon.quarantine.entries_without_sink():
        malformed.setdefault(entry.session, []).append(entry.offset)
    for session, offsets in malformed.items():
        yield Problem(session, "malformed_line", offsets[0], len(offsets))
    for file in daemon.files.values():
        if file.problem is not None:
            yield Problem(file.session, file.problem, 0, 1)
        elif (offset := daemon.incomplete(file)) is not None:
            yield Problem(file.session, "incomplete_line", offset, 1)


def sink_status(run: SinkWorkers) -> SinkStatus:
    """Return how one sink is."""
    sink_state, now = run.sink_state, time.monotonic()
    behind = [lane for lane in run.lanes.values() if lane.lag_bytes() > 0]
    lag_bytes = sum(lane.lag_bytes() for lane in behind)
    state = "refused" if sink_state.gate.closed else "waiting" if sink_state.gate.failures else "ok"
    troubles = [lane.progress.why for lane in run.lanes.values() if lane.progress.problem]
    since = [now - lane.behind_since for lane in behind if lane.behind_since is not None]
    return SinkStatus(
        run.name,
        state="stopped" if troubles and state == "ok" else state,
        lag_events=sum(lag_events(behind)),
        lag_bytes=lag_bytes,
        lag_seconds=round(max(since, default=0.0), 3),
        last_success=iso(sink_state.last_success),
        last_error=sink_state.last_error or next(iter(troubles), None),
        retries=sink_state.retries,
        quarantined=sink_state.quarantine.count(sink=run.name),
        is_estimate=lag_bytes > COUNT_BYTES_MAX,
        sums_wait=not run.summed_up,
    )


def lag_events(lanes: Iterable[Lane]) -> Iterator[int]:
    """Yield how many durable events every lane is behind, counted up to a megabyte in all; beyond that estimated."""
    left = COUNT_BYTES_MAX
    for lane in lanes:
        lag = lane.lag_bytes()
        yield events_after(lane.file, lane.file.size - lag) if lag <= left else lag // GUESSED_EVENT_BYTES
        left -= lag


def events_after(file: SessionFile, offset: int) -> int:
    """Count the durable events after an offset; beyond a megabyte it is an estimate from the sizes."""
    size = file.size - offset
    return size // GUESSED_EVENT_BYTES if size > COUNT_BYTES_MAX else durable_between(file.path, offset, file.size)


def described(
    file: SessionFile, redact_text: Callable[[str], str], line_bytes_max: int, host: str | None
) -> dict[str, Any]:
    """Describe one session from its files, titles and names redacted.

    A line that repeats an id counts as a duplicate and as nothing else.
    """
    summary, ids = Summary(), dict[str, None]()
    now, written, duplicates = time.time(), _modified(file.path), 0
    times = str(iso(now)), iso(min(now, written or now))
    for envelope, _ in durable_events(file.path, line_bytes_max, file.begins):
        if envelope.id in ids:
            duplicates += 1
            continue
        ids[envelope.id] = None
        summary.add(envelope, *times)
    if not ids:
        return {"id": file.session, "events": 0, **({"source": "journal"} if file.is_journal else {})}
    session = summary.as_session(file.directory.name, masked=0, host=host, last_event_id=next(reversed(ids)))
    session |= workspace_facts(file.directory)
    session |= {"file": str(file.path), "source": "journal" if file.is_journal else "files"}
    if duplicates:
        session["duplicates"] = duplicates
    if session["state"] != "ended" and has_crashed(file.directory):
        session["state"] = "crashed"
    for name in ("title", "repository", "branch", "cwd", "model"):
        if session.get(name):
            session[name] = redact_text(str(session[name]))
    return session


def workspace_facts(directory: Path) -> dict[str, str]:
    """Return what workspace.yaml knows better than the events, not redacted."""
    workspace = read_workspace(str(directory / WORKSPACE_NAME))
    return {name: value for name in _WORKSPACE_NAMES if (value := getattr(workspace, name, None))}


def iso(moment: float | None) -> str | None:
    """Return a time of the wall clock as text, in UTC."""
    if moment is None:
        return None
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None
