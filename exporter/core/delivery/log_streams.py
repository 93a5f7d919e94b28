"""Which stream the log records of a session's hours go to, so that no stream goes back in time by more than an hour.

A log store takes the records of one stream roughly in the order of time, and only some streams. Sessions that are
delivered one after the other overlap for hours, so a stream holds the records of one hour at a time, of whatever
sessions, and moves on to a later hour once no session that is under way has records of its own.
"""

from typing import Final

STREAMS: Final = 15
"""Of hours; records of no known hour have a stream of their own."""
_LONG_STREAMS: Final = 3
_HOUR_SECONDS: Final = 3_600


def hour_of(seconds: float) -> int:
    """Return the hour of a time since 1970."""
    return int(seconds // _HOUR_SECONDS)


class LogStreams:
    """Gives sessions streams while they are delivered; they come in the order in which they begin.

    A session that lasts longer than there are streams for gets one for itself, of the last `_LONG_STREAMS`.
    """

    def __init__(self) -> None:
        self._at = [0] * STREAMS
        self._users: list[set[str]] = [set() for _ in range(STREAMS)]

    def take(self, session: str, first: int, last: int) -> dict[int, int] | None:
        """Return the stream of each hour from `first` to `last`; None: others have to be done before.

        A session that would go back in time in every stream, with none under way, gets those that are least ahead.
        """
        shorts = range(STREAMS - _LONG_STREAMS)
        last = max(first, last)
        if last - first >= len(shorts):
            return self._take_whole(session, first, last)
        chosen: dict[int, int] = {}
        for hour in range(first, last + 1):
            stream = next((one for one in shorts if self._at[one] == hour), None)
            if stream is None:
                stream = self._free(shorts, hour, chosen)
            if stream is None:
                return None
            chosen[hour] = stream
        for hour, stream in chosen.items():
            self._at[stream] = max(hour, self._at[stream])
            self._users[stream].add(session)
        return chosen

    def _take_whole(self, session: str, first: int, last: int) -> dict[int, int] | None:
        stream = self._free(range(STREAMS - _LONG_STREAMS, STREAMS), first, {})
        if stream is None:
            return None
        self._at[stream] = max(last, self._at[stream])
        self._users[stream].add(session)
        return {first: stream}

    def _free(self, streams: range, hour: int, chosen: dict[int, int]) -> int | None:
        """Return the stream that is furthest behind of those that nobody uses and that are not after the hour."""
        free = [one for one in streams if not self._users[one] and one not in chosen.values()]
        behind = [one for one in free if self._at[one] <= hour]
        if not behind and len(free) + len(chosen) == len(streams):  # no wait would help
            behind = free
        return min(behind, key=self._at.__getitem__, default=None)

    def done(self, session: str) -> None:
        """Note that a session has been delivered, or is not delivered now."""
        for users in self._users:
            users.discard(session)
