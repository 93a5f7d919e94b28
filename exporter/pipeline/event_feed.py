"""How a lane gets at its next segment: from the segment reader as it is, or made into the records of its sink."""

from collections.abc import Callable, Container
from typing import Final

from exporter.core.delivery.position import Position
from exporter.core.delivery.reconcile import Reconciliation
from exporter.core.delivery.segment import Segment
from exporter.pipeline.record_feed import has_ended
from exporter.pipeline.sink_state import SinkState
from exporter.sources.files.session_file import SessionFile

_NOTHING: Final[frozenset[str]] = frozenset()


class Reading:
    """Reads one session for one sink. `delivered` says what the sink had when we began."""

    def __init__(self, file: SessionFile, sink_state: SinkState, delivered: Callable[[], Container[str]]) -> None:
        self._file = file
        self._sink_state = sink_state
        self._delivered = delivered
        self._known: Container[str] | None = None
        self._ended: tuple[int, int] | None = None

    def forget(self) -> None:
        """Ask again what the sink has before the next segment is read."""
        self._known = self._ended = None

    async def next(self, position: Position, last_id: str | None, reconciling: Reconciliation | None) -> Segment | None:
        """Return the next segment from `position`, None at the end of the file."""
        mapping = self._sink_state.mapping
        if mapping is not None:
            return await mapping.segment(self._file, position, last_id, self._skip(reconciling))
        seen: set[str] | None = set() if reconciling else None
        segment = await self._sink_state.reader.segment(
            self._file,
            position,
            last_id,
            shared=self._sink_state.shared and reconciling is None,
            keep_live=self._sink_state.keep_live,
            skip=reconciling.skip if reconciling else None,
            limits=self._sink_state.segment_limits(),
            seen=seen,
        )
        if segment is not None and seen is not None:
            segment.seen = seen
        return segment

    async def ending(self, position: Position, reconciling: Reconciliation | None) -> Segment | None:
        """Return, once, what is left to send at the end of a file that no process will continue."""
        mapping, place = self._sink_state.mapping, (self._file.generation, position.offset)
        if mapping is None or self._ended == place or not has_ended(self._file):
            return None
        self._ended = place
        return await mapping.ending(self._file, position, self._skip(reconciling))

    def _skip(self, reconciling: Reconciliation | None) -> Container[str]:
        """Return what is not sent again. A span that was open when we began may have been sent by who was before us."""
        if reconciling is not None:
            return reconciling.skip
        if self._known is None:
            assert self._sink_state.mapping is not None
            self._known = self._delivered() if self._sink_state.mapping.repeats else _NOTHING
        return self._known
