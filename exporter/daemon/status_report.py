"""The state of a daemon's sessions, sources and sinks, for `status`, `sessions` and the reports to receivers."""

import asyncio
import contextlib
import os
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from exporter.core.delivery.session_state import SessionEvent
from exporter.core.events.summary import Summary
from exporter.core.notice import Level, Notice, NoticeName
from exporter.daemon.daemon import Daemon
from exporter.daemon.offline_status import COUNT_BYTES_MAX, GUESSED_EVENT_BYTES, confirmations, durable_between, iso
from exporter.daemon.sealed_settings import SealedSettings
from exporter.pipeline.lane import Lane
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sources.files.cli_process import Liveness
from exporter.sources.files.session_file import SessionFile, durable_events
from exporter.sources.files.source import WORKSPACE_NAME
from exporter.sources.files.workspace import read_workspace
from exporter.state.marks import StoreDamagedError, StoreUnwritableError, exporter_id
from exporter.status import DaemonStatus, Problem, SinkStatus, SourceStatus, StatusReport
from exporter.version import VERSION

if TYPE_CHECKING:
    from exporter.daemon.remote_sources import RemoteSources
    from exporter.daemon.running import RunningExporter

_SESSION_SECONDS: Final = 1.0
_EXPORTER_SECONDS: Final = 10.0
_ASK_AGAIN_SECONDS: Final = 600.0
_STILL_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 60.0
_BEHIND_MAX: Final = 200
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FIRST_DAY: Final = "1970-01-01"
_REPORTED_NAMES: Final = ("title", "repository", "branch")
_REPORTED_OF_SINKS: Final = (
    *("name", "lag_events", "lag_seconds", "last_error", "retries", "deleted"),
    *("unconfirmed", "confirmed_at"),
)
_COPIED: Final = (
    "another exporter runs with the identity of this one: its state directory was copied. Both are delivered; stop one"
    " of them, move its state directory away and start it again"
)
_WORKSPACE_NAMES: Final = ("title", "repository", "branch", "cwd", "mc_task_id", "mc_session_id", "mc_last_event_id")


def status_of(daemon: Daemon) -> StatusReport:
    """Return the state of the daemon, its sources and its sinks."""
    rates, files = daemon.rates(), daemon.source.sessions.values()
    followed = sum(1 for file in files if file.identity is not None)
    return StatusReport(
        DaemonStatus(True, os.getpid(), VERSION, iso(daemon.started), dict(daemon.defects)),
        [
            SourceStatus(
                "files",
                followed,
                rates.get("files", 0.0),
                list(_problems(daemon)),
                calls_unknown=daemon.reader.calls_unknown,
            ),
            *(_remote(daemon.observing, rates) if daemon.observing is not None else ()),
        ],
        [_with_history(sink_status(run), run, daemon.files.values()) for run in daemon.runs],
    )


def _remote(observing: "RemoteSources", rates: Mapping[str, float]) -> Iterator[SourceStatus]:
    """Yield the sources without files, then the journals that they fill."""
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
    dropped, calls_unknown = observing.showing.dropped, observing.calls_unknown
    yield SourceStatus("journals", sessions, 0.0, [], state, used, dropped, unattributed, calls_unknown=calls_unknown)


def _problems(daemon: Daemon) -> Iterator[Problem]:
    malformed: dict[str, list[int]] = {}
    for entry in daemon.quarantine.entries_without_sink():
        malformed.setdefault(entry.session, []).append(entry.offset)
    for session, offsets in malformed.items():
        yield Problem(session, "malformed_line", offsets[0], len(offsets))
    for session in daemon.source.doubles:
        yield Problem(session, "in_two_homes", 0, 1)
    for file in daemon.files.values():
        if file.problem is not None:
            yield Problem(file.session, file.problem, 0, 1)
        elif (offset := daemon.incomplete(file)) is not None:
            yield Problem(file.session, "incomplete_line", offset, 1)


