"""One conversation: a copy of its state, its checkpoint, and the events that follow from changes of the state."""

from enum import Enum
from typing import Any, Final

from exporter.core.ahp.chat_state import TEXT_ACTIONS, TURN_CHARACTERS_MAX, Applied, ChatState
from exporter.core.ahp.checkpoint import (
    TEXT_KINDS,
    Checkpoint,
    FinishedTurn,
    OpenTurn,
    call_digest,
    call_digests,
    continues,
    digest_of,
    is_same,
    joined,
    renumber,
    summary,
)
from exporter.core.ahp.drafts import Draft, id_of, moment
from exporter.core.ahp.turn import TurnOwner, TurnWriter, agent_end, model_change, model_of
from exporter.core.ahp.values import Json, mapping, objects, text

PAGES_MAX: Final = 400
TURNS_MAX: Final = 20_000
GAP: Final = "exporter.gap"
_SAME_TURNS: Final = "the host gives the same turns again"
_TURN_GONE: Final = "a turn that was running is gone"
_TURNS_GONE: Final = "turns are gone"
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
        if page["turns"] and not added and page.get("hasMore"):
            # A host that does not know the turn named in the request returns its newest turns. If there are no more,
            # all are held: a turn that ended while none was held comes in an action and in the page.
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
        self.address = owner.chat  # where the host has it now; restarted hosts move the chats of sub-agents
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
        self.chat_state.replace(self._concluded(state))
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
        is_unread = self.owner.call in self.owner.announced and self.checkpoint.ordinal == 0
        if self.checkpoint.open.begun:
            self._rewind(self.checkpoint.count, reason)
        elif is_unread:
            self._gap(reason, 0, 1)
        return [*self._take(), *(self._without_turns(now) if is_unread else ())]

    def _without_turns(self, now: float) -> list[Draft]:
        """Return the event that a sub-agent runs no more of which the host has no turn."""
        self.checkpoint.lost += 1
        return [agent_end(self.owner, "", moment(now))]

    def conclude(self, now: float, *, has_holder_ended: bool) -> list[Draft]:
        """Return the events that end a sub-agent whose work is done; hosts forget to end the turns of some.

        `has_holder_ended` says that the turn in which it was started has ended.
        """
        active, outcome = self.chat_state.active, text(self.owner.started_by, "outcome")
        if self.checkpoint.is_agent_open and (outcome or has_holder_ended):
            self.checkpoint.is_agent_open = False
            return [agent_end(self.owner, "", moment(now))]
        if self.history is not None or not outcome or not has_holder_ended:
            return []
        if active is None:  # its conversation is empty, because the host did not keep it
            is_known = self.checkpoint.ordinal or self.owner.call not in self.owner.announced
            return [] if is_known else self._without_turns(now)
        if self.owner.chat.startswith("ahp-chat:"):
            return []  # newer hosts end it themselves, and say how
        return self.apply({"type": "chat/turnComplete", "turnId": text(active, "id")}, now)[1]

    def write_turns(self, now: float) -> list[Draft]:
        """Return the events that are new since the last call."""
        self.chat_state.touched = 0
        return self._write_turns(now) if self.is_known and self.history is None else []

    def _concluded(self, state: Json) -> Json:
        """Return a state in which a turn that `conclude` has ended is not active."""
        active, finished = mapping(state, "activeTurn"), self.checkpoint.finished
        if not active or not finished or finished[-1].id != active.get("id") or not self.owner.started_by:
            return state
        return {**state, "turns": [*objects(state, "turns"), {**active, "state": "complete"}], "activeTurn": None}

    def _step(self, step: HistoryStep, now: float) -> list[Draft]:
        self.wants_page = step is HistoryStep.ASK
        if step in (HistoryStep.ASK, HistoryStep.WAIT):
            return []
        assert self.history is not None
        self._now = now
        problem, self.history, self.wants_page = self.history.problem, None, False
        if self.owner.agent is None:
            self.chat_state.fold()
        self.chat_state.base = self.checkpoint.count if self._is_unread() else self._anchor() or 0
        if problem and self._anchor() is None:
            self.chat_state.base = self._anchor_by_content()
            self._gap(problem, self.chat_state.base, self.chat_state.base)
        return self._reconcile(now)

    def _is_unread(self) -> bool:
        """Tell whether the host could not read what it gave before: nobody removes turns from a sub-agent's chat.

        VS Code's classic host gives an empty one when it is asked before it can read Copilot's log.
        """
        is_empty = not self.chat_state.turns and self.chat_state.active is None
        return is_empty and self.owner.agent is not None and not self.checkpoint.open.begun

    def _reconcile(self, now: float) -> list[Draft]:
        """Compare the history with the checkpoint and return the new events."""
        checkpoint, turns = self.checkpoint, self.chat_state.turns
        index = max(0, self.chat_state.base - checkpoint.first)  # in `finished`
        is_restored = False
        while index < len(checkpoint.finished):
            place = checkpoint.first + index
            held = place - self.chat_state.base
            if held < len(turns) and is_same(checkpoint.finished[index], turns[held]):
                is_restored = is_restored or checkpoint.finished[index].id != text(turns[held], "id")
                self._supplement(index, turns[held])
                index += 1
            elif not self._skip_lost(index, turns[held] if held < len(turns) else self.chat_state.active):
                break
        self._supplement_models(is_restored=is_restored)
        self._reopen()
        for index in range(min(len(turns), checkpoint.count - self.chat_state.base)):
            self.chat_state.forget(index)
        return self._write_turns(now)

    def _skip_lost(self, index: int, turn: Json | None) -> bool:
        """A recorded turn is not where it was, but perhaps `turn`. Return whether those behind it are."""
        checkpoint, finished = self.checkpoint, self.checkpoint.finished
        is_active = turn is not None and turn is self.chat_state.active
        if is_active and index == len(finished) - 1 and turn and finished[index].id == turn.get("id"):
            checkpoint.resume()
            return False
        if finished[index].calls == [] and not finished[index].pieces:
            checkpoint.drop(
                index, 1
            )  # hosts do not keep a turn in which nothing was done, and nothing of it is missing
            return True
        behind = next((n for n in range(index + 1, len(finished)) if turn and is_same(finished[n], turn)), 0)
        if not behind and turn and checkpoint.open.begun and continues(checkpoint.open, turn):
            behind = len(finished)
        if not behind or (is_active and behind < len(finished)):
            is_other = turn is not None and not is_active
            self._rewind(checkpoint.first + index, "the history is another than it was" if is_other else _TURNS_GONE)
            return False
        start = checkpoint.first + index + checkpoint.lost
        self._gap(_TURNS_GONE, start, start + behind - index)
        checkpoint.drop(index, behind - index)
        return True

    def _supplement(self, index: int, turn: Json) -> None:
        """Write what a recorded turn has now and had not then: hosts complete some turns only when they restart."""
        checkpoint = self.checkpoint
        recorded = checkpoint.finished[index]
        if recorded.calls is None or recorded.id == text(turn, "id"):
            return
        opened = OpenTurn(text(turn, "id"), recorded.prompt, True, {}, list(recorded.pieces), key=recorded.key)
        is_longer = (
            renumber(opened, turn)
            and not self._has_moved(index, turn)
            and any(
                len(text(part, "content")) > opened.parts.get(number, 0)
                for number, part in enumerate(objects(turn, "responseParts"))
                if part.get("kind") in TEXT_KINDS
            )
        )
        if is_longer or not call_digests(turn) <= set(recorded.calls):
            if not is_longer:
                opened.parts = dict.fromkeys(range(len(objects(turn, "responseParts"))), TURN_CHARACTERS_MAX)
            settled = {call for each in checkpoint.finished for call in each.calls or ()}
            settled |= {call_digest(call) for call in checkpoint.open.tools}
            before, checkpoint.open = checkpoint.open, opened
            writer = TurnWriter(self.owner, checkpoint, turn, self._now, has_ended=True, settled=settled)
            self._drafts += writer.write()
            checkpoint.open = before
        now = summary(turn, opened)
        now.calls = sorted({*(now.calls or ()), *recorded.calls})
        now.prompt = now.prompt or recorded.prompt
        checkpoint.finished[index] = now

    def _supplement_models(self, *, is_restored: bool) -> None:
        """Write the models of recorded turns that the host names only now; those told before have the same ids.

        The next turn is compared with the last of these models, not with that of a turn that the host has lost.
        """
        checkpoint, state = self.checkpoint, self.chat_state
        if self.owner.agent is not None or state.base or checkpoint.first:
            return
        recorded: list[FinishedTurn | OpenTurn] = [*checkpoint.finished]
        turns = [*state.turns, *([state.active] if state.active is not None else [])]
        if checkpoint.open.begun and len(turns) > len(recorded) and continues(checkpoint.open, turns[len(recorded)]):
            is_restored = is_restored or checkpoint.open.id != text(turns[len(recorded)], "id")
            recorded.append(checkpoint.open)
        model = ""
        for each, turn in zip(recorded, turns, strict=False):
            now = model_of(turn)
            if is_restored and now and now != model and each.key:
                self._drafts.append(model_change(self.owner, each.key, model, now, moment(self._now)))
            model = now or model
        checkpoint.model = model

    def _has_moved(self, index: int, turn: Json) -> bool:
        """Tell whether a text was recorded in the turn behind it: after an error VS Code ends a turn too early."""
        held = self.checkpoint.first + index + 1 - self.chat_state.base
        behind = self.checkpoint.finished[index + 1 : index + 2]
        if not behind or held >= len(self.chat_state.turns):
            return False
        both = joined(turn, "markdown") + joined(self.chat_state.turns[held], "markdown")
        return digest_of(both.strip()) == behind[0].text

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
            place = self.checkpoint.ordinal
            self._gap("the text of a turn is another than it was", place, place + 1)
            parts = turn.get("responseParts")
            parts = parts if isinstance(parts, list) else []
            recorded.parts = {n: len(text(p, "content")) for n, p in enumerate(parts) if isinstance(p, dict)}

    def _rewind(self, place: int, reason: str) -> None:
        lost = self.checkpoint.lost
        self._gap(reason, place + lost, self.checkpoint.ordinal + bool(self.checkpoint.open.begun))
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
            self._gap(_LONG, self.checkpoint.ordinal, self.checkpoint.ordinal + 1)

    def _take(self) -> list[Draft]:
        drafts, self._drafts = self._drafts, []
        return drafts
