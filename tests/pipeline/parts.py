"""The parts that a lane is made of: a session file, the stores, and a sink that speaks to a server on loopback."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.gate import Gate
from exporter.core.notice import Notice
from exporter.pipeline.feed import EventFeed, Feed
from exporter.pipeline.lane import Lane
from exporter.pipeline.segment_reader import SegmentReader
from exporter.pipeline.sink_session import SinkSession
from exporter.pipeline.sink_state import SinkState
from exporter.sinks.http_transport import HttpTransport
from exporter.sinks.mission_control import MissionControlSink
from exporter.sources.files.session_file import OpenFiles
from exporter.sources.files.session_file import SessionFile as Followed
from exporter.state.marks import MarkStore
from exporter.state.quarantine import Quarantine
from tests.daemon.peer import Peer
from tests.daemon.sessions import SessionFile

LIMITS = BatchLimits(500, 1_000_000, 8 << 20)


class Parts:
    """Everything around a lane. `notices` is what was reported."""

    def __init__(self, home: Path, peer: Peer | None = None, feed: Feed | None = None, cache_bytes: int = 1 << 20):
        self.copilot = home / "copilot"
        state = home / "state"
        state.mkdir(mode=0o700)
        self.marks_path = state / "marks.db"
        self.store = MarkStore(self.marks_path)
        self.quarantine = Quarantine(state / "quarantine.db", bytes_max=1 << 20, days_max=30)
        self.notices: list[Notice] = []
        self.files = OpenFiles(16)
        self.reader = SegmentReader(self.files, lambda line, /: line, line_bytes_max=1 << 20, cache_bytes=cache_bytes)
        url = peer.url if peer is not None else "http://127.0.0.1:1/agents"
        self.token: str | None = "first"
        transport = HttpTransport(url, connections=4, timeout_seconds=10.0)
        self.sink = MissionControlSink("mission_control", url, transport, token=lambda: self.token)
        self.sink_state = SinkState(
            self.sink,
            self.store.sink_id(self.sink.name, url),
            Gate(),
            self.store,
            self.quarantine,
            self.reader,
            self.notices.append,
            feed or EventFeed(self.reader),
        )

    def session(self, name: str = "s", count: int = 0) -> tuple[SessionFile, Followed]:
        """Make a session with so many events; return it as the CLI and as the exporter sees it."""
        written = SessionFile(self.copilot, name)
        followed = Followed(name, written.directory)
        written.add(count)
        followed.refresh(self.files)
        return written, followed

    def lane(self, file: Followed) -> Lane:
        mark = self.store.mark(file.session, self.sink_state.sink_id)
        return Lane(file, self.sink_state, live=True, mark=mark)

    def sink_session(self, file: Followed) -> SinkSession:
        lane = self.lane(file)
        return SinkSession(file, self.sink_state, lane.mark if lane.mark.remote_id else None, lane.progress)

    def delivered(self, session: str = "s") -> list[str]:
        """Return the ids that our store says the sink has."""
        return list(self.store.delivered(session, self.sink_state.sink_id))

    def said(self) -> list[str]:
        return [notice.message for notice in self.notices]

    @contextmanager
    def locked_store(self) -> Iterator[None]:
        """Let nothing be written to the marks, as on a disk that is full."""
        self.store._run("PRAGMA busy_timeout = 0")
        other = sqlite3.connect(self.marks_path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            other.execute("ROLLBACK")
            other.close()

    async def close(self) -> None:
        await self.sink.close()
        self.store.close()
        self.quarantine.close()
        self.files.close_all()


async def settle(lane: Lane, turns: int = 50) -> None:
    """Give a lane its turns until it has nothing to do, as if its sink were always well."""
    for _ in range(turns):
        lane.file.refresh(lane.sink_state.reader.files)
        if not await lane.turn() and lane.settled:
            return
    raise AssertionError("the lane does not come to an end")
