"""What happened around the conversation, in words: notifications, waits, problems, marks in a session's life."""

from typing import Final

from exporter.missioncontrol.live.wait_text import ASKING, NOTIFICATION_TAG, words
from exporter.missioncontrol.pages.formats import counted, duration, figure
from exporter.missioncontrol.pages.timeline.entry import Data, Kind, Level, inner, number_of, text_of

_NOTIFICATIONS: Final = {
    "agent_completed": "agent finished",
    "agent_idle": "agent is idle",
    "shell_completed": "shell finished",
    "shell_detached_completed": "detached shell finished",
    "instruction_discovered": "instructions found",
    "new_inbox_message": "new message",
    "workflow_completed": "workflow finished",
}
_TITLES: Final[dict[str, tuple[Kind, Level, str]]] = {
    "session.start": ("mark", "", "Session started"),
    "session.resume": ("mark", "", "Session resumed"),
    "session.shutdown": ("mark", "", "Session ended"),
    "session.compaction_start": ("mark", "", "Compaction started"),
    "session.compaction_complete": ("mark", "", "Conversation compacted"),
    "session.truncation": ("mark", "", "Conversation truncated"),
    "session.snapshot_rewind": ("mark", "", "Rewound to an earlier point"),
    "session.context_cleared": ("mark", "", "Context cleared"),
    "session.context_changed": ("mark", "", "Working directory changed"),
    "session.model_change": ("mark", "", "Model changed"),
    "session.mode_changed": ("mark", "", "Mode changed"),
    "session.title_changed": ("mark", "", "Title changed"),
    "session.plan_changed": ("mark", "", "Plan changed"),
    "session.handoff": ("mark", "", "Handed off"),
    "session.task_complete": ("mark", "", "Task complete"),
    "session.info": ("note", "", "Info"),
    "session.custom_notification": ("note", "notice", "Notification"),
    "session.warning": ("problem", "warning", "Warning"),
    "session.error": ("problem", "error", "Error"),
    "model.call_failure": ("problem", "error", "Model call failed"),
    "abort": ("problem", "warning", "Aborted"),
    "hook.end": ("problem", "error", "Hook failed"),
    "permission.requested": ("wait", "warning", "Waiting for permission"),
    "permission.completed": ("wait", "", "Permission answered"),
    "user_input.requested": ("wait", "warning", "Waiting for an answer"),
    "user_input.completed": ("wait", "", "Answered"),
    "elicitation.requested": ("wait", "warning", "Waiting for an answer"),
    "elicitation.completed": ("wait", "", "Answered"),
    "exit_plan_mode.requested": ("wait", "warning", "Waiting for plan approval"),
    "exit_plan_mode.completed": ("wait", "", "Plan answered"),
    "skill.invoked": ("note", "", "Skill used"),
    "subagent.started": ("helper", "", "Sub-agent started"),
    "subagent.completed": ("helper", "", "Sub-agent finished"),
    "subagent.failed": ("helper", "error", "Sub-agent failed"),
}
_ASKED: Final = frozenset(f"{name}.requested" for name in ASKING)
_WORDS: Final = ("message", "content", "question", "summaryContent", "error", "reason", "intention", "title", "name")


def told(event_type: str, data: Data) -> tuple[Kind, Level, str, str, list[str]] | None:
    """Return kind, level, title, text and facts of an event of these kinds, or None for others."""
    if event_type == "system.notification":
        return _notification(data)
    known = _TITLES.get(event_type)
    if known is None or (event_type == "hook.end" and data.get("success") is not False):
        return None
    kind, level, title = known
    facts = _FACTS[event_type](data) if event_type in _FACTS else []
    if event_type == "permission.completed" and _decision(data).startswith("denied"):
        level = "warning"
    if event_type == "session.shutdown" and data.get("shutdownType") == "error":
        level = "error"
    if event_type == "session.compaction_complete" and data.get("success") is False:
        level, title = "error", "Compaction failed"
    text = words(event_type, data) if event_type in _ASKED else ""
    text = text or text_of(data, *_WORDS) or text_of(inner(data, "error"), "message")
    return kind, level, title, text, [fact for fact in facts if fact]


