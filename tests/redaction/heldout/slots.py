"""Session events that carry a text: where the CLI puts what people type, models say and tools answer."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.redaction.heldout.dice import Dice

Event: TypeAlias = dict[str, Any]
TOP = ("id", "timestamp", "parentId", "type", "agentId", "ephemeral")
LINKS = (
    "toolCallId",
    "parentToolCallId",
    "messageId",
    "originatingMessageId",
    "interactionId",
    "requestId",
    "turnId",
    "sessionId",
    "remoteSessionId",
    "hookInvocationId",
    "apiCallId",
    "providerCallId",
    "serviceRequestId",
    "checkpointId",
    "upToEventId",
    "toolName",
    "model",
    "agentName",
    "role",
    "startTime",
    "copilotVersion",
    "headCommit",
    "baseCommit",
)


class Session:
    """Makes envelopes that hang together, with identifiers of every form that providers use."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.session = dice.guid()
        self.parent: str | None = None
        self.interaction = dice.guid()
        self.turn = 0

    def call(self) -> str:
        """The identifier of a tool call, as one of the providers makes it."""
        dice = self.dice
        forms = ("call_" + dice.of("w", 24), "toolu_01" + dice.of("w", 22), "call_" + dice.of("x", 20), dice.guid())
        return dice.choice(forms)

    def event(self, kind: str, data: Event) -> Event:
        """The data in an envelope that follows the last one."""
        self.turn += 1
        dice, now = self.dice, self.turn
        event: Event = {"type": kind, "data": data, "id": dice.guid()}
        event["timestamp"] = (
            f"2026-08-{now // 1440 % 28 + 1:02d}T{now // 60 % 24:02d}:{now % 60:02d}:07.{now % 1000:03d}Z"
        )
        event["parentId"], self.parent = self.parent, event["id"]
        if dice.random() < 0.15:
            event["agentId"] = dice.guid()
        return event

    def common(self) -> Event:
        """Members of most events' data, with numbers of awkward spelling."""
        calls = ("chat-" + self.dice.of("x", 32), "chatcmpl-" + self.dice.of("w", 29), "msg_01" + self.dice.of("w", 22))
        return {
            "interactionId": self.interaction,
            "turnId": str(self.turn),
            "model": self.dice.choice(("gpt-5.2-codex", "claude-opus-4.8", "gemini-3-pro")),
            "apiCallId": self.dice.choice(calls),
            "requestId": ":".join(self.dice.of("X", size) for size in (4, 6, 7, 7, 8)),
        }


Slot: TypeAlias = Callable[[Session, str], Event]


def user(session: Session, text: str) -> Event:
    """What a person types; the CLI keeps it twice."""
    data = {
        "content": text,
        "transformedContent": f"<current_datetime>2026-08-11T10:00:01.632+00:00</current_datetime>\n\n{text}",
        "messageId": session.dice.guid(),
        "attachments": [],
        "interactionId": session.interaction,
        "turnId": str(session.turn),
    }
    return session.event("user.message", data)


def assistant(session: Session, text: str) -> Event:
    """What a model says, with its thoughts."""
    data = {"messageId": session.dice.guid(), "content": text, "reasoningText": "Answer it.", "toolRequests": []}
    return session.event("assistant.message", data | session.common())


def reasoning(session: Session, text: str) -> Event:
    """A model's thoughts that quote a text."""
    data = {"messageId": session.dice.guid(), "content": "Done.", "reasoningText": f"I see:\n{text}\nSo go on."}
    return session.event("assistant.message", data | session.common())


def asked(session: Session, text: str) -> Event:
    """A tool call within an assistant's message."""
    arguments = {"command": text, "description": "Run it"}
    request = {"toolCallId": session.call(), "name": "bash", "arguments": arguments, "type": "function"}
    data = {"messageId": session.dice.guid(), "content": "", "toolRequests": [request]}
    return session.event("assistant.message", data | session.common())


def asked_as_text(session: Session, text: str) -> Event:
    """A tool call whose arguments are JSON in a string."""
    arguments = json.dumps({"path": "/srv/app/settings", "file_text": text})
    request = {"toolCallId": session.call(), "name": "create", "arguments": arguments, "type": "function"}
    data = {"messageId": session.dice.guid(), "content": "", "toolRequests": [request]}
    return session.event("assistant.message", data | session.common())


