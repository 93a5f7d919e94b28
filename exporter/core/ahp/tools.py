"""The states of a tool call, as the host's own reducer goes through them."""

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
_CALL: Final = ("invocationMessage", "toolInput", "confirmed", "selectedOption")
_ASKED: Final = ("toolInput", "confirmationTitle", "riskAssessment", "edits", "editable", "options")


def change(call: Json, kind: str, action: Json) -> Json:
    """Return a tool call as an action leaves it; the same object when the action has no effect on it."""
    statuses, apply = _CHANGES.get(kind, ((), None))
    return apply(call, action) if apply is not None and text(call, "status") in statuses else call


def skip(call: Json) -> Json:
    """Return a tool call as the end of its turn leaves it."""
    if text(call, "status") in ENDED:
        return call
    kept = _pick(call, (*_BASE, "invocationMessage", "toolInput"))
    kept.setdefault("invocationMessage", "")
    return {**kept, "status": CANCELLED, "reason": "skipped"}


def start(action: Json) -> Json:
    """Return the tool call that an action begins."""
    return {**_pick(action, _BASE), "status": STREAMING}


def _delta(call: Json, action: Json) -> Json:
    changed = {**call, **_meta(action), "partialInput": text(call, "partialInput") + text(action, "content")}
    if action.get("invocationMessage") is not None:
        changed["invocationMessage"] = action["invocationMessage"]
    return changed


def _ready(call: Json, action: Json) -> Json:
    base = {**_pick(call, _BASE), **_meta(action), **_pick(action, ("intention",))}
    if action.get("confirmed"):
        return {**base, **_pick(action, ("invocationMessage", "toolInput", "confirmed")), "status": RUNNING}
    before = _pick(call, _ASKED) if text(call, "status") == PENDING else {}
    return {**base, **before, **_pick(action, ("invocationMessage", *_ASKED)), "status": PENDING}


def _confirmed(call: Json, action: Json) -> Json:
    kept = {**_pick(call, (*_BASE, "invocationMessage", "toolInput")), **_meta(action), **_option(call, action)}
    if action.get("approved"):
        if action.get("editedToolInput") is not None:
            kept["toolInput"] = action["editedToolInput"]
        return {**kept, **_pick(action, ("confirmed",)), "status": RUNNING}
    return {**kept, **_pick(action, ("reason", "reasonMessage", "userSuggestion")), "status": CANCELLED}


def _complete(call: Json, action: Json) -> Json:
    status, result = text(call, "status"), mapping(action, "result")
    if status == AUTH and result.get("success"):
        return call
    kept = {**_pick(call, (*_BASE, *_CALL)), **_meta(action)}
    if status == PENDING:
        kept.pop("selectedOption", None)
        kept["confirmed"] = "not-needed"
    if status == AUTH:
        kept.update(_pick(call, ("content",)))
    must_be_seen = action.get("requiresResultConfirmation") and status != AUTH
    # What the tool answered may not say which state it is in.
    return {**kept, **result, "status": PENDING_RESULT if must_be_seen else COMPLETED, "toolCallId": call["toolCallId"]}


def _result_confirmed(call: Json, action: Json) -> Json:
    if action.get("approved"):
        answer = _pick(call, ("success", "pastTenseMessage", "content", "structuredContent", "error"))
        return {**_pick(call, (*_BASE, *_CALL)), **_meta(action), **answer, "status": COMPLETED}
    kept = _pick(call, (*_BASE, "invocationMessage", "toolInput", "selectedOption"))
    return {**kept, **_meta(action), "status": CANCELLED, "reason": "result-denied"}


def _option(call: Json, action: Json) -> Json:
    wanted, options = action.get("selectedOptionId"), call.get("options")
    for option in options if wanted and isinstance(options, list) else []:
        if isinstance(option, dict) and option.get("id") == wanted:
            return {"selectedOption": option}
    return {}


def _meta(action: Json) -> Json:
    return {"_meta": action["_meta"]} if action.get("_meta") is not None else {}


def _pick(holder: Json, keys: tuple[str, ...]) -> Json:
    return {key: holder[key] for key in keys if holder.get(key) is not None}


def _content_changed(call: Json, action: Json) -> Json:
    return {**call, **_meta(action), "content": action.get("content")}


def _auth_required(call: Json, action: Json) -> Json:
    if text(mapping(call, "contributor"), "kind") != "mcp":
        return call
    return {**call, **_meta(action), "status": AUTH, "auth": action.get("auth")}


def _auth_resolved(call: Json, action: Json) -> Json:
    return {key: value for key, value in {**call, **_meta(action), "status": RUNNING}.items() if key != "auth"}


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
