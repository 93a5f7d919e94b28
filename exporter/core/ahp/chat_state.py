"""A copy of the state of one conversation, updated by the actions that the host sends.

A finished turn whose events are recorded is reduced to its id (`forget`), so the copy is about as large as the active
turn. An action that cannot be applied returns `Applied.LOST`: the caller then requests the state again. Tool calls go
through the states of the host's own reducer; what no event is made of is left out.
"""

from enum import Enum
from typing import Any, Final

from exporter.core.ahp.values import Json, mapping, objects, text

TURN_CHARACTERS_MAX: Final = 32 << 20
PARTS_MAX: Final = 20_000
TURNS_MAX: Final = 4096
TEXT_ACTIONS: Final = {"chat/delta": "markdown", "chat/reasoning": "reasoning"}
"""The actions that append to a text, and the kind of part that each changes."""
_ENDS: Final = {"turnComplete": "complete", "turnCancelled": "cancelled", "error": "error"}
STREAMING: Final = "streaming"
PENDING: Final = "pending-confirmation"
RUNNING: Final = "running"
AUTH: Final = "auth-required"
PENDING_RESULT: Final = "pending-result-confirmation"
COMPLETED: Final = "completed"
CANCELLED: Final = "cancelled"
ENDED: Final = (COMPLETED, CANCELLED)
STARTED: Final = (RUNNING, AUTH, PENDING_RESULT, COMPLETED, CANCELLED)
_BASE: Final = ("toolCallId", "toolName", "displayName", "intention", "contributor", "toolClientId", "_meta")
_GIVEN: Final = ("invocationMessage", "toolInput")
_CALL: Final = (*_BASE, *_GIVEN, "confirmed")


def change_tool(call: Json, kind: str, action: Json) -> Json:
    """Return a tool call as an action leaves it; the same object when the action has no effect in this status."""
    status, meta = text(call, "status"), _pick(action, ("_meta",))
    match kind:
        case "toolCallDelta" if status == STREAMING:
            return {**call, **meta}
        case "toolCallReady" if status in (STREAMING, RUNNING, PENDING):
            return _ready(call, action)
        case "toolCallConfirmed" if status == PENDING:
            return _confirmed(call, action)
        case "toolCallComplete" if status in (RUNNING, PENDING, AUTH):
            return _complete(call, action)
        case "toolCallResultConfirmed" if status == PENDING_RESULT:
            return _result_confirmed(call, action)
        case "toolCallContentChanged" if status == RUNNING:
            return {**call, **meta, "content": action.get("content")}
        case "toolCallAuthRequired" if status == RUNNING and text(mapping(call, "contributor"), "kind") == "mcp":
            return {**call, **meta, "status": AUTH}
        case "toolCallAuthResolved" if status == AUTH:
            return {**call, **meta, "status": RUNNING}
    return call


def skip_tool(call: Json) -> Json:
    """Return a tool call as the end of its turn leaves it."""
    if text(call, "status") in ENDED:
        return call
    return {"invocationMessage": "", **_pick(call, (*_BASE, *_GIVEN)), "status": CANCELLED, "reason": "skipped"}


def start_tool(action: Json) -> Json:
    """Return the tool call that an action begins."""
    return {**_pick(action, _BASE), "status": STREAMING}


def _ready(call: Json, action: Json) -> Json:
    given = _pick(action, ("_meta", "intention", *_GIVEN))
    if action.get("confirmed"):
        return {**_pick(call, _BASE), **given, "confirmed": action["confirmed"], "status": RUNNING}
    before = _pick(call, ("toolInput",)) if text(call, "status") == PENDING else {}
    return {**_pick(call, _BASE), **before, **given, "status": PENDING}


def _confirmed(call: Json, action: Json) -> Json:
    kept = _pick(call, (*_BASE, *_GIVEN))
    if not action.get("approved"):
        return {**kept, **_pick(action, ("_meta", "reason", "reasonMessage")), "status": CANCELLED}
    if action.get("editedToolInput") is not None:
        kept["toolInput"] = action["editedToolInput"]
    return {**kept, **_pick(action, ("_meta", "confirmed")), "status": RUNNING}


def _complete(call: Json, action: Json) -> Json:
    status, result = text(call, "status"), mapping(action, "result")
    if status == AUTH and result.get("success"):
        return call
    kept = {**_pick(call, _CALL), **_pick(action, ("_meta",))}
    if status == PENDING:
        kept["confirmed"] = "not-needed"
    if status == AUTH:
        kept.update(_pick(call, ("content",)))
    must_be_seen = action.get("requiresResultConfirmation") and status != AUTH
    # What the tool answered may not say which state it is in.
    return {**kept, **result, "status": PENDING_RESULT if must_be_seen else COMPLETED, "toolCallId": call["toolCallId"]}


def _result_confirmed(call: Json, action: Json) -> Json:
    if action.get("approved"):
        return {
            **_pick(call, (*_CALL, "success", "content", "error")),
            **_pick(action, ("_meta",)),
            "status": COMPLETED,
        }
    kept = {**_pick(call, (*_BASE, *_GIVEN)), **_pick(action, ("_meta",))}
    return {**kept, "status": CANCELLED, "reason": "result-denied"}


