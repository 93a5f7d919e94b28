"""Delivering history: the sessions that were asked for get a turn at the sinks that were asked for."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from exporter.core.backends import drops_history
from exporter.core.position import START
from exporter.daemon.daemon import Daemon
from exporter.daemon.lane import Lane
from exporter.daemon.sink_run import SinkRun
from exporter.errors import Exit
from exporter.sinks.otlp import Otlp
from exporter.sources.session_file import SessionFile
from exporter.status import BackfillRow

_OLD_SECONDS: Final = 3_600.0

Progress: TypeAlias = Callable[[dict[str, Any]], None]


async def backfill(
    daemon: Daemon, chosen: Sequence[tuple[SinkRun, SessionFile]], progress: Progress, *, from_start: bool
) -> tuple[list[BackfillRow], Exit]:
    """Deliver what these sinks lack of these sessions; return what was done for each, and how it ended."""
    lanes = [(run, daemon.lane(run, file)) for run, file in chosen]
    before = {id(lane): (lane.progress.events, lane.progress.bytes, lane.progress.masked) for _, lane in lanes}
    total = sum(lane.file.size for _, lane in lanes)
    for streams in {run.outlet.sink.streams for run, _ in lanes if isinstance(run.outlet.sink, Otlp)}:
        streams.begin_run(file.session for _, file in chosen)
    for run, lane in lanes:
        if from_start:
            lane.start_over()
        run.ask(lane)
    ticker = _Ticker(progress)

    def watched() -> list[tuple[SinkRun, Lane]]:
        ticker.tell([lane for _, lane in lanes], before, total)
        return lanes

    ended = await daemon.until_idle(watched)
    rows = [
        BackfillRow(
            lane.file.session,
            run.name,
            lane.progress.events - before[id(lane)][0],
            lane.progress.bytes - before[id(lane)][1],
            lane.progress.masked - before[id(lane)][2],
            *_state(run, lane),
        )
        for run, lane in lanes
    ]
    return rows, ended


def history_notes(chosen: Sequence[tuple[SinkRun, SessionFile]]) -> list[str]:
    """Return what a person should know before history goes to sinks of which some are known to drop it."""
    old = {run for run, file in chosen if time.time() - file.modified > _OLD_SECONDS and run.outlet.mapping is not None}
    told = ((run, drops_history(run.outlet.sink.url, run.name.rpartition(":")[2])) for run in old)
    return sorted(f"{run.name}: {note}" for run, note in told if note is not None)


async def would_send(run: SinkRun, file: SessionFile, *, from_start: bool) -> BackfillRow:
    """Read what a backfill would send, redact it, and throw it away."""
    outlet = run.outlet
    skip = {} if from_start else outlet.store.delivered(file.session, outlet.sink_id)
    events = size = masked = 0
    position = START
    if outlet.mapping is not None:
        mark = None if from_start else outlet.store.mark(file.session, outlet.sink_id)
        position, skip = (mark.position if mark else START), {}
    while (segment := await outlet.road.segment(file, position, None, skip=skip)) is not None:
        events, size = events + len(segment.ids), size + segment.size
        masked += sum(segment.masked.values())
        position = segment.end
    return BackfillRow(file.session, run.name, events, size, masked, "would send" if events else "nothing to send")


class _Ticker:
    """Tells progress a few times a second."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._next = 0.0

    def tell(self, lanes: list[Lane], before: Mapping[int, tuple[int, int, int]], total: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + 0.2
        done = [(lane, before[id(lane)]) for lane in lanes]
        self._progress(
            {
                "sessions": len({lane.file.session for lane in lanes}),
                "sessions_done": sum(1 for lane in lanes if lane.settled),
                "events": sum(lane.progress.events - start[0] for lane, start in done),
                "bytes": sum(min(lane.position.offset, lane.file.size) for lane in lanes),
                "bytes_total": total,
                "masked": sum(lane.progress.masked - start[2] for lane, start in done),
            }
        )


def _state(run: SinkRun, lane: Lane) -> tuple[str, str | None]:
    """Return how it is with a session at a sink, and why if it is not well."""
    if lane.stopped:
        return "deleted there; --from-start sends it again", None
    if lane.settled and run.summed_up:
        return "delivered", None
    if lane.progress.problem is not None:
        return "stopped", lane.progress.problem
    return "refused" if run.outlet.gate.closed else "waiting", run.outlet.last_error
