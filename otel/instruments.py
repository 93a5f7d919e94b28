"""The one table of metrics: every counter and histogram with its unit, its labels and its origin.

A row is a constant. Every row ends with the labels that all metrics share. An endpoint receives a label only from the
label's content level up, and the session id only if it is configured. `semconvs` says with which conventions a row is
sent: those that only one version of the CLI or the GenAI conventions have with these, the rest always.
"""

from typing import Final, TypeAlias

from otel import names
from otel.names import Attribute, Instrument, Semconv

_OLD, _NEW, _OURS = "1.0.48", "1.0.102", "exporter"
_SINCE_NEW: Final[tuple[str, frozenset[Semconv]]] = (_NEW, names.NEW)

# Boundaries as the CLI has them, so that its own histograms and ours can be added up.
_DURATION: Final = tuple(0.01 * 2**step for step in range(14))
_CHUNK: Final = tuple(0.0001 * 2**step for step in range(14))
_LONG: Final = tuple(0.1 * 2**step for step in range(13))
_TOKENS: Final = tuple(float(4**step) for step in range(14))
_CALLS: Final = (0.0, *(float(2**step) for step in range(9)))
_TURNS: Final = (0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1e3, 2.5e3, 5e3, 7.5e3, 1e4)
# Answers may take a night, and sessions may stay open for weeks.
_WAIT: Final = (0.01, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0)
_SHARE: Final = tuple(tenth / 10 for tenth in range(1, 11))
_SESSION: Final = (1.0, 10.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14_400.0, 28_800.0, 86_400.0, 604_800.0)

SHARED: Final = (names.GIT_REPOSITORY, names.CONVERSATION_ID, names.SERVICE_VERSION, names.USER_NAME)
OF_RESOURCE: Final = SHARED[2:]
"""Those of them that are sent as the resource of a point and not as labels."""


_Labels: TypeAlias = "tuple[Attribute, ...]"
_Bounds: TypeAlias = tuple[float, ...]


def _counter(
    name: str, unit: str, labels: _Labels, meaning: str, since: str = _OURS, semconvs: frozenset[Semconv] = names.ALL
) -> Instrument:
    return Instrument(name, "counter", unit, since, semconvs, (*labels, *SHARED), (), meaning)


def _tokens(name: str, meaning: str) -> Instrument:
    return _counter(name, "{token}", (*_CALL, names.TOKEN_MODALITY), meaning, *_SINCE_NEW)


def _histogram(
    name: str,
    unit: str,
    labels: _Labels,
    bounds: _Bounds,
    meaning: str,
    since: str = _OURS,
    semconvs: frozenset[Semconv] = names.ALL,
) -> Instrument:
    return Instrument(name, "histogram", unit, since, semconvs, (*labels, *SHARED), bounds, meaning)


def _seconds(
    name: str,
    labels: _Labels,
    meaning: str,
    since: str = _OURS,
    semconvs: frozenset[Semconv] = names.ALL,
    bounds: _Bounds = _DURATION,
) -> Instrument:
    return _histogram(name, "s", labels, bounds, meaning, since, semconvs)


_CALL = (names.OPERATION, names.PROVIDER, names.REQUEST_MODEL, names.RESPONSE_MODEL)
_CALL_OUTCOME = (*_CALL, names.ERROR_TYPE)
_CALL_TOKENS = (*_CALL, names.TOKEN_TYPE)
_MODEL = (names.REQUEST_MODEL,)
_AGENT = (names.AGENT_NAME,)
_AGENT_OUTCOME = (names.AGENT_NAME, names.LABEL_SUCCESS)
_TOOL = (names.TOOL_NAME,)
_TOOL_OF_AGENT = (names.TOOL_NAME, names.TOOL_TYPE, names.AGENT_NAME, names.ERROR_TYPE)
_LAST_MODEL = (names.REQUEST_MODEL, names.PROVIDER)
_TOOL_FAILURE = (names.TOOL_NAME, names.ERROR_TYPE)
_DECISION = (names.PERMISSION_KIND, names.PERMISSION_RESULT)
_NOTIFICATION = (names.NOTIFICATION_TYPE, names.NOTIFICATION_STATUS)
_CUSTOM = (names.CUSTOM_SOURCE, names.CUSTOM_NAME)
_ERROR = (names.ERROR_TYPE, names.ERROR_STATUS_CODE)
_SANDBOX = (
    names.SANDBOX_DECISION,
    names.SANDBOX_CONTROL,
    names.SANDBOX_OUTCOME,
    names.SANDBOX_POINT,
    names.SANDBOX_PLATFORM,
)

