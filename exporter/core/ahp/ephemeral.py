"""Ephemeral events of a conversation and of a session: shown live, never stored."""

from typing import Final

from exporter.core.ahp.chat import Chat
from exporter.core.ahp.chat_state import PENDING, TEXT_ACTIONS, Applied
from exporter.core.ahp.drafts import Draft, id_of, moment
from exporter.core.ahp.turn import text_id
from exporter.core.ahp.values import Json, mapping, objects, text

_IDLE: Final = 1
_ACTIVITY: Final = 31
_WITHOUT_EFFECT: Final = ("chat/activityChanged", "chat/inputRequested", "chat/inputCompleted")
"""The actions that give events although they do not change the state."""


class TextBatch:
    """Consecutive pieces of one text, sent as one event."""

    def __init__(self, chat: Chat, action: Json, seq: int, now: float) -> None:
        self._chat = chat
        self._kind = text(action, "type")
        self._part = text(action, "partId")
        self._seq, self._now = seq, now
        self._identity = text_id(
            chat.owner, chat.checkpoint, TEXT_ACTIONS[self._kind]
        )  # computed now: it changes when the text is recorded
        self._pieces = [text(action, "content")]

    def add(self, chat: Chat, action: Json) -> bool:
        """Add a piece; return False if it belongs to another text."""
        is_same = chat is self._chat and action.get("type") == self._kind and action.get("partId") == self._part
        if is_same:
            self._pieces.append(text(action, "content"))
        return is_same

    def draft(self) -> Draft:
        """Return the event with all pieces."""
        shown = [_delta(TEXT_ACTIONS[self._kind], self._identity, "".join(self._pieces))]
        owner = self._chat.owner
        return _drafts(owner.chat, shown, self._seq, self._now, owner.agent)[0]


def of_chat(chat: Chat, action: Json, applied: Applied, seq: int, now: float) -> list[Draft]:
    """Return the events of an action that was applied."""
    kind = text(action, "type")
    if applied is Applied.NOTHING and kind not in _WITHOUT_EFFECT:
        return []
    shown: list[tuple[str, Json]] = []
    if kind == "chat/responsePart":
        part = mapping(action, "part")
        written = text(part, "kind")
        identity = text_id(chat.owner, chat.checkpoint, written)
        if written == "markdown":
            shown.append(("assistant.message_start", {"messageId": identity}))
        if written in TEXT_ACTIONS.values() and text(part, "content"):
            shown.append(_delta(written, identity, text(part, "content")))
    elif kind.startswith("chat/toolCall"):
        shown = _tool(chat, kind, action)
    elif kind == "chat/usage":
        shown = _usage(action)
    elif kind in ("chat/pendingMessageSet", "chat/pendingMessageRemoved", "chat/queuedMessagesReordered"):
        shown.append(("pending_messages.modified", {}))
    elif kind == "chat/activityChanged":
        shown.append(("assistant.intent", {"intent": text(action, "activity")}))
    elif kind == "chat/inputRequested":
        request = mapping(action, "request")
        shown.append(("elicitation.requested", {"requestId": text(request, "id"), "message": text(request, "message")}))
    elif kind == "chat/inputCompleted":
        data = {"requestId": text(action, "requestId"), "action": text(action, "response")}
        shown.append(("elicitation.completed", data))
    return _drafts(chat.owner.chat, shown, seq, now, chat.owner.agent)


def of_session(session: str, action: Json, default_chat: str, seq: int, now: float) -> list[Draft]:
    """Return the events of an action on a session."""
    kind = text(action, "type")
    shown: list[tuple[str, Json]] = []
    if kind == "session/titleChanged":
        shown.append(("session.title_changed", {"title": text(action, "title")}))
    elif kind == "session/activityChanged":
        shown.append(("assistant.intent", {"intent": text(action, "activity")}))
    elif kind == "session/serverToolsChanged":
        shown.append(("session.tools_updated", {"model": ""}))
    elif kind == "session/chatUpdated" and text(action, "chat") == default_chat:
        status = mapping(action, "changes").get("status")
        if isinstance(status, int) and status & _ACTIVITY == _IDLE:
            shown.append(("session.idle", {}))
    elif kind == "session/mcpServerStateChanged":
        shown.append(_server(text(action, "id") or text(action, "name"), mapping(action, "state")))
    elif kind == "session/customizationUpdated" and mapping(action, "customization").get("type") == "mcpServer":
        server = mapping(action, "customization")
        shown.append(_server(text(server, "name"), mapping(server, "state")))
    elif kind in ("session/customizationsChanged", "session/customizationUpdated"):
        shown.append(("session.custom_agents_updated", {"agents": [], "warnings": [], "errors": []}))
    return _drafts(session, shown, seq, now, None)


def model_call(holder: Json) -> Json:
    """Return what a usage report of a turn or an action says about the call of the model."""
    return mapping(mapping(mapping(holder, "usage"), "_meta"), "vscode.modelCall")


def _drafts(source: str, shown: list[tuple[str, Json]], seq: int, now: float, agent: str | None) -> list[Draft]:
    at = moment(now)
    return [
        Draft(id_of(source, "passing", seq, number), type, at, data, agent, is_ephemeral=True)
        for number, (type, data) in enumerate(shown)
    ]


def _delta(kind: str, identity: str, content: str) -> tuple[str, Json]:
    if kind == "reasoning":
        return "assistant.reasoning_delta", {"reasoningId": identity, "deltaContent": content}
    return "assistant.message_delta", {"messageId": identity, "deltaContent": content}


def _tool(chat: Chat, kind: str, action: Json) -> list[tuple[str, Json]]:
    identity = text(action, "toolCallId")
    if kind == "chat/toolCallDelta":
        added = text(action, "content")  # VS Code's host sends empty deltas
        return [("assistant.tool_call_delta", {"toolCallId": identity, "inputDelta": added})] if added else []
    if kind == "chat/toolCallConfirmed":
        approved = bool(action.get("approved"))
        result = {"kind": "approved" if approved else "denied-interactively-by-user"}
        return [("permission.completed", {"requestId": identity, "toolCallId": identity, "result": result})]
    if kind == "chat/toolCallReady":
        calls = [mapping(part, "toolCall") for part in chat.chat_state.parts if part.get("kind") == "toolCall"]
        for call in calls:
            if text(call, "toolCallId") == identity and text(call, "status") == PENDING:
                return [("permission.requested", {"requestId": identity, "permissionRequest": _permission(call)})]
    if kind == "chat/toolCallContentChanged":
        output = "".join(text(each, "text") for each in objects(action, "content") if each.get("type") == "text")
        if output:
            return [("tool.execution_partial_result", {"toolCallId": identity, "partialOutput": output})]
    return []


def _permission(call: Json) -> Json:
    kind = text(mapping(call, "_meta"), "toolKind") or text(call, "toolName")
    return {"kind": kind, "toolCallId": text(call, "toolCallId"), "fullCommandText": text(call, "toolInput")}


def _usage(action: Json) -> list[tuple[str, Json]]:
    usage = mapping(action, "usage")
    names = ("model", "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    data = {name: usage[name] for name in names if isinstance(usage.get(name), str | int | float)}
    call = model_call(action)
    if isinstance(call.get("apiCallId"), str):
        data["apiCallId"] = call["apiCallId"]
    if isinstance(call.get("durationMs"), int | float):
        data["duration"] = call["durationMs"]
    return [("assistant.usage", data)] if data else []


def _server(name: str, state: Json) -> tuple[str, Json]:
    return "session.mcp_server_status_changed", {"serverName": name, "status": text(state, "kind")}
