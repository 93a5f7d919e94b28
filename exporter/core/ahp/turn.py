"""The durable events of a turn that are not recorded yet.

They are made from the state and never from an action, so live actions, a replay, a snapshot and fetched history all
give the same events. A text gives an event when its part is closed. A tool call gives one when its status becomes
running, and one when it has ended.
"""

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from exporter.core.ahp.chat_state import ENDED, STARTED
from exporter.core.ahp.checkpoint import Checkpoint, RecordedText, digest_of, prompt
from exporter.core.ahp.drafts import Draft, id_of, moment, seconds_of
from exporter.core.ahp.values import Json, display_text, mapping, objects, text
from exporter.core.events.envelope import REFUSALS

_STARTED, _ENDED = 1, 2
_TEXTS: Final = {"markdown": "assistant.message", "reasoning": "assistant.reasoning"}


@dataclass(slots=True)
class TurnOwner:
    """Which conversation a turn is of. `children` are the child chats of its session, by the tool call behind each."""

    chat: str
    agent: str | None = None  # the chat's own address if it is a child's
    parent: str | None = None  # the agent that started the child, None for the session itself
    session: str = ""
    call: str = ""  # the tool call that started the child
    title: str = ""
    children: dict[str, Json] = field(default_factory=dict)
    announced: set[str] = field(default_factory=set)


class TurnWriter:
    """Writes the events of one turn so far and advances the checkpoint.

    The parts before `start` are recorded already.
    """

    def __init__(
        self, owner: TurnOwner, checkpoint: Checkpoint, turn: Json, now: float, *, has_ended: bool, start: int = 0
    ) -> None:
        self._owner = owner
        self._checkpoint = checkpoint
        self._recorded = checkpoint.open
        self._turn = turn
        self._has_ended = has_ended
        self._start = start
        self._drafts: list[Draft] = []
        started = seconds_of(turn.get("startedAt"))
        lasted = seconds_of(turn.get("duration"))
        ended = started + lasted if started is not None and lasted is not None else None
        self._at = moment(now if started is None or not has_ended else started)
        self._started_at = moment(now if started is None else started)
        self._ended = moment(now if ended is None else ended)

    def write(self) -> list[Draft]:
        """Return the new events."""
        if not self._recorded.begun:
            self._begin()
        parts = objects(self._turn, "responseParts") if self._has_ended else self._turn["responseParts"]
        for index in range(self._start, len(parts)):
            part = parts[index]
            kind = text(part, "kind")
            if kind in _TEXTS:
                if self._has_ended or index < len(parts) - 1:
                    self._text(index, kind, text(part, "content"))
            elif kind == "toolCall":
                self._tool(mapping(part, "toolCall"))
            elif kind == "systemNotification":
                self._once(f"notification {index}", "system.notification", _notification(part.get("content")))
            elif kind == "error":
                self._once(f"error {index}", "session.error", _error(mapping(part, "error") or part))
        if self._has_ended:
            self._end(any(part.get("kind") == "error" for part in parts))
        return self._drafts

    def _begin(self) -> None:
        turn, owner = self._turn, self._owner
        message = mapping(turn, "message") or mapping(turn, "userMessage")
        asked, origin = prompt(turn), text(mapping(message, "origin"), "kind", "user")
        model = text(mapping(message, "model"), "id") or text(message, "model")
        if model and model != self._checkpoint.model:
            data: Json = {"previousModel": self._checkpoint.model or None, "newModel": model}
            self._add("model", model, "session.model_change", data, self._started_at)
            self._checkpoint.model = model
        if origin == "systemNotification":
            self._add("notification", asked, "system.notification", _notification(asked), self._started_at)
        else:
            source = origin if owner.agent is None else f"agent-{owner.parent or owner.session}"
            data = {"content": asked, "source": source, "attachments": objects(message, "attachments")}
            self._add("user", asked, "user.message", data, self._started_at)
        self._add("start", "", "assistant.turn_start", {"turnId": str(self._checkpoint.count)}, self._started_at)
        self._recorded.begun, self._recorded.id, self._recorded.prompt = True, text(turn, "id"), digest_of(asked)

    def _text(self, index: int, kind: str, content: str) -> None:
        piece = content[self._recorded.parts.get(index, 0) :]
        if not piece:
            return
        place, identity = self._recorded.count(kind), "messageId" if kind == "markdown" else "reasoningId"
        data: Json = {identity: text_id(self._owner, self._checkpoint, kind), "content": piece}
        if kind == "markdown":
            data["toolRequests"] = []
        self._add(f"{kind} {place}", digest_of(piece), _TEXTS[kind], data)
        self._recorded.parts[index] = len(content)
        self._recorded.pieces.append(RecordedText(kind, len(piece), digest_of(piece)))

    def _tool(self, call: Json) -> None:
        identity, status = text(call, "toolCallId"), text(call, "status")
        if status not in STARTED or not identity:
            return
        if identity not in self._recorded.tools:
            self._recorded.tools[identity] = _STARTED
            data = {"toolCallId": identity, "toolName": text(call, "toolName"), "arguments": _arguments(call)}
            self._add(f"tool start {identity}", "", "tool.execution_start", data)
        child = self._owner.children.get(identity) or _child_in(call)
        if child and identity not in self._owner.announced:
            self._owner.announced.add(identity)
            self._drafts.append(announce(self._owner, identity, child, call, self._at))
        if status in ENDED and self._recorded.tools[identity] < _ENDED:
            self._recorded.tools[identity] = _ENDED
            at = self._ended if self._has_ended else self._at
            self._add(f"tool complete {identity}", "", "tool.execution_complete", result_of(call), at)

    def _end(self, has_error_part: bool) -> None:
        state, resumed = text(self._turn, "state"), self._recorded.notes.count("resumed")
        error = mapping(self._turn, "error")
        if state == "cancelled":
            self._add("abort", resumed, "abort", {"reason": "user"}, self._ended)
        elif state == "error" and not has_error_part:
            self._add("error", resumed, "session.error", _error(error), self._ended)
        self._add("end", resumed, "assistant.turn_end", {"turnId": str(self._checkpoint.count)}, self._ended)
        owner = self._owner
        if owner.agent is not None and self._checkpoint.count == 0 and not resumed:
            name = text(owner.children.get(owner.call), "agentName") or "agent"
            data: Json = {"toolCallId": owner.call, "agentName": name, "agentDisplayName": owner.title or name}
            has_failed = state in ("cancelled", "error")
            if has_failed:
                data["error"] = text(error, "message") or state
            self._add("subagent end", "", "subagent.failed" if has_failed else "subagent.completed", data, self._ended)

    def _once(self, key: str, type: str, data: Json) -> None:
        if key not in self._recorded.notes:
            self._recorded.notes.append(key)
            self._add(key, digest_of(str(data)), type, data)

    def _add(self, kind: str, content: Any, type: str, data: Json, at: str = "") -> None:
        identity = id_of(self._owner.chat, self._checkpoint.count, self._checkpoint.rewinds, kind, content)
        self._drafts.append(Draft(identity, type, at or self._at, data, self._owner.agent))