def _notification(data: Data) -> tuple[Kind, Level, str, str, list[str]]:
    kind = inner(data, "kind")
    name = text_of(kind, "type")
    status, code = text_of(kind, "status"), number_of(kind, "exitCode")
    facts = [status] if status else []
    level: Level = "notice"
    if code is not None:
        facts.append(f"exit {code:.0f}")
        level = "warning" if code else "notice"
    if status in ("failed", "error"):
        level = "error"
    facts += [
        fact for fact in (text_of(kind, "shellId"), text_of(kind, "displayName"), text_of(kind, "agentType")) if fact
    ]
    title = _NOTIFICATIONS.get(name) or name or "notification"
    return "note", level, title, NOTIFICATION_TAG.sub("", text_of(data, "content")).strip(), facts


def _decision(data: Data) -> str:
    result = data.get("result")
    if isinstance(result, dict):
        result = result.get("kind")
    return result if isinstance(result, str) else ""


def _permission(data: Data) -> list[str]:
    return [text_of(inner(data, "permissionRequest"), "kind")]


def _compaction(data: Data) -> list[str]:
    before, after = number_of(data, "preCompactionTokens"), number_of(data, "postCompactionTokens")
    removed = number_of(data, "messagesRemoved")
    return [
        f"{figure(before)} → {counted(after, 'token')}" if before is not None and after is not None else "",
        f"{counted(removed, 'message')} removed" if removed is not None else "",
    ]


def _shutdown(data: Data) -> list[str]:
    changes = inner(data, "codeChanges")
    added, removed = number_of(changes, "linesAdded"), number_of(changes, "linesRemoved")
    files = changes.get("filesModified")
    return [
        text_of(data, "shutdownType"),
        f"{counted(added, 'line')} added, {figure(removed)} removed"
        if added is not None and removed is not None
        else "",
        counted(len(files), "file") if isinstance(files, list) and files else "",
    ]


def _start(data: Data) -> list[str]:
    context = inner(data, "context")
    version = text_of(data, "copilotVersion")
    resumed = number_of(data, "eventCount")
    return [
        f"CLI {version}" if version else "",
        text_of(data, "selectedModel"),
        text_of(context, "repository"),
        text_of(context, "branch"),
        f"after {counted(resumed, 'event')}" if resumed is not None else "",
    ]


def _agent(data: Data) -> list[str]:
    calls, tokens, milliseconds = (number_of(data, name) for name in ("totalToolCalls", "totalTokens", "durationMs"))
    return [
        text_of(data, "agentDisplayName"),
        text_of(data, "agentName"),
        text_of(data, "agentDescription"),
        counted(calls, "tool call") if calls is not None else "",
        counted(tokens, "token") if tokens is not None else "",
        duration(milliseconds / 1000) if milliseconds is not None else "",
    ]


_FACTS: Final = {
    "permission.requested": _permission,
    "permission.completed": lambda data: [_decision(data)],
    "session.compaction_complete": _compaction,
    "session.shutdown": _shutdown,
    "session.start": _start,
    "session.resume": _start,
    "session.model_change": lambda data: [text_of(data, "previousModel"), text_of(data, "newModel")],
    "session.mode_changed": lambda data: [text_of(data, "previousMode"), text_of(data, "newMode")],
    "session.context_changed": lambda data: [
        text_of(data, "repository"),
        text_of(data, "branch"),
        text_of(data, "cwd"),
    ],
    "session.warning": lambda data: [text_of(data, "warningType")],
    "session.error": lambda data: [text_of(data, "errorType")],
    "session.info": lambda data: [text_of(data, "infoType")],
    "abort": lambda data: [text_of(data, "reason")],
    "hook.end": lambda data: [text_of(data, "hookType")],
    "subagent.started": _agent,
    "subagent.completed": _agent,
    "subagent.failed": _agent,
}
