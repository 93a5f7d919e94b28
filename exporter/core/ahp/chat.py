"""One conversation: its mirror, how far it is told, and what is told when either moves."""

from enum import Enum
from typing import Any, Final

from exporter.core.ahp.chat_state import PIECES, Applied, ChatState
from exporter.core.ahp.checkpoint import Checkpoint, continues, is_same, renumber
from exporter.core.ahp.drafts import Draft, id_of, moment
from exporter.core.ahp.turn import TurnOwner, TurnWriter
from exporter.core.ahp.values import Json, text

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


GAP: Final = "exporter.gap"
_LONG: Final = "a turn is longer than can be held: the end of its text is missing"


class Chat:
    """What is known of one conversation. `asks` is whether a page of history is to be fetched.

    Nothing durable is told from a snapshot on until its history connects with what was told before, or is whole, or
    cannot be had; then a gap says so.
    """

    def __init__(self, place: TurnOwner, frontier: Checkpoint) -> None:
        self.place = place
        self.frontier = frontier
        self.mirror = ChatState()
        self.seen = -1  # the last message of the host that is in the mirror
        self.is_known = False
        self.asks = False
        self.history: History | None = None
        self._now = 0.0
        self._drafts: list[Draft] = []

    def replace(self, state: Json, seen: int, now: float, *, has_cursors: bool) -> list[Draft]:
        """Take over a snapshot and return what is new in it."""
        self.mirror.replace(state)
        self.seen = seen
        self.is_known = True
        self.history = History(self.mirror, has_cursors=has_cursors)
        self.asks = False
        return self._step(self.history.next() if self._anchor() is None else HistoryStep.WHOLE, now)

    def fetched(self, result: Any, now: float) -> list[Draft]:
        """Take a page of history."""
        return self._step(self.history.answered(result), now) if self.history else []

    def broke(self, problem: str, now: float) -> list[Draft]:
        """Go on without the history that cannot be had."""
        return self._step(self.history.stop(problem), now) if self.history else []

    def apply(self, action: Json, now: float) -> tuple[Applied, list[Draft]]:
        """Take an action and return what became durable by it."""
        kind = text(action, "type")
        if kind in PIECES and self.history is None:  # mostly it is one of these
            return self.mirror.apply(action), []
        if kind == "chat/turnsLoaded" and self.history is None:
            return Applied.NOTHING, []  # asked for by somebody else; what is older than what we hold was told
        held = self.mirror.base + len(self.mirror.turns)
        applied = self.mirror.apply(action)
        if applied is not Applied.CHANGED:
            return applied, []
        if self.history is not None:
            is_page = kind == "chat/turnsLoaded"
            found = (
                HistoryStep.WHOLE
                if self._anchor() is not None
                else self.history.next()
                if is_page
                else HistoryStep.WAIT
            )
            return applied, self._step(found, now)
        if kind == "chat/truncated":
            self._truncate(held, now)
        return applied, self._tell(now)

    def lost(self, reason: str, now: float) -> list[Draft]:
        """The conversation is gone from the host; a turn that was running is not told to its end."""
        self._now = now
        if self.frontier.open.begun:
            self._rewind(self.frontier.count, reason)
        lost, self._drafts = self._drafts, []
        return lost

    def tell(self, now: float) -> list[Draft]:
        """Return what has become durable, because more is known of the session."""
        self.mirror.touched = 0
        return self._tell(now) if self.is_known and self.history is None else []

    def _step(self, step: HistoryStep, now: float) -> list[Draft]:
        self.asks = step is HistoryStep.ASK
        if step in (HistoryStep.ASK, HistoryStep.WAIT):
            return []
        assert self.history is not None
        self._now = now
        problem, self.history, self.asks = self.history.problem, None, False
        self.mirror.base = self._anchor() or 0
        if problem and self._anchor() is None:
            self.mirror.base = self._anchor_by_content()
            self._gap(problem, self.mirror.base, self.mirror.base)
        return self._connect(now)

    def _connect(self, now: float) -> list[Draft]:
        """The history is as whole as it will be: find out what of it was told."""
        frontier, turns, base = self.frontier, self.mirror.turns, self.mirror.base
        for place in range(max(base, frontier.first), frontier.count):
            index = place - base
            if index < len(turns) and is_same(frontier.finished[place - frontier.first], turns[index]):
                continue
            active = self.mirror.active
            if (
                place == frontier.count - 1 == base + len(turns)
                and active
                and frontier.finished[-1].id == active.get("id")
            ):
                frontier.resume()
            else:
                self._rewind(place, "the history is another than it was" if index < len(turns) else "turns are gone")
            break
        self._reopen()
        for index in range(min(len(turns), frontier.count - base)):
            self.mirror.forget(index)
        return self._tell(now)

    def _anchor(self) -> int | None:
        """Return the place of the first turn that is held, if one that was told is among them."""
        if self.frontier.count == 0:
            return None
        by_id = {told.id: self.frontier.first + index for index, told in enumerate(self.frontier.finished)}
        for index, turn in enumerate(self.mirror.turns):
            if text(turn, "id") in by_id:
                base = by_id[text(turn, "id")] - index
                return base if base >= 0 else None
        return None

    def _anchor_by_content(self) -> int:
        """Return the place of the first turn that is held, if the last one that was told can be made out."""
        for index in reversed(range(len(self.mirror.turns))):
            if self.frontier.finished and is_same(self.frontier.finished[-1], self.mirror.turns[index]):
                return max(0, self.frontier.count - 1 - index)
        return self.frontier.count

    def _reopen(self) -> None:
        """Find the turn that was told in part."""
        told, index = self.frontier.open, self.frontier.count - self.mirror.base
        if not told.begun:
            return
        turns = self.mirror.turns
        turn = turns[index] if index < len(turns) else self.mirror.active
        if turn is None or not continues(told, turn):
            self._rewind(self.frontier.count, "a turn that was running is gone")
        elif not renumber(told, turn):
            self._gap("the text of a turn is another than it was", self.frontier.count, self.frontier.count + 1)
            parts = turn.get("responseParts")
            told.parts = (
                {n: len(text(p, "content")) for n, p in enumerate(parts) if isinstance(p, dict)}
                if isinstance(parts, list)
                else {}
            )

    def _rewind(self, place: int, reason: str) -> None:
        self._gap(reason, place, self.frontier.count + bool(self.frontier.open.begun))
        self.frontier.rewind(place)

    def _truncate(self, held: int, now: float) -> None:
        kept = self.mirror.base + len(self.mirror.turns)
        if kept < self.frontier.count or self.frontier.open.begun:
            data = {"upToTurn": kept, "turnsRemoved": held - kept}
            identity = id_of(self.place.chat, "rewind", self.frontier.rewinds, kept)
            self._drafts.append(Draft(identity, "session.snapshot_rewind", moment(now), data, self.place.agent))
            self.frontier.rewind(min(kept, self.frontier.count))

    def _gap(self, reason: str, start: int, end: int) -> None:
        data = {"reason": reason, "chat": self.place.chat, "fromTurn": start, "toTurn": end, "recovered": False}
        identity = id_of(self.place.chat, "gap", self.frontier.rewinds, start, end, reason)
        self._drafts.append(Draft(identity, GAP, moment(self._now), data, self.place.agent))

    def _tell(self, now: float) -> list[Draft]:
        self._now = now
        drafts: list[Draft] = []
        for index in range(max(0, self.frontier.count - self.mirror.base), len(self.mirror.turns)):
            turn = self.mirror.turns[index]
            drafts += self._tell_turn(turn, has_ended=True)
            if index == len(self.mirror.turns) - 1 and self.mirror.active is None:
                drafts += self._check_length()
            self.frontier.finish(turn)
            self.mirror.forget(index)
        self.mirror.trim()
        active = self.mirror.active
        if active is not None:
            drafts += self._tell_turn(active, has_ended=False)
            drafts += self._check_length()
        drafts += self._drafts
        self._drafts = []
        return drafts

    def _check_length(self) -> list[Draft]:
        before, self._drafts = self._drafts, []
        if self.mirror.has_overflowed and "long" not in self.frontier.open.notes:
            self.frontier.open.notes.append("long")
            self._gap(_LONG, self.frontier.count, self.frontier.count + 1)
        new, self._drafts = self._drafts, before
        return new

    def _tell_turn(self, turn: Json, *, has_ended: bool) -> list[Draft]:
        told = self.frontier.open
        if told.begun and told.id != text(turn, "id"):
            self._rewind(self.frontier.count, "a turn that was running is gone")
        before, self._drafts = self._drafts, []
        start = self.mirror.touched if self.frontier.open.begun and not has_ended else 0
        new = TurnWriter(self.place, self.frontier, turn, self._now, has_ended=has_ended, start=start).tell()
        if not has_ended:
            self.mirror.touched = len(self.mirror.parts)
        return before + new
