"""The durable events of a turn that are not recorded yet.

They are made from the state and never from an action, so live actions, a replay, a snapshot and fetched history all
give the same events. A text gives an event when its part is closed. A tool call gives one when its status becomes
running, and one when it has ended. An id is made from what a host keeps over a restart: the key of the turn, the id of
a tool call, the number and the content of a text.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from exporter.core.ahp.chat_state import CANCELLED, COMPLETED, ENDED, STARTED
from exporter.core.ahp.checkpoint import Checkpoint, RecordedText, call_digest, digest_of, prompt
from exporter.core.ahp.drafts import Draft, id_of, moment, seconds_of
from exporter.core.ahp.values import Json, display_text, mapping, objects, text
from exporter.core.events.envelope import REFUSALS

_STARTED, _ENDED = 1, 2
_NOTE: Final = "systemNotification"
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

    @property
    def started_by(self) -> Json:
        """Return what is known of the tool call that started the child, see `about_child`."""
        return self.children.get(self.call, {})

    @property
    def is_called(self) -> bool:
        """Tell whether the tool call that started the child was seen, which names it."""
        return "agentName" in self.started_by


class TurnWriter:
    """Writes the events of one turn so far and advances the checkpoint.

    The parts before `start` are recorded already. With `settled`, the turn was recorded to its end: only texts and tool
    calls are written that the host did not have then; `settled` are the calls that are recorded in any turn.
    """

    def __init__(
        self,
        owner: TurnOwner,
        checkpoint: Checkpoint,
        turn: Json,
        now: float,
        *,
        has_ended: bool,
        start: int = 0,
        settled: set[str] | None = None,
    ) -> None:
        self._owner = owner
        self._checkpoint = checkpoint
        self._turn = turn
        self._has_ended = has_ended
        self._start = start
        self._settled = settled
        self._drafts: list[Draft] = []
        started = seconds_of(turn.get("startedAt"))
        lasted = seconds_of(turn.get("duration"))
        ended = started + lasted if started is not None and lasted is not None else None
        self._at = moment(now if started is None or not has_ended else started)
        self._started_at = moment(now if started is None else started)
        self._ended = moment(now if ended is None else ended)

    def write(self) -> list[Draft]:
        """Return the new events."""
        if not self._checkpoint.open.begun:
            self._begin()
        parts = objects(self._turn, "responseParts") if self._has_ended else self._turn["responseParts"]
        start = self._start
        while 0 < start < len(parts) and _is_of_text(parts[start - 1]) and _is_of_text(parts[start]):
            start -= 1
        index = start
        while index < len(parts):
            kind, end = text(parts[index], "kind"), index + 1
            if kind in _TEXTS:  # hosts split a text differently after a restart, also where a notification came
                while end < len(parts) and text(parts[end], "kind") in (kind, _NOTE):
                    end += 1
                if self._has_ended or end < len(parts):
                    self._text(kind, parts, [n for n in range(index, end) if text(parts[n], "kind") == kind])
            elif kind == "toolCall":
                self._tool(mapping(parts[index], "toolCall"))
            index = end
        if self._settled is None:
            self._notes(_NOTE, parts, lambda part: _notification(part.get("content")))
            if self._has_ended:
                self._end(parts)
        return self._drafts

    def _begin(self) -> None:
        turn, owner = self._turn, self._owner
        message = mapping(turn, "message") or mapping(turn, "userMessage")
        self._checkpoint.begin(turn, is_child=owner.agent is not None)
        asked, origin = prompt(turn), text(mapping(message, "origin"), "kind", "user")
        model = model_of(turn)
        if model and model != self._checkpoint.model and owner.agent is None:  # of a child only some states name it
            key = self._checkpoint.open.key
            self._drafts.append(model_change(owner, key, self._checkpoint.model, model, self._started_at))
            self._checkpoint.model = model
        if origin == "systemNotification":
            self._add("notification", "", "system.notification", _notification(asked), self._started_at)
        else:
            source = origin if owner.agent is None else f"agent-{owner.parent or owner.session}"
            if owner.agent is not None and self._checkpoint.ordinal == 0:
                asked = asked or text(owner.started_by, "prompt")
            data = {"content": asked, "source": source, "attachments": objects(message, "attachments")}
            self._add("user", "", "user.message", data, self._started_at)
        self._add("start", "", "assistant.turn_start", {"turnId": str(self._checkpoint.ordinal)}, self._started_at)

    def _text(self, kind: str, parts: list[Json], run: list[int]) -> None:
        recorded = self._checkpoint.open
        piece = "".join(text(parts[index], "content")[recorded.parts.get(index, 0) :] for index in run)
        if not piece:
            return
        place, identity = recorded.count(kind), "messageId" if kind == "markdown" else "reasoningId"
        data: Json = {identity: text_id(self._owner, self._checkpoint, kind), "content": piece}
        if kind == "markdown":
            data["toolRequests"] = []
        self._add(f"{kind} {place}", digest_of(piece), _TEXTS[kind], data)
        recorded.parts.update({index: len(text(parts[index], "content")) for index in run})
        recorded.pieces.append(RecordedText(kind, len(piece), digest_of(piece)))

    def _tool(self, call: Json) -> None:
        identity, status = text(call, "toolCallId"), text(call, "status")
        if status not in STARTED or not identity or (self._settled and call_digest(identity) in self._settled):
            return
        tools = self._checkpoint.open.tools
        if identity not in tools:
            tools[identity] = _STARTED
            data = {"toolCallId": identity, "toolName": text(call, "toolName"), "arguments": arguments(call)}
            self._add_call("tool start", identity, "tool.execution_start", data)
        child = self._owner.children.get(identity, {})
        child = child if text(child, "resource") else _child_in(call)
        if child and identity not in self._owner.announced:
            self._owner.announced.add(identity)
            self._drafts.append(announce(self._owner, identity, child, call, self._at))
        if status in ENDED and tools[identity] < _ENDED:
            tools[identity] = _ENDED
            at = self._ended if self._has_ended else self._at
            self._add_call("tool complete", identity, "tool.execution_complete", result_of(call), at)

    def _end(self, parts: list[Json]) -> None:
        state, resumed = text(self._turn, "state"), self._checkpoint.open.notes.count("resumed")
        for identity, reached in self._checkpoint.open.tools.items():
            if reached < _ENDED:  # hosts lose calls that were cancelled with their turn
                self._checkpoint.open.tools[identity] = _ENDED
                data = result_of({"toolCallId": identity, "status": CANCELLED, "reason": "skipped"})
                self._add_call("tool complete", identity, "tool.execution_complete", data, self._ended)
        owner, ordinal = self._owner, self._checkpoint.ordinal
        is_agents = owner.agent is not None and ordinal == 0
        outcome = text(owner.started_by, "outcome") if is_agents else ""
        is_done = outcome or (is_agents and text(owner.started_by, "mode") != "sync" and _has_answered(parts))
        if state == "cancelled" and is_done:
            state = "complete"  # its work had ended; only the host's record of its turn was still open
        errors = [part for part in parts if part.get("kind") == "error"]
        error = mapping(errors[-1], "error") or errors[-1] if errors else mapping(self._turn, "error")
        # The id is the same for both: a restarted host calls a turn cancelled that had ended with an error.
        if state == "cancelled":
            self._add("abort", resumed, "abort", {"reason": "user"}, self._ended)
        else:
            self._notes("error", parts, lambda part: _error(mapping(part, "error") or part))
            if state == "error" and not errors:
                self._add("abort", resumed, "session.error", _error(error), self._ended)
        self._add("end", resumed, "assistant.turn_end", {"turnId": str(ordinal)}, self._ended)
        if is_agents and not resumed:
            failure = state if state in ("cancelled", "error") else ""
            if text(owner.started_by, "mode") == "sync" and not outcome and not failure:
                self._checkpoint.is_agent_open = True  # its turn may end before the call that waits for it
            else:
                self._drafts.append(agent_end(owner, text(error, "message") or failure, self._ended))

    def _notes(self, kind: str, parts: list[Json], data_of: Callable[[Json], Json]) -> None:
        """Write the notifications or errors among the parts that are not recorded; they are known by their number."""
        notes = self._checkpoint.open.notes
        name = "error" if kind == "error" else "notification"
        recorded = sum(note.startswith(name) for note in notes)
        for number, part in enumerate([part for part in parts if part.get("kind") == kind]):
            if number >= recorded:
                notes.append(f"{name} {number}")
                if kind == "error":
                    self._add("abort", number, "session.error", data_of(part), self._ended)
                else:
                    data = data_of(part)
                    self._add(f"{name} {number}", digest_of(str(data)), "system.notification", data)

    def _add_call(self, kind: str, identity: str, type: str, data: Json, at: str = "") -> None:
        made = id_of(self._owner.chat, kind, identity)
        self._drafts.append(Draft(made, type, at or self._at, data, self._owner.agent))

    def _add(self, kind: str, content: Any, type: str, data: Json, at: str = "") -> None:
        identity = id_of(self._owner.chat, self._checkpoint.open.key, kind, content)
        self._drafts.append(Draft(identity, type, at or self._at, data, self._owner.agent))


def model_of(turn: Json) -> str:
    """Return the model that a turn names; some hosts name it only when they have restarted."""
    message = mapping(turn, "message") or mapping(turn, "userMessage")
    return text(mapping(message, "model"), "id") or text(message, "model")


def model_change(owner: TurnOwner, key: str, before: str, model: str, at: str) -> Draft:
    """Return the event that the turn with this key has another model than the one before it."""
    data: Json = {"previousModel": before or None, "newModel": model}
    return Draft(id_of(owner.chat, key, "model", model), "session.model_change", at, data)


def agent_end(owner: TurnOwner, failure: str, at: str) -> Draft:
    """Return the event that a sub-agent has ended. What the tool call that started it says of its end comes first."""
    outcome = text(owner.started_by, "outcome")
    name = text(owner.started_by, "agentName") or "agent"
    data: Json = {"toolCallId": owner.call, "agentName": name, "agentDisplayName": owner.title or name}
    if outcome == "failed" or failure:
        data["error"] = failure if failure not in ("", "error") else text(owner.started_by, "error") or failure
    type = "subagent.failed" if "error" in data else "subagent.completed"
    return Draft(id_of(owner.chat, 0, 0, "subagent end", ""), type, at, data, owner.agent)


def announce(owner: TurnOwner, identity: str, child: Json, call: Json, at: str) -> Draft:
    """Return the `subagent.started` event, as an event of the conversation that started the sub-agent."""
    content = _child_in(call)
    known = {**owner.children.get(identity, {}), **about_child(call)}
    name = text(known, "agentName") or "agent"
    title = text(content, "title") or text(child, "title") or text(known, "title") or name
    data: Json = {
        "toolCallId": identity,
        "agentName": name,
        "agentDisplayName": title,
        "agentDescription": text(known, "description") or text(child, "title"),
    }
    if owner.agent is not None:
        data["parentId"] = owner.agent
    resource = text(child, "resource")
    owner.children.setdefault(identity, {}).update({"resource": resource, "title": title, "agentName": name})
    return Draft(id_of(owner.session, "subagent", identity), "subagent.started", at, data, resource)


def about_child(call: Json) -> Json:
    """Return what a tool call says of the sub-agent that it starts, empty if it starts none.

    `outcome` is `completed` or `failed` when the sub-agent has ended; a call that started one in the background ends
    before it.
    """
    content, meta = _child_in(call), mapping(call, "_meta")
    if not content and text(meta, "toolKind") != "subagent" and not text(meta, "subagentAgentName"):
        return {}
    given = arguments(call)
    about: Json = {
        "agentName": text(content, "agentName") or text(meta, "subagentAgentName") or text(given, "agent_type"),
        "description": text(content, "description") or text(meta, "subagentDescription"),
        "prompt": text(given, "prompt"),
        "mode": text(given, "mode"),
        "error": text(mapping(call, "error"), "message"),
    }
    if text(call, "status") == COMPLETED and about["mode"] == "sync":
        about["outcome"] = "completed" if call.get("success") is True else "failed"
    return {key: value for key, value in about.items() if value}


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
    return id_of(owner.chat, checkpoint.open.key, "text", kind, checkpoint.open.count(kind))


def _child_in(call: Json) -> Json:
    """Return the content of a tool call that names a sub-agent's conversation, empty when there is none."""
    contents = objects(call, "content")
    return next((each for each in contents if each.get("type") == "subagent" and text(each, "resource")), {})


def arguments(call: Json) -> Any:
    """Return the arguments of a tool call. Hosts send JSON or, for some tools, only the one argument that they show."""
    given = call.get("toolInput")
    if not isinstance(given, str):
        return {} if given is None else {"input": given}
    try:
        read = msgspec.json.decode(given.encode())
    except (*REFUSALS, UnicodeEncodeError):
        read = None
    return read if isinstance(read, dict) else {"input": given}


def _has_answered(parts: list[Json]) -> bool:
    """Tell whether the last word of an agent was said: a text behind tool calls that have all ended."""
    calls = [mapping(part, "toolCall") for part in parts if part.get("kind") == "toolCall"]
    return bool(parts) and text(parts[-1], "kind") == "markdown" and all(text(c, "status") == COMPLETED for c in calls)


def _is_of_text(part: Json) -> bool:
    return text(part, "kind") in (*_TEXTS, _NOTE)


def _notification(content: Any) -> Json:
    return {"content": display_text(content), "kind": {"type": "unclassified"}}


def _error(error: Json) -> Json:
    data: Json = {"errorType": text(error, "errorType") or "unknown", "message": text(error, "message")}
    if text(error, "stack"):
        data["stack"] = text(error, "stack")
    return data
