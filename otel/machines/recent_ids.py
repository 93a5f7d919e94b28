"""The most recent ids, to detect duplicates."""


class RecentIds:
    """Remembers the most recent ids: at least `least`, at most twice as many."""

    __slots__ = ("_before", "_latest", "_least")

    def __init__(self, least: int) -> None:
        self._least = least
        self._latest: set[str] = set()
        self._before: set[str] = set()

    def check_and_add(self, identity: str) -> bool:
        """Add an id; return whether it was there already."""
        latest = self._latest
        if identity in latest or identity in self._before:
            return True
        latest.add(identity)
        if len(latest) >= self._least:
            # Half of the ids are dropped at once: finding the oldest id each time would be slow.
            self._before, self._latest = latest, set()
        return False