def started(tool: str, **shape: str) -> Slot:
    """A tool's start with the text as one of its arguments."""

    def slot(session: Session, text: str) -> Event:
        arguments = {name: text if value == "V" else value for name, value in shape.items()}
        data = {"toolCallId": session.call(), "toolName": tool, "arguments": arguments} | session.common()
        return session.event("tool.execution_start", data)

    return slot


def completed(session: Session, text: str) -> Event:
    """A tool's answer, short and long, with measurements."""
    data = {
        "toolCallId": session.call(),
        "success": True,
        "result": {"content": text + "\n<shellId: 0 completed with exit code 0>", "detailedContent": text},
        "toolTelemetry": {"properties": {"executionMode": "sync"}, "metrics": {"ms": 30000.0, "n": 1e21, "z": -0.0}},
    }
    return session.event("tool.execution_complete", data | session.common())


def completed_blocks(session: Session, text: str) -> Event:
    """A tool's answer as blocks of an MCP server."""
    blocks = [{"type": "text", "text": text}, {"type": "resource_link", "uri": "file:///srv/app", "name": "app"}]
    data = {"toolCallId": session.call(), "success": True, "result": {"content": "ok", "contents": blocks}}
    return session.event("tool.execution_complete", data | session.common())


def failed(session: Session, text: str) -> Event:
    """A tool's failure."""
    data = {"toolCallId": session.call(), "success": False, "error": {"code": "failure", "message": f"exit 1: {text}"}}
    return session.event("tool.execution_complete", data | session.common())


def member(path: str, kind: str) -> Slot:
    """An event of this type with the text under this name."""

    def slot(session: Session, text: str) -> Event:
        return session.event(kind, {path: text} | session.common())

    return slot


def hook(session: Session, text: str) -> Event:
    """What a hook was given."""
    given = {
        "toolName": "bash",
        "toolArgs": json.dumps({"command": text}),
        "cwd": "/srv/app",
        "timestamp": 1786442400123,
    }
    return session.event(
        "hook.start", {"hookInvocationId": session.dice.guid(), "hookType": "preToolUse", "input": given}
    )


def snapshot(session: Session, text: str) -> Event:
    """A model's whole conversation."""
    content = [{"type": "text", "text": text}]
    messages = [{"role": "user", "content": "go"}, {"role": "tool", "tool_call_id": session.call(), "content": content}]
    return session.event("model.messages_snapshot", {"messages": messages} | session.common())


def agent(session: Session, text: str) -> Event:
    """The prompt of a sub-agent."""
    arguments = {"name": "helper", "agent_type": "explore", "mode": "background", "prompt": f"Check this:\n{text}"}
    data = {"toolCallId": session.call(), "toolName": "task", "arguments": arguments} | session.common()
    return session.event("tool.execution_start", data)


SLOTS: dict[str, Slot] = {
    "user-message": user,
    "assistant-message": assistant,
    "assistant-reasoning": reasoning,
    "tool-request": asked,
    "tool-request-text": asked_as_text,
    "bash-start": started("bash", command="V", description="Run it", sessionId="main"),
    "create-start": started("create", path="/srv/app/settings", file_text="V"),
    "edit-start": started("edit", path="/srv/app/settings", old_str="TODO", new_str="V"),
    "edit-start-old": started("edit", path="/srv/app/settings", old_str="V", new_str="load()"),
    "mcp-start": started("github-create_issue", owner="acme", repo="app", title="CI fails", body="V"),
    "user-id-argument": started("store-put", id="V", type="note"),
    "tool-result": completed,
    "tool-result-again": completed,
    "tool-result-more": completed,
    "tool-blocks": completed_blocks,
    "tool-failure": failed,
    "system-notification": member("content", "system.notification"),
    "session-error": member("message", "session.error"),
    "session-info": member("message", "session.info"),
    "compaction-summary": member("summaryContent", "session.compaction_complete"),
    "title": member("title", "session.title_changed"),
    "hook-start": hook,
    "messages-snapshot": snapshot,
    "agent-prompt": agent,
}


def encode(event: Event, dice: Dice) -> bytes:
    """The event as a line: mostly as the CLI writes it, sometimes with escapes or spaces of other writers."""
    style = dice.random()
    if style < 0.85:
        return json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
    return json.dumps(event, separators=(",", ":") if style < 0.95 else (", ", ": ")).encode()


def links(event: Event) -> list[object]:
    """Every value that joins events, in order; redaction must not change one."""
    found: list[object] = [event.get(name) for name in TOP]
    data = event["data"]
    found += [data.get(name) for name in LINKS]
    for request in data.get("toolRequests", []):
        found += [request["toolCallId"], request["name"]]
    return found