# Calls of a model.
INPUT_TOKENS: Final = _tokens("gen_ai.client.inference.usage.input_tokens", "tokens read, those from a cache included")
OUTPUT_TOKENS: Final = _tokens("gen_ai.client.inference.usage.output_tokens", "tokens written, reasoning included")
CACHE_READ_TOKENS: Final = _tokens(
    "gen_ai.client.inference.usage.cache_read.input_tokens", "tokens read from the provider's cache"
)
CACHE_WRITE_TOKENS: Final = _tokens(
    "gen_ai.client.inference.usage.cache_write.input_tokens", "tokens written to the provider's cache"
)
REASONING_TOKENS: Final = _tokens(
    "gen_ai.client.inference.usage.reasoning.output_tokens", "tokens written while reasoning"
)
CALL_INPUT_TOKENS: Final = _histogram(
    "gen_ai.client.inference.operation.input_tokens", "{token}", _CALL, _TOKENS, "tokens read by one call", *_SINCE_NEW
)
CALL_OUTPUT_TOKENS: Final = _histogram(
    "gen_ai.client.inference.operation.output_tokens",
    "{token}",
    _CALL,
    _TOKENS,
    "tokens written by one call",
    *_SINCE_NEW,
)
CALL_DURATION: Final = _seconds(
    "gen_ai.client.inference.duration", _CALL_OUTCOME, "how long one call took", *_SINCE_NEW
)
TIME_TO_FIRST_CHUNK: Final = _seconds(
    "gen_ai.client.inference.time_to_first_chunk",
    _CALL[:3],
    "until the first piece of a streamed answer came",
    *_SINCE_NEW,
)
TIME_PER_CHUNK: Final = _seconds(
    "github.copilot.inference.mean_time_per_output_chunk",
    _CALL[:3],
    "mean time between the pieces of one streamed answer",
    bounds=_CHUNK,
)
CONTEXT_UTILIZATION: Final = _histogram(
    "github.copilot.context.utilization", "1", _MODEL, _SHARE, "how much of the context window one call filled"
)
TOKEN_USAGE: Final = _histogram(
    "gen_ai.client.token.usage",
    "{token}",
    _CALL_TOKENS,
    _TOKENS,
    "tokens read and written by one call",
    _OLD,
    names.OLD,
)
OPERATION_DURATION: Final = _seconds(
    "gen_ai.client.operation.duration",
    _CALL_OUTCOME,
    "how long an operation took; with CLI 1.0.48's names also calls of a model",
    _OLD,
    names.CLI,
)
COST: Final = _counter("github.copilot.cost", "1", _MODEL, "the calls' billing multipliers")
PREMIUM_REQUESTS: Final = _counter(
    "github.copilot.premium_request.count", "{request}", _MODEL, "billing multipliers of the calls that a person began"
)
AIU: Final = _counter("github.copilot.aiu", "{aiu}", _MODEL, "AI units charged")

# Agents and their tools.
AGENT_DURATION: Final = _seconds(
    "gen_ai.invoke_agent.duration",
    (*_AGENT, names.ERROR_TYPE),
    "how long an interaction, or a sub-agent, took",
    *_SINCE_NEW,
    bounds=_LONG,
)
AGENT_CALLS: Final = _histogram(
    "gen_ai.invoke_agent.inference_calls",
    "{inference_call}",
    _AGENT,
    _CALLS,
    "calls of a model by one agent",
    *_SINCE_NEW,
)
AGENT_TOOL_CALLS: Final = _histogram(
    "gen_ai.invoke_agent.tool_calls", "{tool_call}", _AGENT, _CALLS, "tool calls by one agent", *_SINCE_NEW
)
WORKFLOW_DURATION: Final = _seconds(
    "gen_ai.invoke_workflow.duration",
    (names.WORKFLOW_NAME, names.ERROR_TYPE),
    "how long a workflow took: several agents that work for one result",
    "GenAI",
    names.GENAI,
    _LONG,
)
TURNS: Final = _histogram(
    "github.copilot.agent.turn.count",
    "{turn}",
    (names.OPERATION,),
    _TURNS,
    "calls of a model in one interaction, those of sub-agents apart",
    _OLD,
)
SUBAGENT_DURATION: Final = _seconds(
    "github.copilot.subagent.duration", _AGENT_OUTCOME, "how long a sub-agent took by its own account", bounds=_LONG
)
SUBAGENT_TOKENS: Final = _counter("github.copilot.subagent.tokens", "{token}", _AGENT, "all tokens of sub-agents")
EXECUTE_TOOL_DURATION: Final = _seconds(
    "gen_ai.execute_tool.duration", _TOOL_OF_AGENT, "how long a tool ran", *_SINCE_NEW
)
TOOL_CALLS: Final = _counter(
    "github.copilot.tool.call.count", "{call}", (names.TOOL_NAME, names.LABEL_SUCCESS), "tool calls by outcome", _OLD
)
TOOL_DURATION: Final = _seconds("github.copilot.tool.call.duration", _TOOL, "how long a tool ran", _OLD)
TOOL_ERRORS: Final = _counter(
    "github.copilot.tool.error.count", "{call}", _TOOL_FAILURE, "failed tool calls by sort of failure"
)
PERMISSIONS: Final = _counter(
    "github.copilot.permission.count", "{request}", _DECISION, "permission requests by decision"
)
PERMISSION_WAIT: Final = _seconds(
    "github.copilot.permission.wait.duration", _DECISION[:1], "from a permission request to its decision", bounds=_WAIT
)
HOOKS: Final = _counter(
    "github.copilot.hook.count", "{run}", (names.HOOK_TYPE, names.LABEL_SUCCESS), "runs of hooks by outcome"
)
HOOK_DURATION: Final = _seconds("github.copilot.hook.duration", (names.HOOK_TYPE,), "how long a hook ran")
SKILLS: Final = _counter("github.copilot.skill.invoked.count", "{invocation}", (names.SKILL_NAME,), "skills used")