def announce(owner: TurnOwner, identity: str, child: Json, call: Json, at: str) -> Draft:
    """Return the `subagent.started` event, as an event of the conversation that started the sub-agent."""
    content, meta = _child_in(call), mapping(call, "_meta")
    name = text(content, "agentName") or text(meta, "subagentAgentName") or "agent"
    title = text(content, "title") or text(child, "title") or name
    data: Json = {
        "toolCallId": identity,
        "agentName": name,
        "agentDisplayName": title,
        "agentDescription": text(content, "description") or text(meta, "subagentDescription") or text(child, "title"),
    }
    if owner.agent is not None:
        data["parentId"] = owner.agent
    owner.children.setdefault(identity, {"resource": text(child, "resource"), "title": title})["agentName"] = name
    return Draft(id_of(owner.session, "subagent", identity), "subagent.started", at, data, text(child, "resource"))


def result_of(call: Json) -> Json:
    """Return the data of a tool call's completion."""
    content = objects(call, "content")
    texts = [text(each, "text") for each in content if text(each, "type", "text") == "text" and "text" in each]
    success = call.get("success") is True and text(call, "status") == "completed"
    data: Json = {"toolCallId": text(call, "toolCallId"), "success": success}
    if texts or success:
        data["result"] = {"content": "\n".join(texts)}
    for each in content:
        code = mapping(each, "result").get("exitCode")
        if isinstance(code, int):
            data["shellExecution"] = {"exitCode": code}
    if not success:
        error = mapping(call, "error")
        reason = text(call, "reason") or "failure"
        message = text(error, "message") or display_text(call.get("reasonMessage")) or reason
        data["error"] = {"message": message, "code": text(error, "code") or reason}
    return data


def text_id(owner: TurnOwner, checkpoint: Checkpoint, kind: str) -> str:
    """Return the id of the next text of a kind, which its ephemeral events share."""
    return id_of(owner.chat, checkpoint.count, checkpoint.rewinds, "text", kind, checkpoint.open.count(kind))


def _child_in(call: Json) -> Json:
    """Return the content of a tool call that names a sub-agent's conversation, empty when there is none."""
    contents = objects(call, "content")
    return next((each for each in contents if each.get("type") == "subagent" and text(each, "resource")), {})


def _arguments(call: Json) -> Any:
    """Hosts send JSON or, for some tools, only the one argument that they show."""
    given = call.get("toolInput")
    if not isinstance(given, str):
        return {} if given is None else {"input": given}
    try:
        read = msgspec.json.decode(given.encode())
    except (*REFUSALS, UnicodeEncodeError):
        read = None
    return read if isinstance(read, dict) else {"input": given}


def _notification(content: Any) -> Json:
    return {"content": display_text(content), "kind": {"type": "unclassified"}}


def _error(error: Json) -> Json:
    data: Json = {"errorType": text(error, "errorType") or "unknown", "message": text(error, "message")}
    if text(error, "stack"):
        data["stack"] = text(error, "stack")
    return data
