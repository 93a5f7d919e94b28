"""Whose turn it is: live sessions before backfill, each in turn, so that one huge session starves no other."""

from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")


class Schedule(Generic[Key]):
    """Sessions that have something to send, each at most once, in the order in which they asked."""

    def __init__(self) -> None:
        self._live: OrderedDict[Key, None] = OrderedDict()
        self._backfill: OrderedDict[Key, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live) + len(self._backfill)

    def add(self, key: Key, *, live: bool) -> None:
        """Ask for a turn. A session that waits already keeps its place; becoming live moves it ahead of backfill."""
        if live:
            self._backfill.pop(key, None)
            self._live.setdefault(key)
        elif key not in self._live:
            self._backfill.setdefault(key)

    def put_back(self, key: Key, *, live: bool) -> None:
        """Give a session whose turn it was the next turn of its kind."""
        self.add(key, live=live)
        (self._live if live else self._backfill).move_to_end(key, last=False)

    def next(self) -> Key | None:
        """Take the next turn, or None when no session waits."""
        for waiting in (self._live, self._backfill):
            if waiting:
                return waiting.popitem(last=False)[0]
        return None
