"""The fields of event data that the machines read. All are optional and have defaults."""

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta, Raw, Struct, field
from msgspec.json import encode

NUMBER_MAX: Final = 2**60
# A number beyond this is no figure of anything, and arithmetic with it may fail: it reads as absent, like a text.
Number: TypeAlias = (
    Annotated[int, Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)] | Annotated[float, Meta(ge=-NUMBER_MAX, le=NUMBER_MAX)]
)
_NOTHING = Raw()


def is_filled(items: Raw) -> bool:
    """Whether raw JSON is a list that is not empty; its items are not parsed."""
    text = bytes(items).strip()
    return text.startswith(b"[") and text[1:-1].strip() != b""


class NotificationKind(Struct, gc=False, rename="camel"):
    """What a system notification is about."""

    type: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    status: str | None = None
    shell_id: str | None = None
    exit_code: Number | None = None
    run_id: str | None = None
    workflow_name: str | None = None
    elapsed_ms: Number | None = None


class Notification(Struct, gc=False):
    """The data of `system.notification`."""

    kind: NotificationKind = field(default_factory=NotificationKind)


class TextPayload(Struct, gc=False, rename="camel"):
    """The texts that some event carries: what was said, what the model gets of it, and what it thought before."""

    content: str | None = None
    transformed_content: str | None = None
    reasoning_text: str | None = None


class UserMessage(Struct, gc=False, rename="camel"):
    """The data of `user.message`, texts apart."""

    source: str | None = None
    delivery: str | None = None
    agent_mode: str | None = None
    interaction_id: str | None = None
    turn_id: str | None = None


class Turn(Struct, gc=False, rename="camel"):
    """The data of `assistant.turn_start` and `assistant.turn_end`."""

    turn_id: str | None = None
    interaction_id: str | None = None


class Charged(Struct, gc=False, rename="camel"):
    """What one call was charged."""

    total_nano_aiu: Number | None = None


class Accounting(Struct, gc=False, rename="camel"):
    """Which session a call was made in: another one than that of the record, in lines copied by a fork."""

    source_session_id: str | None = None


class Usage(Struct, gc=False, rename="camel"):
    """What one answered call of a model took."""

    model: str | None = None
    input_tokens: Number | None = None
    output_tokens: Number | None = None
    cache_read_tokens: Number | None = None
    cache_write_tokens: Number | None = None
    reasoning_tokens: Number | None = None
    cost: Number | None = None
    copilot_usage: Charged | None = None
    duration: Number | None = None
    time_to_first_token_ms: Number | None = None
    inter_token_latency_ms: Number | None = None
    max_prompt_tokens: Number | None = None
    initiator: str | None = None
    is_byok: bool | None = None
    provider_type: str | None = None
    api_call_id: str | None = None
    service_request_id: str | None = None
    finish_reason: str | None = None
    reasoning_effort: str | None = None
    accounting: Accounting | None = None

    @property
    def provider(self) -> str | None:
        """Who answered, where a record says it: GitHub, unless a person brought a key for another provider."""
        return self.provider_type if self.is_byok else "github"

    @property
    def nano_aiu(self) -> Number | None:
        """The AI units of the call, times a billion, None if unknown."""
        return self.copilot_usage.total_nano_aiu if self.copilot_usage is not None else None


class UsageRecord(Struct, gc=False):
    """The data of `session.usage_record`."""

    usage: Usage = field(default_factory=Usage)


class AssistantMessage(Struct, gc=False, rename="camel"):
    """The data of `assistant.message`, texts apart."""

    model: str | None = None
    interaction_id: str | None = None
    api_call_id: str | None = None
    output_tokens: Number | None = None
    tool_requests: Raw = _NOTHING


class ToolRequest(Struct, gc=False, rename="camel"):
    """One of the tools that `assistant.message` asks for."""

    tool_call_id: str | None = None


