"""The one table of names: every attribute, span operation and span event, with its content level and its origin.

A row is a constant. `since` is the version of the CLI whose own telemetry has the name, "exporter" for what only we
send, or "GenAI" for what only the GenAI conventions have. Nothing else in this package spells a name; `instruments`
holds the names of metrics.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Literal, TypeAlias

InstrumentKind: TypeAlias = Literal["counter", "histogram", "up_down_counter", "gauge"]
Semconv: TypeAlias = Literal["cli", "latest", "legacy", "both"]
"""Whose names are sent: those of the newest CLI, of the GenAI conventions, of CLI 1.0.48, or of both versions."""
Value: TypeAlias = str | bool | int | float | tuple[str, ...]


ALL: Final[frozenset[Semconv]] = frozenset(("cli", "latest", "legacy", "both"))
NEW: Final[frozenset[Semconv]] = frozenset(("cli", "latest", "both"))
OLD: Final[frozenset[Semconv]] = frozenset(("legacy", "both"))
CLI: Final[frozenset[Semconv]] = ALL - {"latest"}
GENAI: Final[frozenset[Semconv]] = frozenset(("latest",))


class Content(IntEnum):
    """The content levels, each with everything of the ones before it; a name is sent from its own level up."""

    NONE = 0
    METADATA = 1
    REDACTED = 2


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """One attribute of spans, span events, log records or metric points. Compared by identity: a name exists once.

    `legacy` is the spelling of CLI 1.0.48, when it differs. `semconvs` are the conventions that it is sent with.
    """

    name: str
    type: type
    content: Content
    since: str
    legacy: str | None = None
    semconvs: frozenset[Semconv] = ALL

    def spellings(self, semconv: Semconv) -> tuple[str, ...]:
        """Return the keys to write in a convention: one, two when both are asked for and they differ, or none."""
        if semconv not in self.semconvs:
            return ()
        if self.legacy is None or semconv not in OLD:
            return (self.name,)
        return (self.legacy,) if semconv == "legacy" else (self.name, self.legacy)


@dataclass(frozen=True, slots=True, eq=False)
class EventName:
    """The name of a span event."""

    name: str
    since: str


@dataclass(frozen=True, slots=True, eq=False)
class Instrument:
    """A metric. `semconvs` are the conventions that it is sent with."""

    name: str
    kind: InstrumentKind
    unit: str
    since: str
    semconvs: frozenset[Semconv] = ALL
    labels: tuple[Attribute, ...] = ()
    bounds: tuple[float, ...] = ()
    meaning: str = ""


_NONE, _METADATA, _REDACTED = Content.NONE, Content.METADATA, Content.REDACTED
_OLD, _NEW, _OURS, _GENAI = "1.0.48", "1.0.102", "exporter", "GenAI"
_STRINGS: Final = tuple

# Operations: the first word of a span's name.
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
PERMISSION: Final = "permission"
EXECUTE_HOOK: Final = "execute_hook"
EXTERNAL_TOOL: Final = "external_tool"

# What `AGENT_ID` is for the main agent.
MAIN_AGENT: Final = "github.copilot.default"

# The session, its events and the resource.
CONVERSATION_ID: Final = Attribute("gen_ai.conversation.id", str, _NONE, _OLD)  # the session's id
SESSION_ID: Final = Attribute("session.id", str, _NONE, _OURS)  # the same, where backends look for it
EVENT_ID: Final = Attribute("github.copilot.event.id", str, _NONE, _OURS)  # the event that opened a span
EVENT_PARENT_ID: Final = Attribute("github.copilot.event.parent_id", str, _NONE, _OURS)
EVENT_TYPE: Final = Attribute("event.type", str, _NONE, _OURS)
LOG_EVENT_ID: Final = Attribute("event.id", str, _NONE, _OURS)  # the event that a log record is about
AGENT_INSTANCE_ID: Final = Attribute("github.copilot.agent_id", str, _NONE, _OURS)  # the sub-agent's own id
# The sub-agents from the outermost to the one itself.
AGENT_PATH: Final = Attribute("github.copilot.agent_path", _STRINGS, _NONE, _OURS)
# When the operation of an orphan ended is not known, nor how long it took: its end is that of the last event.
DURATION_UNKNOWN: Final = Attribute("github.copilot.duration_unknown", bool, _NONE, _OURS)
ORPHANED: Final = Attribute("github.copilot.orphaned", bool, _NONE, _OURS)  # ended by a crash, not by an event
LINK_TYPE: Final = Attribute("github.copilot.link.type", str, _NONE, _OURS)  # why a span refers to another
REMOTE_SESSION_ID: Final = Attribute("github.copilot.remote_session_id", str, _NONE, _OURS)
SERVICE_NAME: Final = Attribute("service.name", str, _NONE, _OLD)
SERVICE_VERSION: Final = Attribute("service.version", str, _NONE, _OLD)  # of the CLI; ours is the scope's
SERVICE_INSTANCE_ID: Final = Attribute("service.instance.id", str, _NONE, _NEW)
HOST_NAME: Final = Attribute("host.name", str, _METADATA, _OURS)
USER_NAME: Final = Attribute("user.name", str, _METADATA, _OURS)  # who owns the file of the session
CWD: Final = Attribute("github.copilot.cwd", str, _REDACTED, _OLD)
GIT_ROOT: Final = Attribute("github.copilot.git_root", str, _REDACTED, _OLD)
REPOSITORY: Final = Attribute("github.copilot.repository", str, _METADATA, _OLD)
BRANCH: Final = Attribute("github.copilot.branch", str, _METADATA, _OLD)
GIT_REPOSITORY: Final = Attribute("github.copilot.git.repository", str, _METADATA, _NEW)
GIT_BRANCH: Final = Attribute("github.copilot.git.branch", str, _METADATA, _NEW)
GIT_COMMIT: Final = Attribute("github.copilot.git.commit_sha", str, _METADATA, _NEW)

# Agents, models and turns.
OPERATION: Final = Attribute("gen_ai.operation.name", str, _NONE, _OLD)
PROVIDER: Final = Attribute("gen_ai.provider.name", str, _METADATA, _OLD)
AGENT_ID: Final = Attribute("gen_ai.agent.id", str, _METADATA, _OLD, semconvs=OLD)
AGENT_NAME: Final = Attribute("gen_ai.agent.name", str, _METADATA, _OLD)
AGENT_DESCRIPTION: Final = Attribute("gen_ai.agent.description", str, _REDACTED, _OLD)
AGENT_VERSION: Final = Attribute("gen_ai.agent.version", str, _METADATA, _OLD, semconvs=OLD)
WORKFLOW_NAME: Final = Attribute("gen_ai.workflow.name", str, _METADATA, _GENAI, semconvs=GENAI)
REQUEST_MODEL: Final = Attribute("gen_ai.request.model", str, _METADATA, _OLD)
RESPONSE_MODEL: Final = Attribute("gen_ai.response.model", str, _METADATA, _OLD)
REASONING_LEVEL: Final = Attribute("gen_ai.request.reasoning.level", str, _NONE, _NEW)
RESPONSE_ID: Final = Attribute("gen_ai.response.id", str, _NONE, _OLD)
FINISH_REASONS: Final = Attribute("gen_ai.response.finish_reasons", _STRINGS, _NONE, _OLD)
TIME_TO_FIRST_CHUNK: Final = Attribute("gen_ai.response.time_to_first_chunk", float, _NONE, _OLD)  # seconds
COMPACTED: Final = Attribute("gen_ai.conversation.compacted", bool, _NONE, _NEW)
INPUT_TOKENS: Final = Attribute("gen_ai.usage.input_tokens", int, _NONE, _OLD)
OUTPUT_TOKENS: Final = Attribute("gen_ai.usage.output_tokens", int, _NONE, _OLD)
CACHE_READ_TOKENS: Final = Attribute("gen_ai.usage.cache_read.input_tokens", int, _NONE, _OLD)
CACHE_WRITE_TOKENS: Final = Attribute(
    "gen_ai.usage.cache_write.input_tokens", int, _NONE, _OLD, legacy="gen_ai.usage.cache_creation.input_tokens"
)
REASONING_TOKENS: Final = Attribute("gen_ai.usage.reasoning.output_tokens", int, _NONE, _OLD)
COST: Final = Attribute("github.copilot.cost", float, _NONE, _OLD)
NANO_AIU: Final = Attribute("github.copilot.nano_aiu", float, _NONE, _NEW)
SERVER_DURATION: Final = Attribute("github.copilot.server_duration", float, _NONE, _OLD)  # milliseconds
SERVICE_REQUEST_ID: Final = Attribute("github.copilot.service_request_id", str, _NONE, _NEW)
INITIATOR: Final = Attribute("github.copilot.initiator", str, _NONE, _OLD)
TURN_ID: Final = Attribute("github.copilot.turn_id", str, _NONE, _OLD)
TURN_COUNT: Final = Attribute("github.copilot.turn_count", int, _NONE, _OLD)
INTERACTION_ID: Final = Attribute("github.copilot.interaction_id", str, _NONE, _OLD)
ABORT_REASON: Final = Attribute("github.copilot.abort_reason", str, _METADATA, _OLD)
TASK_SUCCESS: Final = Attribute("github.copilot.task.success", bool, _NONE, _OURS)
INPUT_MESSAGES: Final = Attribute("gen_ai.input.messages", str, _REDACTED, _OLD)
OUTPUT_MESSAGES: Final = Attribute("gen_ai.output.messages", str, _REDACTED, _OLD)
SYSTEM_INSTRUCTIONS: Final = Attribute("gen_ai.system_instructions", str, _REDACTED, _OLD)
MESSAGE: Final = Attribute("github.copilot.message", str, _REDACTED, _OLD)
SUBAGENT_TOOL_CALLS: Final = Attribute("github.copilot.subagent.tool_calls", int, _NONE, _OURS)
SUBAGENT_TOKENS: Final = Attribute("github.copilot.subagent.tokens", int, _NONE, _OURS)
SUBAGENT_DURATION: Final = Attribute("github.copilot.subagent.duration", float, _NONE, _OURS)  # milliseconds
SUBAGENT_MODE: Final = Attribute("github.copilot.subagent.execution_mode", str, _NONE, _OURS)

# Tools, permissions, hooks and skills.
TOOL_NAME: Final = Attribute("gen_ai.tool.name", str, _NONE, _OLD)
TOOL_TYPE: Final = Attribute("gen_ai.tool.type", str, _NONE, _OLD)
TOOL_CALL_ID: Final = Attribute("gen_ai.tool.call.id", str, _NONE, _OLD)
TOOL_ARGUMENTS: Final = Attribute("gen_ai.tool.call.arguments", str, _REDACTED, _OLD)
TOOL_RESULT: Final = Attribute("gen_ai.tool.call.result", str, _REDACTED, _OLD)
TOOL_COMMAND: Final = Attribute("github.copilot.tool.parameters.command", str, _REDACTED, _NEW)
TOOL_FILE_PATH: Final = Attribute("github.copilot.tool.parameters.file_path", str, _REDACTED, _NEW)
MCP_SERVER_HASH: Final = Attribute("github.copilot.tool.parameters.mcp_server_name_hash", str, _NONE, _NEW)
MCP_TOOL_NAME: Final = Attribute("github.copilot.tool.parameters.mcp_tool_name", str, _NONE, _NEW)
MCP_METHOD: Final = Attribute("mcp.method.name", str, _NONE, _GENAI, semconvs=GENAI)
TOOL_USER_REQUESTED: Final = Attribute("github.copilot.tool.user_requested", bool, _NONE, _OURS)
# By the CLI on its own account, to read what a notification is about; not by the model.
TOOL_CALLED_BY_CLI: Final = Attribute("github.copilot.tool.called_by_cli", bool, _NONE, _OURS)
EXECUTABLE_NAME: Final = Attribute("process.executable.name", str, _NONE, _NEW)
EXECUTABLE_PATH: Final = Attribute("process.executable.path", str, _REDACTED, _NEW)
EXIT_CODE: Final = Attribute("process.exit.code", int, _NONE, _NEW)
PERMISSION_KIND: Final = Attribute("github.copilot.permission.kind", str, _NONE, _OLD)
PERMISSION_TOOL: Final = Attribute("github.copilot.permission.tool_name", str, _NONE, _OLD)
PERMISSION_RESULT: Final = Attribute("github.copilot.permission.result", str, _NONE, _OLD)
EXTERNAL_TOOL_NAME: Final = Attribute("github.copilot.external_tool.name", str, _NONE, _OLD)
EXTERNAL_TOOL_CALL_ID: Final = Attribute("github.copilot.external_tool.call_id", str, _NONE, _OLD)
HOOK_TYPE: Final = Attribute("github.copilot.hook.type", str, _NONE, _OLD)
HOOK_INVOCATION_ID: Final = Attribute("github.copilot.hook.invocation_id", str, _NONE, _OLD)
HOOK_ERROR_MESSAGE: Final = Attribute("github.copilot.hook.error_message", str, _REDACTED, _OLD)
HOOK_TOOL_NAMES: Final = Attribute("github.copilot.hook.tool_names", str, _NONE, _NEW, semconvs=NEW)
HOOK_DECISION: Final = Attribute("github.copilot.hook.decision", str, _NONE, _NEW, semconvs=NEW)
HOOK_DURATION: Final = Attribute("github.copilot.hook.duration", float, _NONE, _NEW)  # seconds
SKILL_NAME: Final = Attribute("github.copilot.skill.name", str, _METADATA, _OLD)
SKILL_PATH: Final = Attribute("github.copilot.skill.path", str, _REDACTED, _OLD)
SKILL_CONTENT: Final = Attribute("github.copilot.skill.content", str, _REDACTED, _OLD)
SKILL_PLUGIN_NAME: Final = Attribute("github.copilot.skill.plugin_name", str, _METADATA, _OLD)
SKILL_PLUGIN_VERSION: Final = Attribute("github.copilot.skill.plugin_version", str, _METADATA, _OLD)
SKILL_SOURCE: Final = Attribute("github.copilot.skill.source", str, _METADATA, _NEW)
SKILL_TRIGGER: Final = Attribute("github.copilot.skill.invocation_trigger", str, _METADATA, _NEW)

# Errors.
ERROR_TYPE: Final = Attribute("error.type", str, _METADATA, _OLD)
EXCEPTION_TYPE: Final = Attribute("exception.type", str, _METADATA, _OLD)
EXCEPTION_MESSAGE: Final = Attribute("exception.message", str, _REDACTED, _OLD)
COPILOT_ERROR_TYPE: Final = Attribute("github.copilot.error_type", str, _METADATA, _OLD)
ERROR_CODE: Final = Attribute("github.copilot.error_code", str, _METADATA, _NEW)
ERROR_STATUS_CODE: Final = Attribute("github.copilot.error_status_code", int, _NONE, _OLD)
ERROR_PROVIDER_CALL_ID: Final = Attribute("github.copilot.error_provider_call_id", str, _NONE, _OLD)
ERROR_SERVICE_REQUEST_ID: Final = Attribute("github.copilot.error_service_request_id", str, _NONE, _NEW)

# What span events and log records say.
USER_MESSAGE_SOURCE: Final = Attribute("github.copilot.user.message.source", str, _NONE, _OLD)
USER_MESSAGE_MODE: Final = Attribute("github.copilot.user.message.agent_mode", str, _NONE, _OLD)
USER_MESSAGE_INTERACTION: Final = Attribute("github.copilot.user.message.interaction_id", str, _NONE, _OLD)
USER_MESSAGE_TURN: Final = Attribute("github.copilot.user.message.turn_id", str, _NONE, _NEW)
NOTIFICATION_TYPE: Final = Attribute("github.copilot.system.notification.type", str, _NONE, _OLD)
NOTIFICATION_AGENT_ID: Final = Attribute("github.copilot.system.notification.agent_id", str, _NONE, _OLD)
NOTIFICATION_AGENT_TYPE: Final = Attribute("github.copilot.system.notification.agent_type", str, _METADATA, _OLD)
NOTIFICATION_STATUS: Final = Attribute("github.copilot.system.notification.status", str, _NONE, _OLD)
NOTIFICATION_SHELL_ID: Final = Attribute("github.copilot.system.notification.shell_id", str, _NONE, _OLD)
NOTIFICATION_EXIT_CODE: Final = Attribute("github.copilot.system.notification.exit_code", int, _NONE, _OLD)
CUSTOM_SOURCE: Final = Attribute("github.copilot.custom_notification.source", str, _METADATA, _NEW)
CUSTOM_NAME: Final = Attribute("github.copilot.custom_notification.name", str, _METADATA, _NEW)
CUSTOM_VERSION: Final = Attribute("github.copilot.custom_notification.version", int, _NONE, _NEW)
CUSTOM_SUBJECT: Final = Attribute("github.copilot.custom_notification.subject", str, _REDACTED, _NEW)
CUSTOM_PAYLOAD: Final = Attribute("github.copilot.custom_notification.payload", str, _REDACTED, _NEW)
TOKEN_LIMIT: Final = Attribute("github.copilot.token_limit", int, _NONE, _OLD)
CURRENT_TOKENS: Final = Attribute("github.copilot.current_tokens", int, _NONE, _OLD)
PRE_TOKENS: Final = Attribute("github.copilot.pre_tokens", int, _NONE, _OLD)
POST_TOKENS: Final = Attribute("github.copilot.post_tokens", int, _NONE, _OLD)
PRE_MESSAGES: Final = Attribute("github.copilot.pre_messages", int, _NONE, _OLD)
POST_MESSAGES: Final = Attribute("github.copilot.post_messages", int, _NONE, _OLD)
TOKENS_REMOVED: Final = Attribute("github.copilot.tokens_removed", int, _NONE, _OLD)
MESSAGES_REMOVED: Final = Attribute("github.copilot.messages_removed", int, _NONE, _OLD)
PERFORMED_BY: Final = Attribute("github.copilot.performed_by", str, _NONE, _OLD)
SUMMARY: Final = Attribute("github.copilot.summary", str, _REDACTED, _OURS)  # what the body is at the lower levels
TOOK: Final = Attribute("github.copilot.duration", float, _NONE, _OURS)  # seconds; of what an event ended
SUCCESS: Final = Attribute("github.copilot.success", bool, _NONE, _OLD)
CATEGORY: Final = Attribute("github.copilot.category", str, _METADATA, _OURS)  # info, warning or error type
URL: Final = Attribute("github.copilot.url", str, _REDACTED, _OURS)  # where a message says to go
PREVIOUS_MODEL: Final = Attribute("github.copilot.previous_model", str, _METADATA, _OURS)
NEW_MODEL: Final = Attribute("github.copilot.new_model", str, _METADATA, _OURS)
PREVIOUS_MODE: Final = Attribute("github.copilot.previous_mode", str, _NONE, _OURS)
NEW_MODE: Final = Attribute("github.copilot.new_mode", str, _NONE, _OURS)
PLAN_OPERATION: Final = Attribute("github.copilot.plan.operation", str, _NONE, _OURS)
HANDOFF_SOURCE: Final = Attribute("github.copilot.handoff.source_type", str, _NONE, _OURS)
RESUMED_EVENTS: Final = Attribute("github.copilot.session.resume.event_count", int, _NONE, _OURS)
SHUTDOWN_TYPE: Final = Attribute("github.copilot.shutdown_type", str, _NONE, _OLD)
PREMIUM_REQUESTS: Final = Attribute("github.copilot.total_premium_requests", float, _NONE, _OLD)
API_DURATION: Final = Attribute("github.copilot.total_api_duration_ms", int, _NONE, _OLD)
LINES_ADDED: Final = Attribute("github.copilot.lines_added", int, _NONE, _OLD)
LINES_REMOVED: Final = Attribute("github.copilot.lines_removed", int, _NONE, _OLD)
FILES_MODIFIED: Final = Attribute("github.copilot.files_modified_count", int, _NONE, _OLD)

# Labels of metrics only.
TOKEN_TYPE: Final = Attribute("gen_ai.token.type", str, _NONE, _OLD)
TOKEN_MODALITY: Final = Attribute("gen_ai.token.modality", str, _NONE, _NEW)
LABEL_SUCCESS: Final = Attribute("success", bool, _NONE, _OLD)  # whether a call went well
SESSION_BEGAN: Final = Attribute("github.copilot.session.start_type", str, _NONE, _OURS)  # new or resume
OUTCOME: Final = Attribute("outcome", str, _NONE, _NEW)  # of an attempt to connect to an MCP server
SANDBOX_DECISION: Final = Attribute("github.copilot.sandbox.decision_kind", str, _NONE, _NEW)
SANDBOX_CONTROL: Final = Attribute("github.copilot.sandbox.control", str, _NONE, _NEW)
SANDBOX_OUTCOME: Final = Attribute("github.copilot.sandbox.outcome", str, _NONE, _NEW)
SANDBOX_POINT: Final = Attribute("github.copilot.sandbox.enforcement_point", str, _NONE, _NEW)
SANDBOX_PLATFORM: Final = Attribute("github.copilot.sandbox.platform", str, _NONE, _NEW)
LIVE_WAIT_KIND: Final = Attribute("github.copilot.live.wait.kind", str, _NONE, _OURS)  # what a person was asked for
LIVE_RESULT: Final = Attribute("github.copilot.live.result", str, _NONE, _OURS)  # how the last attempt ended
OVERFLOW: Final = Attribute("otel.metric.overflow", bool, _NONE, _OURS)

# Span events, and what the name of a log record begins with: the type of its event follows.
LOG_NAME_PREFIX: Final = "github.copilot."
USER_MESSAGE: Final = EventName("github.copilot.user.message", _OLD)
SYSTEM_NOTIFICATION: Final = EventName("github.copilot.system.notification", _OLD)
CUSTOM_NOTIFICATION: Final = EventName("github.copilot.custom_notification", _NEW)
EXCEPTION: Final = EventName("gen_ai.client.operation.exception", _OLD)
TOOL_EXCEPTION: Final = EventName("gen_ai.execute_tool.exception", _GENAI)  # of log records only
INFERENCE_DETAILS: Final = EventName("gen_ai.client.inference.operation.details", _GENAI)  # of log records only
HOOK_START: Final = EventName("github.copilot.hook.start", _OLD)
HOOK_END: Final = EventName("github.copilot.hook.end", _OLD)
HOOK_ERROR: Final = EventName("github.copilot.hook.error", _OLD)
SKILL_INVOKED: Final = EventName("github.copilot.skill.invoked", _OLD)
SESSION_ABORT: Final = EventName("github.copilot.session.abort", _OLD)
SESSION_TRUNCATION: Final = EventName("github.copilot.session.truncation", _OLD)
COMPACTION_START: Final = EventName("github.copilot.session.compaction_start", _OLD)
COMPACTION_COMPLETE: Final = EventName("github.copilot.session.compaction_complete", _OLD)
CONTEXT_CHANGED: Final = EventName("github.copilot.session.context_changed", _OLD)
SESSION_RESUME: Final = EventName("github.copilot.session.resume", _OURS)
SESSION_HANDOFF: Final = EventName("github.copilot.session.handoff", _OURS)
SESSION_INFO: Final = EventName("github.copilot.session.info", _OURS)
SESSION_WARNING: Final = EventName("github.copilot.session.warning", _OURS)
MODEL_CHANGE: Final = EventName("github.copilot.session.model_change", _OURS)
MODE_CHANGED: Final = EventName("github.copilot.session.mode_changed", _OURS)
PLAN_CHANGED: Final = EventName("github.copilot.session.plan_changed", _OURS)
TITLE_CHANGED: Final = EventName("github.copilot.session.title_changed", _OURS)
TASK_COMPLETE: Final = EventName("github.copilot.session.task_complete", _OURS)
SUBAGENT_SELECTED: Final = EventName("github.copilot.subagent.selected", _OURS)
SUBAGENT_DESELECTED: Final = EventName("github.copilot.subagent.deselected", _OURS)


def attributes() -> tuple[Attribute, ...]:
    """Every attribute there is, in the order of the table."""
    return tuple(value for value in globals().values() if isinstance(value, Attribute))


def event_names() -> tuple[EventName, ...]:
    """Every name of a span event, in the order of the table."""
    return tuple(value for value in globals().values() if isinstance(value, EventName))
