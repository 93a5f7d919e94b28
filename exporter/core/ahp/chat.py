"""One conversation: a copy of its state, its checkpoint, and the events that follow from changes of the state."""

from enum import Enum
from typing import Any, Final

from exporter.core.ahp.chat_state import TEXT_ACTIONS, Applied, ChatState
from exporter.core.ahp.checkpoint import Checkpoint, continues, is_same, renumber
from exporter.core.ahp.drafts import Draft, id_of, moment
from exporter.core.ahp.turn import TurnOwner, TurnWriter
from exporter.core.ahp.values import Json, objects, text

PAGES_MAX: Final = 400
TURNS_MAX: Final = 20_000
GAP: Final = "exporter.gap"
_SAME_TURNS: Final = "the host gives the same turns again"
_TURN_GONE: Final = "a turn that was running is gone"
_LONG: Final = "a turn is longer than can be held: the end of its text is missing"


class HistoryStep(Enum):
    """The next step in fetching the history of a conversation."""

    ASK = "ask"
    WAIT = "wait"
    END = "end"


class History:
    """Fetches the history of one conversation page by page. `problem` says why it is incomplete."""

    def __init__(self, chat_state: ChatState, *, has_cursors: bool) -> None:
        self.problem = ""
        self._chat_state = chat_state
        self._has_cursors = has_cursors
        self._requested: set[str] = set()

    @property
    def position(self) -> Any:
        """Return the cursor of the next page or, without cursors, the id of the turn that the page ends before."""
        if self._has_cursors:
            return self._chat_state.cursor
        return text(self._chat_state.turns[0], "id") if self._chat_state.turns else ""

    def next(self) -> HistoryStep:
        """Return whether another page must be requested."""
        position = self.position
        if position is None:
            return HistoryStep.END
        if str(position) in self._requested:
            return self.stop(_SAME_TURNS)
        if len(self._requested) >= PAGES_MAX or len(self._chat_state.turns) >= TURNS_MAX:
            return self.stop("there are more turns than are read")
        self._requested.add(str(position))
        return HistoryStep.ASK

    def answered(self, page: Json) -> HistoryStep:
        """Process the response to a page request; with cursors the turns arrive in an action."""
        if not isinstance(page.get("turns"), list):
            return HistoryStep.WAIT if self._has_cursors else self.stop("the host answered with no turns")
        added = self._chat_state.prepend(objects(page, "turns"))
        if self._has_cursors:
            self._chat_state.cursor = page.get("turnsNextCursor")
            return self.next()
        if page["turns"] and not added:
            # A host that does not know the turn named in the request returns its newest turns.
            return self.stop(_SAME_TURNS)
        return self.next() if page.get("hasMore") and added else HistoryStep.END

    def stop(self, problem: str) -> HistoryStep:
        """End the fetch before the history is complete."""
        self.problem = problem
        return HistoryStep.END


