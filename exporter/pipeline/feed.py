"""What a lane asks of its feed: the next segment, and what it means to the sink. One feed serves a sink's sessions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.position import Mark
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.segment import Segment
from exporter.sources.files.session_file import SessionFile

if TYPE_CHECKING:
    from exporter.pipeline.sink_state import SinkState


class FeedSums:
    """What is counted of segments that are not sent, and sent beside the lanes: nothing, for most feeds."""

    counts = False
    hurried = False

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

    async def run(self, sink_state: "SinkState", quiet: Callable[[], bool]) -> None:
        """Send what was counted until cancelled."""


class Feed(ABC):
    """Makes segments for a sink.

    `shared` says that other feeds read the same sessions; `reads_with` is the same object in feeds that read together.
    """

    holds_events: ClassVar[bool]
    """Whether the sink holds the events themselves, so that it can be asked for them by their ids."""
    keep_live = False
    sums = FeedSums()
    reads_with: object

    @abstractmethod
    def share(self, shared: bool) -> None:
        """Note whether other feeds read the same sessions."""

    @abstractmethod
    async def next(self, file: SessionFile, walk: Walk, after: Segment | None, limits: BatchLimits) -> Segment | None:
        """Return the segment at the place of a walk, or behind the segment `after`; None at the end of the file."""

    async def ending(self, file: SessionFile, walk: Walk) -> Segment | None:
        """Return, once, what is left to send at the end of a file that no process will continue."""
        return None

    def is_left_open(self, file: SessionFile) -> bool:
        """Tell whether a session has begun something that its process, which has ended, will not finish."""
        return False

    @abstractmethod
    def forget(self, file: SessionFile) -> None:
        """Let go of what is needed for nothing but further events of a session."""

    @abstractmethod
    def skip(self, delivered: Callable[[], Container[str]]) -> Container[str] | None:
        """Return what a walk from the mark on does not send; `delivered` is what the sink has."""

    @abstractmethod
    def known(self, delivered: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Return what a sink is taken to have that cannot say it; `delivered` is what it was sent."""

    @abstractmethod
    def taken(self, segment: Segment, ids: Sequence[str]) -> tuple[int, str | None]:
        """Return how many events a sink has taken with these ids of a segment, and the id of the last one."""

    def stream(self, session: str, mark: Mark | None) -> str | None:
        """Return under which name at the sink something out of quarantine is sent, None where there is none."""
        if self.sums.counts:
            return session  # points are kept in quarantine under the name of their stream
        return mark.remote_id if mark is not None else None