# Sessions and what happens in them.
SESSIONS: Final = _counter(
    "github.copilot.session.count", "{session}", (names.SESSION_BEGAN,), "sessions that began or were resumed"
)
SESSION_DURATION: Final = _seconds(
    "github.copilot.session.duration",
    (names.SHUTDOWN_TYPE,),
    "from the start or resume of a session to its shutdown",
    bounds=_SESSION,
)
INTERACTIONS: Final = _counter(
    "github.copilot.interaction.count",
    "{interaction}",
    (names.USER_MESSAGE_MODE,),
    "messages that opened an interaction",
)
NOTIFICATIONS: Final = _counter(
    "github.copilot.system.notification.count", "{notification}", _NOTIFICATION, "system notifications"
)
CUSTOM_NOTIFICATIONS: Final = _counter(
    "github.copilot.custom_notification.count", "{notification}", _CUSTOM, "notifications of extensions and servers"
)
COMPACTIONS: Final = _counter(
    "github.copilot.compaction.count", "{compaction}", (names.LABEL_SUCCESS,), "compactions of the conversation"
)
COMPACTED_TOKENS: Final = _counter(
    "github.copilot.compaction.tokens_removed", "{token}", (), "tokens that compactions freed"
)
TRUNCATIONS: Final = _counter("github.copilot.truncation.count", "{truncation}", (), "truncations of the conversation")
TRUNCATED_TOKENS: Final = _counter(
    "github.copilot.truncation.tokens_removed", "{token}", (), "tokens that truncations freed"
)
ERRORS: Final = _counter("github.copilot.error.count", "{error}", _ERROR, "errors that the session reported")
WARNINGS: Final = _counter("github.copilot.warning.count", "{warning}", (names.CATEGORY,), "warnings")
ABORTS: Final = _counter("github.copilot.abort.count", "{abort}", (names.ABORT_REASON,), "turns that were aborted")
ORPHANS: Final = _counter(
    "github.copilot.orphaned.count", "{span}", (names.OPERATION,), "operations that no event ended"
)
LINES_ADDED: Final = _counter("github.copilot.code.lines_added", "{line}", _LAST_MODEL, "lines of code added", _NEW)
LINES_REMOVED: Final = _counter(
    "github.copilot.code.lines_removed", "{line}", _LAST_MODEL, "lines of code removed", _NEW
)
UNKNOWN_EVENTS: Final = _counter(
    "github.copilot.unknown_event.count", "{event}", (names.EVENT_TYPE,), "events of types that we have not met"
)

# Ephemeral events: counted only while the exporter is connected.
LIVE_EVENTS: Final = _counter(
    "github.copilot.live.event.count", "{event}", (names.EVENT_TYPE,), "events seen that are kept nowhere"
)
LIVE_WAIT: Final = _seconds(
    "github.copilot.live.wait.duration", (names.LIVE_WAIT_KIND,), "how long an answer was waited for", bounds=_WAIT
)
LIVE_CONTEXT: Final = _histogram(
    "github.copilot.live.context.utilization", "1", (), _SHARE, "how full the context window was"
)
LIVE_MODEL_CALLS: Final = _counter(
    "github.copilot.live.model_call.count", "{call}", (names.LIVE_RESULT,), "calls of a model, failed ones included"
)

MCP_CONNECTIONS: Final = _counter(
    "github.copilot.mcp.server.connection.count", "{attempt}", (names.OUTCOME,), "attempts to connect to an MCP server",
    *_SINCE_NEW,
)  # fmt: skip
SANDBOX_OPERATIONS: Final = _counter(
    "github.copilot.sandbox.operation.count",
    "{decision}",
    _SANDBOX,
    "decisions about the sandbox of a command",
    *_SINCE_NEW,
)


def instruments() -> tuple[Instrument, ...]:
    """Every metric there is, in the order of the table."""
    return tuple(value for value in globals().values() if isinstance(value, Instrument))