class Chat:
    """The observed state of one conversation. `wants_page` says whether a page of history must be fetched.

    After a snapshot, no durable event is made until its history reaches a recorded turn or is complete. If neither is
    possible, an `exporter.gap` event reports it.
    """

    def __init__(self, owner: TurnOwner, checkpoint: Checkpoint) -> None:
        self.owner = owner
        self.checkpoint = checkpoint
        self.chat_state = ChatState()
        self.last_seq = -1  # serverSeq of the last message applied to `chat_state`
        self.is_known = False
        self.wants_page = False
        self.page_requested_at: float | None = None
        self.history: History | None = None
        self._now = 0.0
        self._drafts: list[Draft] = []

    def replace(self, state: Json, seq: int, now: float, *, has_cursors: bool) -> list[Draft]:
        """Replace the state by a snapshot and return the new events in it."""
        self.chat_state.replace(state)
        self.last_seq = seq
        self.is_known = True
        self.history = History(self.chat_state, has_cursors=has_cursors)
        self.wants_page = False
        return self._step(self.history.next() if self._anchor() is None else HistoryStep.END, now)

    def add_page(self, result: Json, now: float) -> list[Draft]:
        """Add a page of history and return the new events."""
        return self._step(self.history.answered(result), now) if self.history else []

    def abandon_history(self, problem: str, now: float) -> list[Draft]:
        """Continue without the missing history and return the new events."""
        return self._step(self.history.stop(problem), now) if self.history else []

    def apply(self, action: Json, now: float) -> tuple[Applied, list[Draft]]:
        """Apply an action and return the durable events that follow from it."""
        kind = text(action, "type")
        if kind in TEXT_ACTIONS and self.history is None:  # the most frequent case
            return self.chat_state.apply(action), []
        if kind == "chat/turnsLoaded" and self.history is None:
            return Applied.NOTHING, []  # requested by another client; older turns are already recorded
        held = self.chat_state.base + len(self.chat_state.turns)
        applied = self.chat_state.apply(action)
        if applied is not Applied.CHANGED:
            return applied, []
        if self.history is not None:
            step = HistoryStep.WAIT
            if self._anchor() is not None:
                step = HistoryStep.END
            elif kind == "chat/turnsLoaded":
                step = self.history.next()
            return applied, self._step(step, now)
        if kind == "chat/truncated":
            self._truncate(held, now)
        return applied, self._write_turns(now)

    def mark_lost(self, reason: str, now: float) -> list[Draft]:
        """Return the events that report that the conversation is gone from the host."""
        self._now = now
        if self.checkpoint.open.begun:
            self._rewind(self.checkpoint.count, reason)
        return self._take()

    def write_turns(self, now: float) -> list[Draft]:
        """Return the events that are new since the last call."""
        self.chat_state.touched = 0
        return self._write_turns(now) if self.is_known and self.history is None else []

    def _step(self, step: HistoryStep, now: float) -> list[Draft]:
        self.wants_page = step is HistoryStep.ASK
        if step in (HistoryStep.ASK, HistoryStep.WAIT):
            return []
        assert self.history is not None
        self._now = now
        problem, self.history, self.wants_page = self.history.problem, None, False
        self.chat_state.base = self._anchor() or 0
        if problem and self._anchor() is None:
            self.chat_state.base = self._anchor_by_content()
            self._gap(problem, self.chat_state.base, self.chat_state.base)
        return self._reconcile(now)

    def _reconcile(self, now: float) -> list[Draft]:
        """Compare the history with the checkpoint and return the new events."""
        checkpoint, turns, base = self.checkpoint, self.chat_state.turns, self.chat_state.base
        for place in range(max(base, checkpoint.first), checkpoint.count):
            index = place - base
            if index < len(turns) and is_same(checkpoint.finished[place - checkpoint.first], turns[index]):
                continue
            active, is_last = self.chat_state.active, place == checkpoint.count - 1 == base + len(turns)
            if is_last and active and checkpoint.finished[-1].id == active.get("id"):
                checkpoint.resume()
            else:
                self._rewind(place, "the history is another than it was" if index < len(turns) else "turns are gone")
            break
        self._reopen()
        for index in range(min(len(turns), checkpoint.count - base)):
            self.chat_state.forget(index)
        return self._write_turns(now)

    def _anchor(self) -> int | None:
        """Return the position of the first held turn, None if no held turn is recorded."""
        if self.checkpoint.count == 0:
            return None
        by_id = {recorded.id: self.checkpoint.first + index for index, recorded in enumerate(self.checkpoint.finished)}
        for index, turn in enumerate(self.chat_state.turns):
            if text(turn, "id") in by_id:
                base = by_id[text(turn, "id")] - index
                return base if base >= 0 else None
        return None

    def _anchor_by_content(self) -> int:
        """Return the position of the first held turn, found by the content of the last recorded turn."""
        for index in reversed(range(len(self.chat_state.turns))):
            if self.checkpoint.finished and is_same(self.checkpoint.finished[-1], self.chat_state.turns[index]):
                return max(0, self.checkpoint.count - 1 - index)
        return self.checkpoint.count

    def _reopen(self) -> None:
        """Find the turn that was recorded in part."""
        recorded, index = self.checkpoint.open, self.checkpoint.count - self.chat_state.base
        if not recorded.begun:
            return
        turns = self.chat_state.turns
        turn = turns[index] if index < len(turns) else self.chat_state.active
        if turn is None or not continues(recorded, turn):
            self._rewind(self.checkpoint.count, _TURN_GONE)
        elif not renumber(recorded, turn):
            self._gap("the text of a turn is another than it was", self.checkpoint.count, self.checkpoint.count + 1)
            parts = turn.get("responseParts")
            parts = parts if isinstance(parts, list) else []
            recorded.parts = {n: len(text(p, "content")) for n, p in enumerate(parts) if isinstance(p, dict)}

    def _rewind(self, place: int, reason: str) -> None:
        self._gap(reason, place, self.checkpoint.count + bool(self.checkpoint.open.begun))
        self.checkpoint.rewind(place)

    def _truncate(self, held: int, now: float) -> None:
        kept = self.chat_state.base + len(self.chat_state.turns)
        if kept < self.checkpoint.count or self.checkpoint.open.begun:
            self._now = now
            data = {"upToTurn": kept, "turnsRemoved": held - kept}
            self._add("session.snapshot_rewind", data, "rewind", self.checkpoint.rewinds, kept)
            self.checkpoint.rewind(min(kept, self.checkpoint.count))

    def _gap(self, reason: str, start: int, end: int) -> None:
        data = {"reason": reason, "chat": self.owner.chat, "fromTurn": start, "toTurn": end, "recovered": False}
        self._add(GAP, data, "gap", self.checkpoint.rewinds, start, end, reason)

    def _add(self, type: str, data: Json, *identity: Any) -> None:
        self._drafts.append(Draft(id_of(self.owner.chat, *identity), type, moment(self._now), data, self.owner.agent))

    def _write_turns(self, now: float) -> list[Draft]:
        self._now = now
        state = self.chat_state
        for index in range(max(0, self.checkpoint.count - state.base), len(state.turns)):
            turn = state.turns[index]
            self._write_turn(turn, has_ended=True)
            if index == len(state.turns) - 1 and state.active is None:
                self._check_length()
            self.checkpoint.finish(turn)
            state.forget(index)
        state.trim()
        if state.active is not None:
            self._write_turn(state.active, has_ended=False)
            state.touched = len(state.parts)
            self._check_length()
        return self._take()

    def _write_turn(self, turn: Json, *, has_ended: bool) -> None:
        if self.checkpoint.open.begun and self.checkpoint.open.id != text(turn, "id"):
            self._rewind(self.checkpoint.count, _TURN_GONE)
        start = self.chat_state.touched if self.checkpoint.open.begun and not has_ended else 0
        writer = TurnWriter(self.owner, self.checkpoint, turn, self._now, has_ended=has_ended, start=start)
        self._drafts += writer.write()

    def _check_length(self) -> None:
        if self.chat_state.has_overflowed and "long" not in self.checkpoint.open.notes:
            self.checkpoint.open.notes.append("long")
            self._gap(_LONG, self.checkpoint.count, self.checkpoint.count + 1)

    def _take(self) -> list[Draft]:
        drafts, self._drafts = self._drafts, []
        return drafts
