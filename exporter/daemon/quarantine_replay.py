"""What is in quarantine, sent again because a person asked for it.

A Mission Control is sent the event. To telemetry an event is worth what comes before and after it, so an OTLP endpoint
gets its session read once more, with the event in its place, and is sent what it lacks.
"""

import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exporter.core.delivery.segment import Unsendable
from exporter.errors import Exit
from exporter.pipeline.sink_session import refusal

if TYPE_CHECKING:
    from exporter.daemon.daemon import Daemon
    from exporter.pipeline.lane import Lane
    from exporter.pipeline.sink_workers import SinkWorkers
    from exporter.state.quarantine import Quarantined


async def replay_event(daemon: "Daemon", entry: "Quarantined", event: Unsendable) -> str | None:
    """Give an event of which no sink has anything to all of them; return why one has it not, None when all have it."""
    file = daemon.files.get(entry.session)
    if file is None:
        return "its session is gone"
    mapped = []
    for run in daemon.runs:
        if run.sink_state.feed.holds_events:
            refused = await daemon.lane(run, file).send_one(event)
            if refused is not None:
                return refused
        elif run.lanes.get(file.session) or run.sink_state.store.mark(file.session, run.sink_state.sink_id):
            mapped.append((run, daemon.lane(run, file)))
    if not mapped:
        return None
    if not _holds(file.path, entry.raw, event.raw):
        return f"its session's {'journal' if file.is_journal else 'file'} does not hold it"
    return await _read_again(daemon, mapped, event)


async def _read_again(daemon: "Daemon", lanes: "Sequence[tuple[SinkWorkers, Lane]]", event: Unsendable) -> str | None:
    """Let sinks have what they lack of a session now that the redactor passes an event of it."""
    assert event.id is not None
    lanes[0][1].file.rewritten(daemon.reader.files)  # what is kept in memory was made without the event
    try:
        for run, lane in lanes:
            run.sink_state.released.add(event.id)
            await lane.repair([])
            run.ask(lane)
        ended = await daemon.until_idle(lambda: lanes)
    finally:
        for run, _ in lanes:
            run.sink_state.released.discard(event.id)
    if ended in (Exit.DONE, Exit.PARTIAL):  # in part, because the entry is in quarantine still
        troubles = (lane.progress.problem for _, lane in lanes)
    else:
        troubles = (run.sink_state.last_error for run, _ in lanes)
    return next((one for one in troubles if one), None)


async def replay_records(run: "SinkWorkers", lane: "Lane | None", entry: "Quarantined") -> str | None:
    """Send what was made of events to the endpoint that refused it; return why it has it not, None when it has."""
    if lane is not None and entry.event is not None:
        return await lane.send_one(Unsendable(entry.offset, entry.raw, len(entry.raw), entry.reason, entry.event))
    sink_state = run.sink_state
    mark = sink_state.store.mark(entry.session, sink_state.sink_id)
    stream = sink_state.feed.stream(entry.session, mark)
    if stream is None:
        return "its session is gone"
    sent = await sink_state.sink.send(stream, [entry.event or ""], [entry.raw])
    return refusal(sent)


def _holds(path: Path, *forms: bytes) -> bool:
    """Tell whether a file holds an event in one of these forms: a journal has it as it was redacted."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            return any(held.find(form) >= 0 for form in forms)
    except (OSError, ValueError):  # ValueError: it is empty
        return False