class Subagent(Struct, gc=False, rename="camel"):
    """The data of `subagent.started`, `.completed`, `.failed` and `.selected`."""

    tool_call_id: str | None = None
    parent_id: str | None = None
    agent_name: str | None = None
    agent_description: str | None = None
    model: str | None = None
    execution_mode: str | None = None
    workflow_run_id: str | None = None
    total_tool_calls: Number | None = None
    total_tokens: Number | None = None
    duration_ms: Number | None = None
    error: str | None = None


class AnyAgentEvent(Struct, gc=False, rename="camel"):
    """The tool calls that any event may name: its own, and the one that spawned its sub-agent."""

    parent_tool_call_id: str | None = None
    tool_call_id: str | None = None


class Skill(Struct, gc=False, rename="camel"):
    """The data of `skill.invoked`, its content apart."""

    name: str | None = None
    path: str | None = None
    plugin_name: str | None = None
    plugin_version: str | None = None
    source: str | None = None
    trigger: str | None = None


class MessagePayload(Struct, gc=False, rename="camel"):
    """The data of `session.info`, `.warning`, `.error` and `abort`."""

    info_type: str | None = None
    warning_type: str | None = None
    error_type: str | None = None
    error_code: str | None = None
    message: str | None = None
    reason: str | None = None
    status_code: Number | None = None
    provider_call_id: str | None = None
    service_request_id: str | None = None
    url: str | None = None


class Compaction(Struct, gc=False, rename="camel"):
    """The data of `session.compaction_start`, `.compaction_complete` and `session.truncation`."""

    success: bool | None = None
    token_limit: Number | None = None
    pre_compaction_tokens: Number | None = None
    post_compaction_tokens: Number | None = None
    pre_compaction_messages_length: Number | None = None
    messages_removed: Number | None = None
    tokens_removed: Number | None = None
    current_tokens: Number | None = None
    pre_truncation_tokens_in_messages: Number | None = None
    pre_truncation_messages_length: Number | None = None
    post_truncation_tokens_in_messages: Number | None = None
    post_truncation_messages_length: Number | None = None
    tokens_removed_during_truncation: Number | None = None
    messages_removed_during_truncation: Number | None = None
    performed_by: str | None = None
    compaction_tokens_used: Usage | None = None


class Where(Struct, gc=False, rename="camel"):
    """A working directory and its repository."""

    cwd: str | None = None
    git_root: str | None = None
    repository: str | None = None
    branch: str | None = None
    head_commit: str | None = None


class Began(Struct, gc=False, rename="camel"):
    """The data of `session.start` and `session.resume`."""

    copilot_version: str | None = None
    selected_model: str | None = None
    context: Where = field(default_factory=Where)
    event_count: Number | None = None
    already_in_use: bool | None = None
    session_was_active: bool | None = None


class ChangePayload(Struct, gc=False, rename="camel"):
    """The data of changes of the model, the mode, the plan, the task and the place where it all runs."""

    previous_model: str | None = None
    new_model: str | None = None
    previous_mode: str | None = None
    new_mode: str | None = None
    operation: str | None = None
    success: bool | None = None
    source_type: str | None = None
    remote_session_id: str | None = None


class Requests(Struct, gc=False):
    """How many calls of a model were made, and their billing multipliers."""

    count: Number = 0
    cost: Number = 0


class Tokens(Struct, gc=False, rename="camel"):
    """The tokens of all calls of a model."""

    input_tokens: Number = 0
    output_tokens: Number = 0
    cache_read_tokens: Number = 0
    cache_write_tokens: Number = 0
    reasoning_tokens: Number = 0


class ModelMetrics(Struct, gc=False, rename="camel"):
    """What one model was used for in a session."""

    requests: Requests = field(default_factory=Requests)
    usage: Tokens = field(default_factory=Tokens)
    total_nano_aiu: Number = 0


class CodeChanges(Struct, gc=False, rename="camel"):
    """The lines and files that a session changed."""

    lines_added: Number | None = None
    lines_removed: Number | None = None
    files_modified: list[Any] | None = None