def _pick(holder: Json, keys: tuple[str, ...]) -> Json:
    return {key: holder[key] for key in keys if holder.get(key) is not None}


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
        self.turns: list[Json] = []  # the held finished turns, oldest first
        self.cursor: Any = None  # of the page of turns before them
        self._active: Json | None = None
        self._size = 0
        self._open: tuple[str, str, Json, list[str]] | None = None  # turn id, part id, the part, the pieces added

    def replace(self, state: Json) -> None:
        """Replace the state by the host's."""
        self._open, self.base, self.touched, self.has_overflowed = None, 0, 0, False
        self.turns, self.cursor = objects(state, "turns"), state.get("turnsNextCursor")
        active = state.get("activeTurn")
        self._active = None
        if isinstance(active, dict):
            self._active = {**active, "responseParts": objects(active, "responseParts")}
        self._size = sum(len(text(part, "content")) for part in self.parts)

    @property
    def active(self) -> Json | None:
        """Return the active turn."""
        self._settle()
        return self._active

    @property
    def parts(self) -> list[Json]:
        """Return the parts of the active turn; its last text may lack the latest additions."""
        parts: list[Json] = self._active["responseParts"] if self._active else []
        return parts

    def prepend(self, turns: list[Json]) -> int:
        """Insert older turns; return how many of them are new."""
        held = {text(turn, "id") for turn in self.turns}
        older = [turn for turn in turns if text(turn, "id") not in held]
        self.turns = [*older, *self.turns]
        return len(older)

    def fold(self) -> None:
        """Join turns without a prompt with those before them: a restarted host gives the rest of some turns so."""
        folded: list[Json] = []
        for turn in self.turns:
            message = mapping(turn, "message") or mapping(turn, "userMessage")
            origin = text(mapping(message, "origin"), "kind", "user")
            if folded and "responseParts" in turn and not text(message, "text") and origin == "user":
                parts = [*objects(folded[-1], "responseParts"), *objects(turn, "responseParts")]
                folded[-1] = {**folded[-1], "responseParts": parts, "state": turn.get("state")}
            else:
                folded.append(turn)
        self.turns = folded

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
        match kind:
            case "turnStarted":
                return self._start_turn(action)
            case "turnResume":
                return Applied.LOST
            case "truncated":
                return self._truncate(action.get("turnId"))
            case "turnsLoaded":
                self.prepend(objects(action, "turns"))
                self.cursor = action.get("turnsNextCursor")
                return Applied.CHANGED
            case "pendingMessageSet" | "pendingMessageRemoved" | "queuedMessagesReordered":
                return Applied.TEXT
        if self._active is None or text(self._active, "id") != text(action, "turnId"):
            return Applied.NOTHING
        return self._change_turn(self._active, kind, action)

    def _change_turn(self, turn: Json, kind: str, action: Json) -> Applied:
        match kind:
            case "turnComplete" | "turnCancelled" | "error":
                return self._end_turn({**turn, "state": _ENDS[kind]}, action)
            case "responsePart":
                part = mapping(action, "part")
                return self._add_part(part, len(text(part, "content"))) if part else Applied.NOTHING
            case "toolCallStart":
                return self._add_part({"kind": "toolCall", "toolCall": start_tool(action)}, 0)
            case "usage":
                turn["usage"] = action.get("usage")
                return Applied.TEXT
        return self._change_tools(kind, action)

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
        parts = self.parts if text(self._active, "id") == turn else []
        for index, each in enumerate(parts):
            if each.get("id") == part and each.get("kind") != "toolCall":
                self.touched = min(self.touched, index)
                return each
        return None

    def _add_part(self, part: Json, size: int) -> Applied:
        if self._size + size > TURN_CHARACTERS_MAX or len(self.parts) >= PARTS_MAX:
            self.has_overflowed = True
            return Applied.NOTHING
        self._size += size
        self.touched = max(0, min(self.touched, len(self.parts) - 1))
        self.parts.append(part)
        return Applied.CHANGED

    def _change_tools(self, kind: str, action: Json) -> Applied:
        applied = Applied.NOTHING
        identity = action.get("toolCallId")
        for index, part in enumerate(self.parts):
            call = part.get("toolCall")
            if isinstance(call, dict) and call.get("toolCallId") == identity and part.get("kind") == "toolCall":
                changed = change_tool(call, kind, action)
                if changed is not call:
                    part["toolCall"] = changed
                    self.touched = min(self.touched, index)
                    # Input of a call that is not ready yet makes no durable event.
                    applied = Applied.TEXT if kind == "toolCallDelta" else Applied.CHANGED
        return applied

    def _end_turn(self, turn: Json, action: Json) -> Applied:
        for part in self.parts:
            if part.get("kind") == "toolCall" and isinstance(part.get("toolCall"), dict):
                part["toolCall"] = skip_tool(part["toolCall"])
        turn.update({key: action[key] for key in ("duration", "error") if action.get(key) is not None})
        if action.get("type") == "chat/error" and mapping(action, "part"):
            self.parts.append(mapping(action, "part"))
        self.turns.append(turn)
        self._active = None
        self._size = self.touched = 0
        return Applied.CHANGED

    def _start_turn(self, action: Json) -> Applied:
        turn = {"id": text(action, "turnId"), "message": mapping(action, "message"), "responseParts": []}
        turn.update({key: action[key] for key in ("startedAt", "systemInitiatedLabel") if action.get(key) is not None})
        self._active = turn
        self._size = self.touched = 0
        self.has_overflowed = False
        return Applied.CHANGED

    def _truncate(self, until: Any) -> Applied:
        if until is None:
            self.cursor, self.base, kept = None, 0, 0
        else:
            indices = [index for index, turn in enumerate(self.turns) if turn.get("id") == until]
            if not indices:
                return Applied.LOST if self.base else Applied.NOTHING
            kept = indices[0] + 1
        del self.turns[kept:]
        self._active = None
        return Applied.CHANGED
