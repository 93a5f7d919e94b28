"""The fields of tool, permission and hook events that the trace machine reads. All are optional."""

from msgspec import Raw, Struct, field

from otel.payloads.events import Number, TextPayload

_NOTHING = Raw()


class ToolStart(Struct, gc=False, rename="camel"):
    """The data of `tool.execution_start`, arguments apart."""

    tool_call_id: str | None = None
    tool_name: str | None = None
    parent_tool_call_id: str | None = None
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
    parent_tool_call_id: str | None = None
    shell_execution: Shell | None = None
    error: ToolFailure | None = None


class ToolResult(Struct, gc=False):
    """The result in `tool.execution_complete`."""

    result: TextPayload = field(default_factory=TextPayload)


class ToolRequested(Struct, gc=False, rename="camel"):
    """The data of `tool.user_requested`."""

    tool_call_id: str | None = None


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


class HookInput(Struct, gc=False, rename="camel"):
    """Whose session a hook is about."""

    session_id: str | None = None


class Hook(Struct, gc=False, rename="camel"):
    """The data of `hook.start` and `hook.end`, output and nearly all input apart."""

    hook_invocation_id: str | None = None
    hook_type: str | None = None
    success: bool | None = None
    error: ToolFailure | None = None
    parent_tool_call_id: str | None = None
    input: HookInput | None = None
