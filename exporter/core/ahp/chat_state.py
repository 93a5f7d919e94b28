"""A copy of the state of one conversation, updated by the actions that the host sends.

A finished turn whose events are recorded is reduced to its id (`forget`), so the copy is about as large as the active
turn. An action that cannot be applied returns `Applied.LOST`: the caller then requests the state again.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from exporter.core.ahp import tools
from exporter.core.ahp.values import Json, mapping, objects, text

TURN_CHARACTERS_MAX: Final = 32 << 20
PARTS_MAX: Final = 20_000
TURNS_MAX: Final = 4096
PENDING_MAX: Final = 256
TEXT_ACTIONS: Final = {"chat/delta": "markdown", "chat/reasoning": "reasoning"}
"""The actions that append to a text, and the kind of part that each changes."""
_ENDS: Final = {"turnComplete": "complete", "turnCancelled": "cancelled", "error": "error"}


class Applied(Enum):
    """The effect of an action on the state."""

    NOTHING = "nothing"
    TEXT = "text"  # a text grew; it is not complete
    CHANGED = "changed"
    LOST = "lost"


class ChatState:
    """The state of one conversation. `base` is the number of turns before the first one held.

    `touched` is the index of the first part of the active turn that changed or ended since the caller last set it.
    """

    def __init__(self) -> None:
        self.base = 0
        self.touched = 0
        self.has_overflowed = False
        self._state: Json = {"turns": []}
        self._size = 0
        self._open: tuple[str, str, Json, list[str]] | None = None  # turn id, part id, the part, the pieces added

    def replace(self, state: Json) -> None:
        """Replace the state by the host's."""
        self._open, self.touched = None, 0
        self._state = {**state, "turns": objects(state, "turns")}
        active = state.get("activeTurn")
        self._state["activeTurn"] = (
            {**active, "responseParts": objects(active, "responseParts")} if isinstance(active, dict) else None
        )
        self._size = sum(len(text(part, "content")) for part in objects(self._state["activeTurn"], "responseParts"))
        self.base = 0
        self.has_overflowed = False

    @property
    def state(self) -> Json:
        """Return the whole state; the caller must not change it."""
        self._settle()
        return self._state

    @property
    def turns(self) -> list[Json]:
        """Return the held finished turns, oldest first."""
        turns: list[Json] = self._state["turns"]
        return turns

    @property
    def active(self) -> Json | None:
        """Return the active turn."""
        self._settle()
        return self._state.get("activeTurn") or None

    @property
    def parts(self) -> list[Json]:
        """Return the parts of the active turn; its last text may lack the latest additions."""
        active: Json | None = self._state.get("activeTurn")
        parts: list[Json] = active["responseParts"] if active else []
        return parts

    def prepend(self, turns: list[Json]) -> int:
        """Insert older turns; return how many of them are new."""
        held = {text(turn, "id") for turn in self.turns}
        older = [turn for turn in turns if text(turn, "id") not in held]
        self._state["turns"] = [*older, *self.turns]
        return len(older)

    def forget(self, index: int) -> None:
        """Reduce a finished turn to its id."""
        self.turns[index] = {"id": text(self.turns[index], "id")}

    def trim(self) -> None:
        """Drop the oldest turns if there are many and all of them are reduced to ids."""
        surplus = len(self.turns) - TURNS_MAX // 2
        if len(self.turns) > TURNS_MAX and all(len(turn) == 1 for turn in self.turns[:surplus]):
            del self.turns[:surplus]
            self.base += surplus

    def apply(self, action: Json) -> Applied:
        """Apply an action. An action for another turn, or for a tool call in another status, has no effect."""
        type = text(action, "type")
        if type in TEXT_ACTIONS:
            return self._add_text(action, TEXT_ACTIONS[type])
        kind = type.removeprefix("chat/")
        self._settle()
        if kind.startswith("toolCall") and kind != "toolCallStart":
            return self._change_tool(kind, action)
        if kind in _ENDS:
            return self._end_turn(_ENDS[kind], action)
        method = _METHODS.get(kind)
        return method(self, action) if method else Applied.NOTHING

    def _add_text(self, action: Json, kind: str) -> Applied:
        turn, part, added = text(action, "turnId"), text(action, "partId"), text(action, "content")
        if self._open is None or self._open[0] != turn or self._open[1] != part:
            self._settle()
            found = self._find(turn, part)
            if found is None:
                return Applied.NOTHING
            self._open = (turn, part, found, [])
        if self._open[2].get("kind") != kind:
            return Applied.NOTHING
        if self._size + len(added) > TURN_CHARACTERS_MAX:
            self.has_overflowed = True
            return Applied.NOTHING
        self._size += len(added)
        self._open[3].append(added)
        return Applied.TEXT

    def _settle(self) -> None:
        if self._open is not None:
            _, _, part, added = self._open
            if added:
                part["content"] = text(part, "content") + "".join(added)
            self._open = None

    def _find(self, turn: str, part: str) -> Json | None:
        if not self._is_active(turn):
            return None
        for index, each in enumerate(self.parts):
            if each.get("id") == part and each.get("kind") != "toolCall":
                self.touched = min(self.touched, index)
                return each
        return None

    def _is_active(self, turn: str) -> bool:
        active = self._state.get("activeTurn")
        return bool(active) and text(active, "id") == turn

    def _add_part(self, action: Json, part: Json, size: int) -> Applied:
        if not self._is_active(text(action, "turnId")):
            return Applied.NOTHING
        if self._size + size > TURN_CHARACTERS_MAX or len(self.parts) >= PARTS_MAX:
            self.has_overflowed = True
            return Applied.NOTHING
        self._size += size
        self.touched = max(0, min(self.touched, len(self.parts) - 1))
        self.parts.append(part)
        return Applied.CHANGED

    def _change_tool(self, kind: str, action: Json) -> Applied:
        if not self._is_active(text(action, "turnId")):
            return Applied.NOTHING
        applied = Applied.NOTHING
        identity = action.get("toolCallId")
        for index, part in enumerate(self.parts):
            call = part.get("toolCall")
            if isinstance(call, dict) and call.get("toolCallId") == identity and part.get("kind") == "toolCall":
                changed = tools.change(call, kind, action)
                if changed is not call:
                    part["toolCall"] = changed
                    self.touched = min(self.touched, index)
                    # Input of a call that is not ready yet makes no durable event.
                    applied = Applied.TEXT if kind == "toolCallDelta" else Applied.CHANGED
        return applied

    def _end_turn(self, state: str, action: Json) -> Applied:
        if not self._is_active(text(action, "turnId")):
            return Applied.NOTHING
        turn = {**self._state["activeTurn"], "state": state}
        for part in self.parts:
            if part.get("kind") == "toolCall" and isinstance(part.get("toolCall"), dict):
                part["toolCall"] = tools.skip(part["toolCall"])
        for key in ("duration", "error"):
            if action.get(key) is not None:
                turn[key] = action[key]
        self.turns.append(turn)
        self._state["activeTurn"] = None
        self._size = self.touched = 0
        return Applied.CHANGED

    def _on_turn_started(self, action: Json) -> Applied:
        turn = {"id": text(action, "turnId"), "message": mapping(action, "message"), "responseParts": []}
        for key in ("startedAt", "systemInitiatedLabel"):
            if action.get(key) is not None:
                turn[key] = action[key]
        self._state["activeTurn"] = turn
        self._size = self.touched = 0
        self.has_overflowed = False
        queued = action.get("queuedMessageId")
        if queued:
            if mapping(self._state, "steeringMessage").get("id") == queued:
                self._state.pop("steeringMessage", None)
            self._keep_queued([each for each in objects(self._state, "queuedMessages") if each.get("id") != queued])
        return Applied.CHANGED

    def _on_response_part(self, action: Json) -> Applied:
        part = mapping(action, "part")
        return self._add_part(action, part, len(text(part, "content"))) if part else Applied.NOTHING

    def _on_tool_call_start(self, action: Json) -> Applied:
        return self._add_part(action, {"kind": "toolCall", "toolCall": tools.start(action)}, 0)

    def _on_usage(self, action: Json) -> Applied:
        if not self._is_active(text(action, "turnId")):
            return Applied.NOTHING
        self._state["activeTurn"]["usage"] = action.get("usage")
        return Applied.TEXT

    def _on_turn_resume(self, action: Json) -> Applied:
        return Applied.LOST

    def _on_truncated(self, action: Json) -> Applied:
        until = action.get("turnId")
        if until is None:
            self._state.pop("turnsNextCursor", None)
            self.base, kept = 0, 0
        else:
            indices = [index for index, turn in enumerate(self.turns) if turn.get("id") == until]
            if not indices:
                return Applied.LOST if self.base else Applied.NOTHING
            kept = indices[0] + 1
        del self.turns[kept:]
        self._state["activeTurn"] = None
        return Applied.CHANGED

    def _on_turns_loaded(self, action: Json) -> Applied:
        self.prepend(objects(action, "turns"))
        self._state["turnsNextCursor"] = action.get("turnsNextCursor")
        return Applied.CHANGED

    def _on_pending_message_set(self, action: Json) -> Applied:
        entry = {"id": action.get("id"), "message": action.get("message") or action.get("userMessage")}
        if action.get("kind") == "steering":
            self._state["steeringMessage"] = entry
            return Applied.TEXT
        queued = objects(self._state, "queuedMessages")
        known = [index for index, each in enumerate(queued) if each.get("id") == entry["id"]]
        if known:
            queued[known[0]] = entry
        elif len(queued) < PENDING_MAX:
            queued.append(entry)
        self._keep_queued(queued)
        return Applied.TEXT

    def _on_pending_message_removed(self, action: Json) -> Applied:
        if action.get("kind") == "steering":
            if mapping(self._state, "steeringMessage").get("id") == action.get("id"):
                self._state.pop("steeringMessage", None)
            return Applied.TEXT
        self._keep_queued(
            [each for each in objects(self._state, "queuedMessages") if each.get("id") != action.get("id")]
        )
        return Applied.TEXT

    def _on_queued_messages_reordered(self, action: Json) -> Applied:
        queued = objects(self._state, "queuedMessages")
        order: Any = action.get("order")
        places = {id: place for place, id in reversed(list(enumerate(order)))} if _are_names(order) else {}
        last = len(places)
        self._keep_queued(sorted(queued, key=lambda each: places.get(text(each, "id"), last)))
        return Applied.TEXT

    def _keep_queued(self, queued: list[Json]) -> None:
        if queued:
            self._state["queuedMessages"] = queued
        else:
            self._state.pop("queuedMessages", None)


def _are_names(order: Any) -> bool:
    return isinstance(order, list) and all(isinstance(each, str) for each in order)


_METHODS: Final[dict[str, Callable[[ChatState, Json], Applied]]] = {
    "turnStarted": ChatState._on_turn_started,
    "responsePart": ChatState._on_response_part,
    "toolCallStart": ChatState._on_tool_call_start,
    "usage": ChatState._on_usage,
    "turnResume": ChatState._on_turn_resume,
    "truncated": ChatState._on_truncated,
    "turnsLoaded": ChatState._on_turns_loaded,
    "pendingMessageSet": ChatState._on_pending_message_set,
    "pendingMessageRemoved": ChatState._on_pending_message_removed,
    "queuedMessagesReordered": ChatState._on_queued_messages_reordered,
}
