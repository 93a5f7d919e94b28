"""Comparing what a sink has with what a rewritten file holds, by event id.

What the sink has is passed over, what it lacks is sent, and what it has but the file lacks is gone: rewound.
"""

from collections.abc import Iterable, Mapping


class Reconciliation:
    """One walk through a file from its first event. Nothing is gone before the walk has reached the end."""

    def __init__(self, known: Mapping[str, bytes], quarantined: Iterable[str]) -> None:
        self._known = known
        self._seen: set[str] = set()
        self.skip = {*known, *quarantined}
        """The ids that are not sent again: the sink has them, or they wait in quarantine."""

    def settled(self, seen: Iterable[str]) -> None:
        """Note what a part of the file holds, once that part is done with: until then it may be written anew."""
        self._seen.update(seen)

    def gone(self) -> list[str]:
        """Return what the sink has and the file lacks, in the sink's order."""
        return [identity for identity in self._known if identity not in self._seen]