class Shutdown(Struct, gc=False, rename="camel"):
    """The data of `session.shutdown`."""

    shutdown_type: str | None = None
    total_premium_requests: Number | None = None
    total_api_duration_ms: Number | None = None
    code_changes: CodeChanges = field(default_factory=CodeChanges)
    model_metrics: dict[str, ModelMetrics] = field(default_factory=dict)


class Custom(Struct, gc=False):
    """The data of `session.custom_notification`."""

    source: str | None = None
    name: str | None = None
    version: Number | None = None
    subject: Raw = _NOTHING
    payload: Raw = _NOTHING


class ToolStart(Struct, gc=False, rename="camel"):
    """The data of `tool.execution_start`, arguments apart."""

    tool_call_id: str | None = None
    tool_name: str | None = None
    mcp_server_name: str | None = None
    mcp_tool_name: str | None = None


class Arguments(Struct, gc=False):
    """The arguments of a tool that become attributes of their own."""

    command: str | None = None
    path: str | None = None
    detach: bool | None = None


class ToolArguments(Struct, gc=False):
    """The arguments in `tool.execution_start`: those with a meaning, and how a shell is to run."""

    arguments: Arguments = field(default_factory=Arguments)


class RawArguments(Struct, gc=False):
    """The arguments in `tool.execution_start` as they are."""

    arguments: Raw = _NOTHING


class Shell(Struct, gc=False, rename="camel"):
    """How a shell command ended."""

    exit_code: Number | None = None


class ToolFailure(Struct, gc=False):
    """Why something failed."""

    message: str | None = None
    code: str | None = None


class ToolComplete(Struct, gc=False, rename="camel"):
    """The data of `tool.execution_complete`, the result apart."""

    tool_call_id: str | None = None
    success: bool | None = None
    shell_execution: Shell | None = None
    error: ToolFailure | None = None


class ToolResult(Struct, gc=False):
    """The result in `tool.execution_complete`."""

    result: TextPayload = field(default_factory=TextPayload)


class PermissionAsked(Struct, gc=False, rename="camel"):
    """What is asked for in `permission.requested`."""

    kind: str | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None


class PermissionRequested(Struct, gc=False, rename="camel"):
    """The data of `permission.requested`."""

    request_id: str | None = None
    permission_request: PermissionAsked = field(default_factory=PermissionAsked)


class PermissionAnswer(Struct, gc=False):
    """The answer in `permission.completed`."""

    kind: str | None = None


class PermissionCompleted(Struct, gc=False, rename="camel"):
    """The data of `permission.completed`."""

    request_id: str | None = None
    result: PermissionAnswer = field(default_factory=PermissionAnswer)


class ExternalTool(Struct, gc=False, rename="camel"):
    """The data of `external_tool.requested`, arguments apart."""

    tool_call_id: str | None = None
    tool_name: str | None = None
    traceparent: str | None = None


class HookCall(Struct, gc=False):
    """A call of a tool that a hook is about."""

    name: str | None = None


class HookInput(Struct, gc=False, rename="camel"):
    """Whose session a hook is about, which tools, and where the CLI's own telemetry is by then."""

    session_id: str | None = None
    tool_name: str | None = None
    tool_calls: list[HookCall] = field(default_factory=list)
    traceparent: str | None = None

    @property
    def tool_names(self) -> str | None:
        """The names of the tools as the CLI writes them: a JSON list."""
        names = [call.name for call in self.tool_calls if call.name] or ([self.tool_name] if self.tool_name else [])
        return encode(names).decode() if names else None


class HookOutput(Struct, gc=False, rename="camel"):
    """What a hook decided."""

    permission_decision: str | None = None
    decision: str | None = None


class Hook(Struct, gc=False, rename="camel"):
    """The data of `hook.start` and `hook.end`, nearly all of output and input apart."""

    hook_invocation_id: str | None = None
    hook_type: str | None = None
    success: bool | None = None
    error: ToolFailure | None = None
    input: HookInput | None = None
    output: HookOutput | None = None
