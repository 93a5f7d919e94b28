"""Fetching the turns that a snapshot does not hold, one page after the other, and never in circles."""

from enum import Enum
from typing import Any, Final

from exporter.core.ahp.chat_state import ChatState
from exporter.core.ahp.values import text

PAGES_MAX: Final = 400
TURNS_MAX: Final = 20_000


class HistoryStep(Enum):
    """What comes next."""

    ASK = "ask"
    WAIT = "wait"
    WHOLE = "whole"
    BROKEN = "broken"


class History:
    """How far back the history of one conversation has been fetched. `problem` says why it is broken."""

    def __init__(self, mirror: ChatState, *, has_cursors: bool) -> None:
        self.problem = ""
        self._mirror = mirror
        self._has_cursors = has_cursors
        self._pages = 0
        self._asked: set[str] = set()

    @property
    def before(self) -> str:
        """Return the turn that the next page ends before."""
        return text(self._mirror.turns[0], "id") if self._mirror.turns else ""

    @property
    def cursor(self) -> Any:
        """Return what stands for the next page."""
        return self._mirror.state.get("turnsNextCursor")

    def next(self) -> HistoryStep:
        """Return whether there is more to ask for."""
        if self._has_cursors and self.cursor is None:
            return HistoryStep.WHOLE
        key = str(self.cursor) if self._has_cursors else self.before
        if key in self._asked:
            return self.stop("the host gives the same turns again")
        if self._pages >= PAGES_MAX or len(self._mirror.turns) >= TURNS_MAX:
            return self.stop("there are more turns than are read")
        self._asked.add(key)
        self._pages += 1
        return HistoryStep.ASK

    def answered(self, result: Any) -> HistoryStep:
        """Take the answer to a request; with cursors the turns come by an action, which the mirror takes."""
        page = result if isinstance(result, dict) else {}
        turns = page.get("turns")
        if not isinstance(turns, list):
            return HistoryStep.WAIT if self._has_cursors else self.stop("the host answered with no turns")
        added = self._mirror.prepend([turn for turn in turns if isinstance(turn, dict)])
        if self._has_cursors:
            self._mirror.state["turnsNextCursor"] = page.get("turnsNextCursor")
            return self.next()
        if turns and not added:
            # Asked for what is before a turn that it does not know, a host gives its newest ones.
            return self.stop("the host gives the same turns again")
        return self.next() if page.get("hasMore") and added else HistoryStep.WHOLE

    def stop(self, problem: str) -> HistoryStep:
        """Give up."""
        self.problem = problem
        return HistoryStep.BROKEN
