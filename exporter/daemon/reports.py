"""What receivers that take reports are told about sessions and about this exporter."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from exporter.daemon.asleep import GUESSED_EVENT_BYTES
from exporter.daemon.daemon import Daemon
from exporter.daemon.lane import Lane
from exporter.daemon.overview import has_crashed, workspace_facts
from exporter.daemon.sink_run import SinkRun
from exporter.daemon.status_of import events_behind, sink_status
from exporter.sources.files import WORKSPACE_NAME
from exporter.sources.workspace import read_workspace
from exporter.store.marks import exporter_id
from exporter.version import VERSION

_SESSION_SECONDS: Final = 1.0
_EXPORTER_SECONDS: Final = 10.0
_BEHIND_MAX: Final = 200
_COUNT_BYTES_MAX: Final = 1 << 20
_REPORTED_NAMES: Final = ("title", "repository", "branch")


class Reports:
    """Sends reports in the background; a report that is lost is simply followed by the next."""

    def __init__(self, daemon: Daemon, redact_text: Callable[[str], str], host: str | None) -> None:
        self._daemon = daemon
        self._redact_text = redact_text
        self._host = host
        self._sent: dict[tuple[str, str], dict[str, Any]] = {}
        self._again: set[str] = set()
        self._exporter_id = exporter_id(daemon.store)

    async def run(self) -> None:
        """Report until cancelled."""
        last_exporter = 0.0
        while True:
            await asyncio.sleep(_SESSION_SECONDS)
            # Looked at twice: what a change leads to (a registration, a masked secret) is known a moment later.
            changed, self._again = self._daemon.changed | self._again, set(self._daemon.changed)
            self._daemon.changed.clear()
            now = time.monotonic()
            for run in self._daemon.runs:
                if not run.outlet.sink.capabilities.reports or run.outlet.gate.failures:
                    self._daemon.changed.update(changed)
                    continue
                for session in changed:
                    await self._session(run, run.lanes.get(session))
                if now - last_exporter >= _EXPORTER_SECONDS:
                    await self._exporter(run)
            if now - last_exporter >= _EXPORTER_SECONDS:
                last_exporter = now

    async def _session(self, run: SinkRun, lane: Lane | None) -> None:
        if lane is None or lane.mark.remote_id is None:
            return
        directory = lane.file.directory
        facts = workspace_facts(read_workspace(str(directory / WORKSPACE_NAME)))
        report: dict[str, Any] = {name: self._redact_text(facts[name]) for name in _REPORTED_NAMES if name in facts}
        if self._host is not None:
            report["host"] = self._redact_text(self._host)
        if has_crashed(directory):
            report["state"] = "crashed"
        report["redactions"] = run.outlet.store.masked(lane.file.session, run.outlet.sink_id)
        key = (run.name, lane.file.session)
        if self._sent.get(key) == report:
            return
        await run.outlet.sink.report(f"/sessions/{quote(lane.mark.remote_id, safe='')}", "PUT", report)
        self._sent[key] = report

    async def _exporter(self, run: SinkRun) -> None:
        sinks = [sink_status(one) for one in self._daemon.runs]
        reasons = self._daemon.quarantine.by_reason()
        report = {
            "version": VERSION,
            "host": self._host,
            "sinks": [
                {
                    "name": one.name,
                    "lag_events": one.lag_events,
                    "lag_seconds": one.lag_seconds,
                    "last_error": one.last_error,
                    "retries": one.retries,
                }
                for one in sinks
            ],
            "quarantined": sum(reasons.values()),
            "quarantine": reasons,
            "behind": _behind(run),
        }
        await run.outlet.sink.report(f"/exporters/{self._exporter_id}", "POST", report)


def _behind(run: SinkRun) -> dict[str, dict[str, float]]:
    """Return by its id there how far the receiver is behind each session, the longest first; none that is level.

    Events of a backlog are counted in the file up to a megabyte in all; of the rest their number is an estimate.
    """
    now, left, found = time.monotonic(), _COUNT_BYTES_MAX, dict[str, dict[str, float]]()
    behind = [
        (0.0 if lane.behind_since is None else now - lane.behind_since, lane.mark.remote_id, lane.lag_bytes(), lane)
        for lane in run.lanes.values()
        if lane.mark.remote_id is not None
    ]
    waiting = sorted((one for one in behind if one[2] > 0), key=lambda one: (-one[0], one[1]))
    for seconds, remote_id, lag_bytes, lane in waiting[:_BEHIND_MAX]:
        events = events_behind([lane]) if lag_bytes <= left else lag_bytes // GUESSED_EVENT_BYTES
        left -= lag_bytes
        found[str(remote_id)] = {"lag_events": events, "lag_seconds": round(seconds, 3)}
    return found
