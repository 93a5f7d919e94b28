"""What a lane asks of its feed: the next segment, and what it means to the sink. One feed serves a sink's sessions.

`EventFeed` is the feed of a sink that takes the events themselves: segments as the reader makes them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.position import Mark
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.segment import BYTES_MAX, EVENTS_MAX, Segment
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.session_file import SessionFile

if TYPE_CHECKING:
    from exporter.pipeline.sink_state import SinkState

# A body is a little longer than its events.
_BODY_SPARE_BYTES: Final = 4_096


class FeedSums:
    """The sums of a feed whose segments are counted and not sent; most feeds have none.

    A task beside the lanes sends them.
    """

    counts = False
    hurried = False
    lives = False
    """Whether what happens now is sent for as long as this program runs."""

    @property
    def settled(self) -> bool:
        """Tell whether everything that was counted has been sent."""
        return True

    @property
    def streams(self) -> Sequence[str]:
        """The streams that something was counted for."""
        return ()

    def of(self, segment: Segment) -> Sequence[bytes]:
        """Return what is counted, in the transaction that commits the segment."""
        return ()

    def counted(self) -> None:
        """Note that something was counted."""

    def was_accepted(self, state: bytes) -> bool:
        """Tell whether something of sums, as they are stored, was ever accepted."""
        return False

    async def run(self, sink_state: "SinkState", quiet: Callable[[], bool]) -> None:
        """Send what was counted until cancelled."""


class FileReading(Protocol):
    """Reads session files for one feed or several. `shared` says that others read the same sessions."""

    shared: bool


class Feed(ABC):
    """Makes segments for a sink. `reads_with` is the same object in feeds that read together.

    The defaults are those of a sink that takes events.
    """

    holds_events: ClassVar[bool]
    """Whether the sink holds the events themselves, so that it can be asked for them by their ids."""
    keep_live = False
    sums = FeedSums()
    reads_with: FileReading

    @abstractmethod
    async def next(self, file: SessionFile, walk: Walk, after: Segment | None, limits: BatchLimits) -> Segment | None:
        """Return the segment at the place of a walk, or behind the segment `after`; None at the end of the file."""

    async def ending(self, file: SessionFile, walk: Walk) -> Segment | None:
        """Return, once, what is left to send at the end of a file that no process will continue."""
        return None

    def is_left_open(self, file: SessionFile) -> bool:
        """Tell whether a session may have begun something that its process, which has ended, will not finish."""
        return False

    def forget(self, file: SessionFile) -> None:  # noqa: B027  most feeds keep nothing of a session
        """Release what only further events of a session need."""

    def skip(self, delivered: Callable[[], Container[str]]) -> Container[str] | None:
        """Return what a walk from the mark on does not send; `delivered` is what the sink has.

        Nothing is skipped by most feeds: what is behind the mark was not delivered.
        """
        return None

    def known(self, delivered: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return what a sink is taken to have that cannot say it; `delivered` is what it was sent.

        A sink of events is taken to have nothing: it is sent everything again, and its ids make that harmless.
        """
        return {}

    def begin_at(self, since: Callable[[str], float], passed: Callable[[str], None]) -> None:  # noqa: B027  see below
        """Send nothing of what a session held before the time that `since` returns for it; `passed` is told of it.

        Most feeds send sessions whole.
        """

    def taken(self, segment: Segment, ids: Sequence[str]) -> tuple[int, str | None]:
        """Return how many events a sink has taken with these ids of a segment, and the id of the last one."""
        return len(ids), ids[-1] if ids else None

    def stream(self, session: str, mark: Mark | None) -> str | None:
        """Return under which name at the sink something out of quarantine is sent, None where there is none."""
        if self.sums.counts:
            return session  # points are kept in quarantine under the name of their stream
        return mark.remote_id if mark is not None else None


class EventFeed(Feed):
    """See the module. `keep_live` asks for redacted ephemeral events as well."""

    holds_events = True

    def __init__(self, reader: SegmentReader, *, keep_live: bool = False) -> None:
        self.keep_live = keep_live
        self.shared = False
        self.reads_with = self
        self._reader = reader

    async def next(self, file: SessionFile, walk: Walk, after: Segment | None, limits: BatchLimits) -> Segment | None:
        """Read as many events and bytes at once as the sink takes, or the wire's floor when sinks share them."""
        position = after.end if after else walk.position
        seen = set[str]() if walk.reconciliation is not None else None
        bounds = limits.events_max, limits.bytes_max - _BODY_SPARE_BYTES
        if self.shared:
            bounds = EVENTS_MAX, BYTES_MAX
        shared, keep_live = self.shared and seen is None and walk.skip is None, self.keep_live
        segment = await self._reader.segment(
            file, position, shared=shared, keep_live=keep_live, skip=walk.skip, seen=seen, limits=bounds
        )
        if segment is not None and seen is not None:
            segment.seen = seen
        return segment
