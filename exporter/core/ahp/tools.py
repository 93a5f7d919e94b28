"""The states of a tool call, as the host's own reducer goes through them; what no event is made of is left out."""

from collections.abc import Callable
from typing import Final

from exporter.core.ahp.values import Json, mapping, text

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


def change(call: Json, kind: str, action: Json) -> Json:
    """Return a tool call as an action leaves it; the same object when the action has no effect on it."""
    statuses, apply = _CHANGES.get(kind, ((), None))
    return apply(call, action) if apply is not None and text(call, "status") in statuses else call


def skip(call: Json) -> Json:
    """Return a tool call as the end of its turn leaves it."""
    if text(call, "status") in ENDED:
        return call
    return {"invocationMessage": "", **_pick(call, (*_BASE, *_GIVEN)), "status": CANCELLED, "reason": "skipped"}


def start(action: Json) -> Json:
    """Return the tool call that an action begins."""
    return {**_pick(action, _BASE), "status": STREAMING}


def _delta(call: Json, action: Json) -> Json:
    return {**call, **_pick(action, ("_meta",))}


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


def _content_changed(call: Json, action: Json) -> Json:
    return {**call, **_pick(action, ("_meta",)), "content": action.get("content")}


def _auth_required(call: Json, action: Json) -> Json:
    if text(mapping(call, "contributor"), "kind") != "mcp":
        return call
    return {**call, **_pick(action, ("_meta",)), "status": AUTH}


def _auth_resolved(call: Json, action: Json) -> Json:
    return {**call, **_pick(action, ("_meta",)), "status": RUNNING}


def _pick(holder: Json, keys: tuple[str, ...]) -> Json:
    return {key: holder[key] for key in keys if holder.get(key) is not None}


# The statuses in which an action has an effect, and the effect.
_CHANGES: Final[dict[str, tuple[tuple[str, ...], Callable[[Json, Json], Json] | None]]] = {
    "toolCallDelta": ((STREAMING,), _delta),
    "toolCallReady": ((STREAMING, RUNNING, PENDING), _ready),
    "toolCallConfirmed": ((PENDING,), _confirmed),
    "toolCallComplete": ((RUNNING, PENDING, AUTH), _complete),
    "toolCallResultConfirmed": ((PENDING_RESULT,), _result_confirmed),
    "toolCallContentChanged": ((RUNNING,), _content_changed),
    "toolCallAuthRequired": ((RUNNING,), _auth_required),
    "toolCallAuthResolved": ((AUTH,), _auth_resolved),
}
