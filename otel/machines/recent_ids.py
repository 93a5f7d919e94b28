"""Which ids have come before, of the latest some thousands."""


class RecentIds:
    """Remembers ids, at least the latest `least` of them and at most twice as many."""

    __slots__ = ("_before", "_latest", "_least")

    def __init__(self, least: int) -> None:
        self._least = least
        self._latest: set[str] = set()
        self._before: set[str] = set()

    def again(self, identity: str) -> bool:
        """Tell whether an id has come before; from now on it has."""
        latest = self._latest
        if identity in latest or identity in self._before:
            return True
        latest.add(identity)
        if len(latest) >= self._least:
            # Both at once, because to forget one at a time is to look for the oldest every time.
            self._before, self._latest = latest, set()
        return False