def sink_status(run: SinkWorkers) -> SinkStatus:
    """Return the state of one sink."""
    sink_state, now = run.sink_state, time.monotonic()
    # What an endpoint does not take is not behind.
    behind = [lane for lane in run.lanes.values() if lane.lag_bytes() > 0] if sink_state.off is None else []
    # History that waits is told by its size.
    past = sum(file.size for file in run.past.values()) if sink_state.off is None else 0
    lag_bytes = sum(lane.lag_bytes() for lane in behind) + past
    state = "refused" if sink_state.gate.closed else "waiting" if sink_state.gate.failures else "ok"
    if sink_state.off is not None:
        state = f"off ({sink_state.off.status})"
    troubles = [lane.progress.why for lane in run.lanes.values() if lane.progress.problem]
    since = [now - lane.behind_since for lane in behind if lane.behind_since is not None]
    unconfirmed, confirmed_at = confirmations(lane.mark for lane in run.lanes.values())
    return SinkStatus(
        run.name,
        state="stopped" if troubles and state == "ok" else state,
        lag_events=sum(lag_events(behind)) + past // GUESSED_EVENT_BYTES,
        lag_bytes=lag_bytes,
        lag_seconds=round(max(since, default=0.0), 3),
        last_success=iso(sink_state.last_success),
        last_error=sink_state.last_error or next(iter(troubles), None),
        retries=sink_state.retries,
        quarantined=sink_state.quarantine.count(sink=run.name),
        is_estimate=lag_bytes > COUNT_BYTES_MAX or past > 0,
        sums_wait=not run.summed_up and sink_state.off is None,
        deleted=sum(lane.stopped and lane.stopped_by is not SessionEvent.FOREIGN for lane in run.lanes.values()),
        foreign=sum(lane.stopped_by is SessionEvent.FOREIGN for lane in run.lanes.values()),
        unconfirmed=unconfirmed,
        confirmed_at=confirmed_at,
        copies=sink_state.sink.copies,
        remark=sink_state.remark,
    )


def _with_history(status: SinkStatus, run: SinkWorkers, files: Iterable[SessionFile]) -> SinkStatus:
    """Add of how many sessions a sink that was met lately has not what they held before."""
    since, state = run.sink_state.since, run.sink_state
    if not since:
        return status
    unsent = sum(1 for file in files if file.identity and file.session not in run.lanes and file.modified < since)
    earlier = unsent + state.store.fronts_lacking(state.sink_id)
    return msgspec.structs.replace(status, since=iso(since), earlier=earlier)


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


def described(file: SessionFile, running: "RunningExporter") -> dict[str, Any]:
    """Describe one session from its files, titles and names redacted.

    A line that repeats an id counts as a duplicate and as nothing else.
    """
    summary, ids = Summary(), dict[str, None]()
    now, written, duplicates = time.time(), _modified(file.path), 0
    times = str(iso(now)), iso(min(now, written or now))
    for envelope, _ in durable_events(file.path, running.line_bytes_max, file.begins):
        if envelope.id in ids:
            duplicates += 1
            continue
        ids[envelope.id] = None
        summary.add(envelope, *times)
    if not ids:
        return {"id": file.session, "events": 0, **({"source": "journal"} if file.is_journal else {})}
    session = summary.as_session(file.directory.name, masked=0, host=running.host, last_event_id=next(reversed(ids)))
    session |= workspace_facts(file.directory)
    session["owner"] = file.owner
    session |= {"file": str(file.path), "source": "journal" if file.is_journal else "files"}
    if duplicates:
        session["duplicates"] = duplicates
    if session["state"] != "ended":
        session |= _liveness_facts(_liveness(running.daemon, file), is_still=_is_still(file), state=session["state"])
    for name in ("title", "repository", "branch", "cwd", "model"):
        if session.get(name):
            session[name] = running.redaction.text(str(session[name]))
    return session


def _liveness(daemon: Daemon, file: SessionFile) -> Liveness:
    """Return what is known of what runs a session: the CLI's process, or the server of a journal."""
    return file.left or daemon.holders.of(file.directory)


def _liveness_facts(liveness: Liveness, *, is_still: bool, state: str | None) -> dict[str, str]:
    """Return what to say of a session that its events do not end, besides what they say.

    A process that cannot be seen and is silent is said to work no more; a question to a person stays one.
    """
    if liveness is Liveness.GONE:
        return {"state": "crashed"}
    if liveness is not Liveness.UNKNOWN:
        return {}
    return {"liveness": "unknown", **({"state": "idle"} if is_still and state == "working" else {})}


