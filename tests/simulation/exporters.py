"""An exporter of the real pipeline, on a simulated disk and network, which starts from its databases."""

import contextlib
import sqlite3
from dataclasses import dataclass

from exporter.core.delivery.gate import Gate
from exporter.core.notice import Notice
from exporter.pipeline.feed import EventFeed
from exporter.pipeline.lane import Lane
from exporter.pipeline.segment_reader import SegmentReader, kept_bytes
from exporter.pipeline.sink_state import SinkState
from exporter.pipeline.sink_workers import SinkWorkers
from exporter.sinks.mission_control import MissionControlSink
from exporter.sources.files.session_file import OpenFiles, SessionFile
from exporter.state.marks import StoreUnwritableError
from tests.simulation.disk import MARKS, QUARANTINE, Disk, MemoryMarks, MemoryQuarantine, followed
from tests.simulation.network import Line, Wire
from tests.simulation.redactor import redact

CONNECTIONS = 2
CACHE_BYTES = 8_000  # three segments or so
_READERS_MAX = 8


@dataclass(frozen=True, slots=True)
class Databases:
    """What an exporter remembers, as it is on the disk."""

    marks: sqlite3.Connection | None = None
    quarantine: sqlite3.Connection | None = None

    def copied(self) -> "Databases":
        """Return the same again, which can be changed."""
        assert self.marks is not None and self.quarantine is not None
        return Databases(MARKS.copy(self.marks), QUARANTINE.copy(self.quarantine))


class Exporter:
    """One process. `token` is what it shows to every receiver; `images` is what it left when it was killed."""

    def __init__(self, disk: Disk, sessions: list[str], wires: list[Wire], databases: Databases) -> None:
        self.images: Databases | None = None
        self.notices: list[Notice] = []
        self.store = MemoryMarks(databases.marks, self.kill)
        self.quarantine = MemoryQuarantine(databases.quarantine)
        self.open_files = OpenFiles(4)
        self.reader = SegmentReader(self.open_files, redact, line_bytes_max=1 << 16, cache_bytes=CACHE_BYTES)
        self.files: dict[str, SessionFile] = {name: followed(disk, name) for name in sessions}
        self.lines = [Line(wire, CONNECTIONS) for wire in wires]
        self.wires = wires
        self.tokens = [1 for _ in wires]
        unanswered = "SELECT 1 FROM facts WHERE name LIKE 'all answered %' AND value = 'no'"
        self.after_kill = bool(self.store._run(unanswered))
        self.runs = [SinkWorkers(self._sink(number), CONNECTIONS) for number in range(len(wires))]

    def _sink(self, number: int) -> SinkState:
        feed = EventFeed(self.reader)
        feed.shared = len(self.wires) > 1
        name = f"sink{number}"
        sink = MissionControlSink(name, "http://r", self.lines[number], token=lambda: str(self.tokens[number]))
        sink_id = self.store.sink_id(name, "http://r")
        return SinkState(sink, sink_id, Gate(), self.store, self.quarantine, self.reader, self.notices.append, feed)

    def start(self) -> None:
        for run in self.runs:
            run.start(sum_up=False)
        for session in self.files:
            self.look(session)
        for run in self.runs:
            run.check_one_session(sees_all=True)

    def look(self, session: str) -> None:
        """Look at a session's file, and give it a turn at every sink."""
        file = self.files[session]
        file.refresh(self.open_files)
        if file.identity is not None:
            for run in self.runs:
                run.ask(self.lane(run, file))

    def lane(self, run: SinkWorkers, file: SessionFile) -> Lane:
        lane = run.lanes.get(file.session)
        if lane is None:
            mark = self.store.mark(file.session, run.sink_state.sink_id)
            lane = run.lanes[file.session] = Lane(file, run.sink_state, live=True, mark=mark)
        return lane

    def lanes(self) -> list[tuple[Wire, SinkWorkers, Lane]]:
        pairs = zip(self.wires, self.runs, strict=True)
        return [(wire, run, lane) for wire, run in pairs for lane in run.lanes.values()]

    def at_rest(self) -> bool:
        return all(lane.settled and not lane.busy and not lane.asked for _, _, lane in self.lanes())

    def kill(self) -> None:
        """Die: what is on the disk stays, and nothing is done any more."""
        if self.images is None:
            self.images = Databases(self.store.leave(), self.quarantine.leave())
            for run in self.runs:
                for task in run._workers:
                    task.cancel()
                for turn in run._later.values():
                    turn.cancel()

    async def stop(self) -> None:
        """End in order."""
        for run in self.runs:
            await run.stop(5.0)
            with contextlib.suppress(StoreUnwritableError):
                run.remember()
        self.kill()

    def close(self) -> None:
        self.open_files.close_all()
        self.store.close()
        self.quarantine.close()

    def excess(self) -> str | None:
        """Say what has grown beyond its bound."""
        for run in self.runs:
            if run.waiting > len(run.lanes) or len(run._later) > len(run.lanes):
                return "more turns wait than there are lanes"
            if any(len(lane._session.requests) > 8 for lane in run.lanes.values()):
                return "requests pile up at a lane"
        if len(self.reader._readers) > _READERS_MAX or len(self.open_files._open) > 4 or self.reader._making:
            return "more readers or files are open than may be"
        cached = sum(map(kept_bytes, self.reader._cache.values()))
        return (
            "the cache of segments is over its bound" if cached > CACHE_BYTES and len(self.reader._cache) > 1 else None
        )
