"""One way through a session file: from the mark on, or from the first event and compared by event id.

Compared means: what the sink has is skipped, what it lacks is sent, and what it has but the file lacks was rewound.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from exporter.core.delivery.position import START, Position
from exporter.core.delivery.segment import Segment


class Reconciliation:
    """One walk through a file from its first event. Nothing counts as rewound before the walk has reached the end.

    What `others` sent was never in this file, and so it is not gone from it.
    """

    def __init__(self, known: Mapping[str, bytes], quarantined: Iterable[str], others: Container[str] = ()) -> None:
        self._known = known
        self._others = others
        self._seen: set[str] = set()
        self.skip = {*known, *quarantined}
        """The ids that are not sent again: the sink has them, or they wait in quarantine."""

    def settled(self, seen: Iterable[str]) -> None:
        """Note the ids of a part of the file after its delivery; before that the part may still be rewritten."""
        self._seen.update(seen)

    def gone(self) -> list[str]:
        """Return what the sink has and the file lacks, in the sink's order."""
        return [one for one in self._known if one not in self._seen and one not in self._others]


@dataclass(slots=True)
class Walk:
    """Where a lane is in one generation of a session file, reached with the event `last_id`.

    What `skip` holds is not sent. `ahead` is the segment after the one that is being sent, read meanwhile; `ended` is
    the offset at which the end of the session was looked at. A new walk has neither, so nothing outlives its walk.
    """

    generation: int | None = None
    position: Position = START
    last_id: str | None = None
    reconciliation: Reconciliation | None = None
    skip: Container[str] | None = None
    ahead: Segment | None = None
    ended: int | None = None

    def advance(self, segment: Segment) -> None:
        """Move behind a segment that is done with."""
        self.position, self.last_id = segment.end, segment.last_id or self.last_id
        if self.reconciliation is not None:
            self.reconciliation.settled(segment.seen)

    def take_ahead(self) -> Segment | None:
        """Take the segment that was read ahead, if it begins here."""
        segment, self.ahead = self.ahead, None
        return segment if segment is not None and segment.start == self.position else None
