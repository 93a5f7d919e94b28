"""The status of a running daemon, and of one that does not run."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from exporter.core.events.envelope import Envelope, decode
from exporter.daemon.daemon import Daemon
from exporter.daemon.offline_status import GUESSED_EVENT_BYTES
from exporter.daemon.session_list import iso
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sources.files.session_file import SessionFile
from exporter.status import DaemonStatus, Problem, SinkStatus, SourceStatus, StatusReport
from exporter.version import VERSION

if TYPE_CHECKING:
    from exporter.daemon.remote_sources import RemoteSources

_COUNT_BYTES_MAX: Final = 1 << 20


def status_of(daemon: Daemon) -> StatusReport:
    """Return what the daemon is doing and how far every sink is behind."""
    rates = daemon.rates.per_second()
    files = daemon.source.sessions.values()
    source = SourceStatus(
        "files",
        sum(1 for file in files if file.identity is not None),
        rates.get("files", 0.0),
        _problems(daemon),
    )
    return StatusReport(
        DaemonStatus(True, os.getpid(), VERSION, iso(daemon.started), dict(daemon.defects)),
        [source, *(observed(daemon.observing, rates) if daemon.observing is not None else ())],
        [sink_status(run) for run in daemon.runs],
    )


def observed(observing: "RemoteSources", rates: Mapping[str, float]) -> Iterator[SourceStatus]:
    """Yield the sources without files, and at last the journals that they fill."""
    for name, source in observing.servers.items():
        told = source.observed()
        troubles = [Problem(session, trouble, 0, 1) for session, trouble in told.troubles.items()]
        state = observing.journaling.problem if observing.journaling.problem and told.is_connected else told.state
        rate, dropped, unknown = rates.get(name, 0.0), told.counts.dropped, told.counts.unknown()
        yield SourceStatus(name, told.sessions, rate, troubles, state, dropped=dropped, unknown=unknown)
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


def sink_status(run: SinkWorkers) -> SinkStatus:
    """Return how one sink is."""
    sink_state, now = run.sink_state, time.monotonic()
    behind = [lane for lane in run.lanes.values() if lane.lag_bytes() > 0]
    state = "refused" if sink_state.gate.closed else "waiting" if sink_state.gate.failures else "ok"
    troubles = [lane.progress.why for lane in run.lanes.values() if lane.progress.problem]
    if troubles:
        state = "stopped" if state == "ok" else state
    since = [now - lane.behind_since for lane in behind if lane.behind_since is not None]
    return SinkStatus(
        run.name,
        state,
        events_behind(behind),
        sum(lane.lag_bytes() for lane in behind),
        round(max(since, default=0.0), 3),
        iso(sink_state.last_success),
        sink_state.last_error or next(iter(troubles), None),
        sink_state.retries,
        sink_state.quarantine.count(sink=run.name),
        is_estimate=sum(lane.lag_bytes() for lane in behind) > _COUNT_BYTES_MAX,
        sums_wait=not run.summed_up,
    )


def events_behind(lanes: Iterable[Lane]) -> int:
    """Count the durable events that are not delivered yet; of a backlog of more than a megabyte it is an estimate."""
    found, left = 0, _COUNT_BYTES_MAX
    for lane in lanes:
        lag = lane.lag_bytes()
        found += events_between(lane.file, lane.file.size - lag) if lag <= left else lag // GUESSED_EVENT_BYTES
        left -= lag
    return found


def events_between(file: SessionFile, offset: int) -> int:
    """Count the durable events after an offset; beyond a megabyte it is an estimate from the sizes."""
    size = file.size - offset
    if size > _COUNT_BYTES_MAX:
        return size // GUESSED_EVENT_BYTES
    try:
        with file.path.open("rb") as opened:
            opened.seek(offset)
            lines = opened.read(size).split(b"\n")[:-1]
    except OSError:
        return 0
    return sum(1 for line in lines if isinstance(found := decode(line), Envelope) and not found.ephemeral)


def _problems(daemon: Daemon) -> list[Problem]:
    found: dict[tuple[str, str], Problem] = {}
    for entry in daemon.quarantine.entries_without_sink():
        key = (entry.session, "malformed_line")
        before = found.get(key)
        found[key] = Problem(
            entry.session, key[1], before.offset if before else entry.offset, before.count + 1 if before else 1
        )
    for file in daemon.files.values():
        if file.problem is not None:
            found[file.session, file.problem] = Problem(file.session, file.problem, 0, 1)
        elif (held := daemon.incomplete(file)) is not None:
            found[file.session, "incomplete_line"] = Problem(file.session, "incomplete_line", held, 1)
    return list(found.values())
