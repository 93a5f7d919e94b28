"""A whole session told piece by piece, so that one of any length is never held at once."""

from typing import Final

from exporter.missioncontrol.pages.timeline import windows
from exporter.missioncontrol.pages.timeline.days import mark_days
from exporter.missioncontrol.pages.timeline.entry import Entry
from exporter.missioncontrol.pages.timeline.teller import ENDS, Teller
from exporter.missioncontrol.store.port import Database
from exporter.missioncontrol.store.session_row import number_of

_EVENTS: Final = 2000
_AHEAD_MAX: Final = 50_000
"""How many later ends are looked through for those of what is open where a piece ends."""


class Pieces:
    """Tells one session. What is open where a piece ends gets its end from further on, which is not told once more."""

    def __init__(self, session_id: str) -> None:
        self.has_more = True
        self._session_id = session_id
        self._last: windows.EventPlace | None = None
        self._rewinds: list[windows.Rewind] = []
        self._joined: set[str] = set()
        self._day = ""

    def next(self, database: Database) -> list[Entry]:
        """Return the entries of the next piece."""
        window = self._window(database)
        teller = Teller()
        rows = [row for row in window.rows if row.envelope.id not in self._joined]
        teller.tell(rows, windows.rewinds_within(self._rewinds, window))
        self._joined.difference_update(row.envelope.id for row in window.rows)
        self.has_more = window.behind
        if window.behind:
            self._last = windows.EventPlace(number_of(database, self._session_id), *window.rows[-1].place)
            self._joined |= teller.finish(windows.further_of_types(database, self._last, ENDS, _AHEAD_MAX))
        self._day = mark_days(teller.entries, self._day)
        return teller.entries

    def _window(self, database: Database) -> windows.Window:
        everybody = windows.TimelineScope()
        if self._last is not None:
            return windows.window_after(database, self._last, everybody, _EVENTS)
        self._rewinds = windows.rewinds(database, self._session_id)
        return windows.first_window(database, self._session_id, everybody, _EVENTS)