def _is_still(file: SessionFile) -> bool:
    return time.time() - file.modified >= _STILL_SECONDS


def workspace_facts(directory: Path) -> dict[str, str]:
    """Return the facts that workspace.yaml has, not redacted; they take precedence over the events."""
    workspace = read_workspace(str(directory / WORKSPACE_NAME))
    return {name: value for name in _WORKSPACE_NAMES if (value := getattr(workspace, name, None))}


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


class Reports:
    """Sends reports in the background: of a session until it is accepted, of this exporter at intervals."""

    def __init__(
        self,
        daemon: Daemon,
        redact_text: Callable[[str], str],
        host: str | None,
        installation: str = "",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._daemon = daemon
        self._settings = SealedSettings(settings or {})
        self._installation = installation
        self._copied: set[str] = set()
        self._redact_text = redact_text
        self._host = host
        self._sent: dict[tuple[str, str], tuple[dict[str, Any], int | None]] = {}
        """By sink and session the last report, and where it has a state how much of it the sink had by then."""
        self._again: set[str] = set()
        self._unreported: dict[str, set[str]] = {run.name: set() for run in daemon.runs}
        self._rest_until: dict[str, float] = {}
        self._held: set[str] = set()
        self._found: dict[str, dict[str, str]] = {}
        """Of sessions of which more is known than their events say: what to report of them."""
        self._look_again_at = 0.0
        self._exporter_id = exporter_id(daemon.store)

    async def run(self) -> None:
        """Report until cancelled."""
        last_exporter = 0.0
        while True:
            await asyncio.sleep(_SESSION_SECONDS)
            await self._look()
            now = time.monotonic()
            for run in self._daemon.runs:
                if run.sink_state.gate.failures or self._rest_until.get(run.name, 0.0) > now:
                    continue
                await self._sessions(run)
                if run.sink_state.sink.capabilities.reports and now - last_exporter >= _EXPORTER_SECONDS:
                    await self._exporter(run)
                    with contextlib.suppress(sqlite3.Error, StoreDamagedError, StoreUnwritableError):
                        run.sink_state.check_store()
                        run.sink_state.keep_epoch()
            if now - last_exporter >= _EXPORTER_SECONDS:
                last_exporter = now

    async def _look(self) -> None:
        """Note which sessions are to be reported: those that changed, and those whose process ended or is silent."""
        doubtful = self._doubtful()
        if not (self._held or self._daemon.changed or self._again or doubtful):
            return
        files, of = self._daemon.files, self._daemon.holders.of
        ended = {one for one in self._held if one not in files or of(files[one].directory) is not Liveness.RUNNING}
        # Reported twice: the results of a change (a registration, a masked secret) are known a moment later.
        changed, self._again = self._daemon.changed | self._again | ended | doubtful, set(self._daemon.changed)
        self._daemon.changed.clear()
        for session in changed:
            file = files.get(session)
            liveness = _liveness(self._daemon, file) if file is not None else Liveness.CLOSED
            (self._held.add if liveness is Liveness.RUNNING else self._held.discard)(session)
            is_still = file is not None and _is_still(file)
            self._found[session] = _liveness_facts(liveness, is_still=is_still, state="working")
            if not self._found[session]:
                del self._found[session]
            await asyncio.sleep(0)
        for waiting in self._unreported.values():
            waiting.update(changed)

    def _doubtful(self) -> set[str]:
        """Return the sessions of which nobody can tell and that are silent by now; all of them now and then."""
        files, again = self._daemon.files, time.monotonic() >= self._look_again_at
        if again:
            self._look_again_at = time.monotonic() + _LOOK_AGAIN_SECONDS
        return {
            session
            for session, found in self._found.items()
            if "liveness" in found and (again or ("state" not in found and session in files))
            if again or _is_still(files[session])
        }

    async def _sessions(self, run: SinkWorkers) -> None:
        waiting = self._unreported[run.name]
        if not run.sink_state.sink.capabilities.reports and not await self._asked(run, waiting & self._found.keys()):
            return
        for session in list(waiting):
            lane = run.lanes.get(session)
            if lane is not None and not await self._session(run, lane):
                self._rest_until[run.name] = time.monotonic() + _EXPORTER_SECONDS
                return
            # A receiver drops the reported state when it gets events after it.
            has_state = "state" in self._found.get(session, ())
            if lane is None or (lane.mark.remote_id is not None and (lane.settled or not has_state)):
                waiting.discard(session)

    async def _asked(self, run: SinkWorkers, found: set[str]) -> bool:
        """Ask a sink that was sent nothing since the start whether it takes reports, if there is one of a session."""
        lanes = [run.lanes[session] for session in found if session in run.lanes]
        lane = next((lane for lane in lanes if lane.settled and not lane.stopped and lane.mark.remote_id), None)
        if lane is None:
            return False
        await run.sink_state.sink.register(lane.file.session, lane.mark.remote_id)
        offers = run.sink_state.sink.capabilities.reports
        if not offers:
            self._rest_until[run.name] = time.monotonic() + _ASK_AGAIN_SECONDS
        return offers

    async def _session(self, run: SinkWorkers, lane: Lane) -> bool:
        """Report one session if something has changed; return False when the receiver does not accept it now."""
        if lane.mark.remote_id is None:
            return True
        session, facts = lane.file.session, workspace_facts(lane.file.directory)
        report: dict[str, Any] = {name: self._redact_text(facts[name]) for name in _REPORTED_NAMES if name in facts}
        if self._host is not None:
            report["host"] = self._redact_text(self._host)
        if (owner := lane.file.owner) is not None:
            report["owner"] = self._redact_text(owner)
        report["redactions"] = _dated(run.sink_state.store.masked(session, run.sink_state.sink_id))
        key = (run.name, session)
        found, before = self._found.get(session, {}), self._sent.get(key)
        report |= found
        now = (report, lane.mark.delivered if "state" in found else None)
        if before == now:
            return True
        if before is not None:  # the session was resumed, or what runs it is known again
            report = {**{name: None for name in ("state", "liveness") if name in before[0]}, **report}
        path = f"/sessions/{quote(lane.mark.remote_id, safe='')}"
        if not await run.sink_state.sink.report(path, "PUT", report):
            return False
        self._sent[key] = now
        return True

    async def _exporter(self, run: SinkWorkers) -> None:
        sinks = [msgspec.to_builtins(sink_status(one)) for one in self._daemon.runs]
        reasons = self._daemon.quarantine.by_reason()
        report = {
            "version": VERSION,
            "host": self._host,
            "installation": self._installation,
            "sinks": [{name: one[name] for name in _REPORTED_OF_SINKS} for one in sinks],
            "quarantined": sum(reasons.values()),
            "quarantine": reasons,
            "behind": _behind(run),
        }
        if salt := run.sink_state.sink.settings_salt:
            report["settings"] = self._settings.told(salt, in_full=run.sink_state.sink.wants_settings)
        await run.sink_state.sink.report(f"/exporters/{self._exporter_id}", "POST", report)
        if not run.sink_state.sink.copies:
            self._copied.discard(run.name)
        elif run.name not in self._copied:
            self._copied.add(run.name)
            self._daemon.notice(Notice(NoticeName.STATE_COPIED, Level.WARNING, _COPIED, None, run.name))


def _dated(days: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return counts by day for a receiver, which takes dates only; events without a date count for the first day."""
    found: dict[str, Counter[str]] = {}
    for day, rules in days.items():
        found.setdefault(day if _DAY.fullmatch(day) else _FIRST_DAY, Counter()).update(rules)
    return {day: dict(rules) for day, rules in found.items()}


def _behind(run: SinkWorkers) -> dict[str, dict[str, float]]:
    """Return by its id there how far the receiver is behind each session, the longest first.

    Pending events are counted in the files up to a megabyte in all; beyond that their number is an estimate.
    """
    now = time.monotonic()
    behind = [
        (0.0 if lane.behind_since is None else now - lane.behind_since, str(lane.mark.remote_id), lane)
        for lane in run.lanes.values()
        if lane.mark.remote_id is not None and lane.lag_bytes() > 0
    ]
    waiting = sorted(behind, key=lambda one: (-one[0], one[1]))[:_BEHIND_MAX]
    counted = lag_events(lane for _, _, lane in waiting)
    return {
        remote_id: {"lag_events": events, "lag_seconds": round(seconds, 3)}
        for (seconds, remote_id, _), events in zip(waiting, counted, strict=True)
    }
