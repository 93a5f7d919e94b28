"""The feed of a sink that takes the events themselves: segments as the reader makes them."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from exporter.core.delivery.batches import BatchLimits
from exporter.core.delivery.reconcile import Walk
from exporter.core.delivery.segment import BYTES_MAX, EVENTS_MAX, Segment
from exporter.pipeline.feed import Feed
from exporter.pipeline.segment_reader import SegmentReader
from exporter.sources.files.session_file import SessionFile

# A body is a little longer than its events.
_BODY_SPARE_BYTES: Final = 4_096


class EventFeed(Feed):
    """See the module. `keep_live` asks for redacted ephemeral events as well."""

    holds_events = True

    def __init__(self, reader: SegmentReader, *, keep_live: bool = False) -> None:
        self.keep_live = keep_live
        self.reads_with = self
        self._reader = reader
        self._shared = False

    def share(self, shared: bool) -> None:
        """See `Feed`."""
        self._shared = shared

    async def next(self, file: SessionFile, walk: Walk, after: Segment | None, limits: BatchLimits) -> Segment | None:
        """Read as many events and bytes at once as the sink takes, or the wire's floor when sinks share them."""
        compared = walk.reconciliation is not None
        seen = set[str]() if compared else None
        segment = await self._reader.segment(
            file,
            after.end if after else walk.position,
            after.last_id if after else walk.last_id,
            shared=self._shared and not compared,
            keep_live=self.keep_live,
            skip=walk.skip,
            limits=(EVENTS_MAX, BYTES_MAX)
            if self._shared
            else (limits.events_max, limits.bytes_max - _BODY_SPARE_BYTES),
            seen=seen,
        )
        if segment is not None and seen is not None:
            segment.seen = seen
        return segment

    def forget(self, file: SessionFile) -> None:
        """Do nothing: all that is kept is kept by the reader, for all sinks."""

    def skip(self, delivered: Callable[[], Container[str]]) -> Container[str] | None:
        """Skip nothing: what is behind the mark was not delivered."""
        return None

    def known(self, delivered: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Take the sink to have nothing: it is sent everything again, and its ids make that harmless."""
        return {}

    def taken(self, segment: Segment, ids: Sequence[str]) -> tuple[int, str | None]:
        """Return the number of the ids, and the last of them."""
        return len(ids), ids[-1] if ids else None
