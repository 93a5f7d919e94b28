"""What an event means to the model, the screen, telemetry and storage.

A pure function of plain values, for telemetry as well as for the API and pages. The table has the usual meaning of a
type; exit codes, denials and failures are read from the data. Nothing raises: unknown types and data of any shape have
a projection too.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

Data: TypeAlias = Mapping[str, object]

DEBUG: Final = 5
INFO: Final = 9
WARN: Final = 13
ERROR: Final = 17


class Projection(NamedTuple):
    """What one event means.

    `model_visible`: the model is given its text, now or when the session is replayed. `ui_visible`: a person following
    the session is shown something. `telemetry`: it takes part in spans, span events or metrics, not only in logs.
    `durable`: it is kept; false for what the envelope calls ephemeral. `severity`: OTLP's number. `category` and `url`:
    which sort of message it is and where it sends the reader, for the types that say so.
    """

    model_visible: bool
    ui_visible: bool
    telemetry: bool
    durable: bool
    severity: int
    category: str | None = None
    url: str | None = None


def project(event_type: str, data: Data | None = None, ephemeral: bool = False) -> Projection:
    """Return what an event of this type with this data means; `ephemeral` is the flag of its envelope."""
    row = TABLE.get(event_type, UNKNOWN)
    facts = data if isinstance(data, Mapping) else _NOTHING
    category = _text(facts.get(row.category)) if row.category else None
    if event_type == NOTIFICATION:
        category = notification_type(facts)
    return Projection(
        model_visible=row.model and not (event_type == NOTIFICATION and category == INSTRUCTION),
        ui_visible=row.screen,
        telemetry=row.telemetry,
        durable=not ephemeral,
        severity=row.severity_of(facts) if row.severity_of else row.severity,
        category=category,
        url=_text(facts.get("url")) if row.category else None,
    )


def is_known(event_type: str) -> bool:
    """Whether the table says anything about this type."""
    return event_type in TABLE


def notification_type(data: Data) -> str | None:
    """Return which kind of system notification this is, exactly as it is spelt there."""
    kind = data.get("kind")
    return _text(kind.get("type")) if isinstance(kind, Mapping) else None


NOTIFICATION: Final = "system.notification"
# The one kind whose text the model is not given: the instructions themselves reach it another way.
INSTRUCTION: Final = "instruction_discovered"
_FAILED: Final = ("failed", "error")
_NOTHING: Final[Data] = MappingProxyType({})


class ProjectionRow(NamedTuple):
    """What the events of one type are; `severity_of` finds the severity when it depends on the data."""

    model: bool
    screen: bool
    telemetry: bool
    severity: int
    category: str = ""
    severity_of: Callable[[Data], int] | None = None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _notification(data: Data) -> int:
    kind = data.get("kind")
    if not isinstance(kind, Mapping):
        return INFO
    if kind.get("status") in _FAILED:
        return ERROR
    code = kind.get("exitCode")
    return WARN if isinstance(code, int | float) and code != 0 else INFO


def _success(otherwise: int) -> Callable[[Data], int]:
    return lambda data: ERROR if data.get("success") is False else otherwise


def _decision(data: Data) -> int:
    result = data.get("result")
    kind = result.get("kind") if isinstance(result, Mapping) else result
    return WARN if isinstance(kind, str) and kind.startswith("denied") else INFO


def _ending(data: Data) -> int:
    return ERROR if data.get("shutdownType") == "error" else INFO


# Columns: what the model is given, what a person sees, what spans and metrics are made of.
_CONVERSATION: Final = ProjectionRow(model=True, screen=True, telemetry=True, severity=INFO)
_CONTEXT: Final = ProjectionRow(model=True, screen=False, telemetry=False, severity=INFO)
_SHOWN: Final = ProjectionRow(model=False, screen=True, telemetry=True, severity=INFO)
_SCREEN: Final = ProjectionRow(model=False, screen=True, telemetry=False, severity=INFO)
_LIVE: Final = ProjectionRow(model=False, screen=True, telemetry=False, severity=DEBUG)
_MACHINE: Final = ProjectionRow(model=False, screen=False, telemetry=True, severity=DEBUG)
_RECORD: Final = ProjectionRow(model=False, screen=False, telemetry=False, severity=DEBUG)

UNKNOWN: Final = ProjectionRow(model=False, screen=False, telemetry=True, severity=DEBUG)


def _rows(row: ProjectionRow, types: str) -> dict[str, ProjectionRow]:
    return dict.fromkeys(types.split(), row)


TABLE: Final[Mapping[str, ProjectionRow]] = MappingProxyType(
    {
        NOTIFICATION: _CONVERSATION._replace(severity_of=_notification),
        "session.info": _SHOWN._replace(category="infoType"),
        "session.warning": _SHOWN._replace(severity=WARN, category="warningType"),
        "session.error": _SHOWN._replace(severity=ERROR, category="errorType"),
        "abort": _SHOWN._replace(severity=WARN),
        "hook.end": _MACHINE._replace(severity_of=_success(DEBUG)),
        "permission.completed": _SHOWN._replace(severity_of=_decision),
        "session.compaction_complete": _CONVERSATION._replace(severity_of=_success(INFO)),
        "session.shutdown": _SHOWN._replace(severity_of=_ending),
        "subagent.failed": _SHOWN._replace(severity=ERROR),
        "tool.execution_complete": _CONVERSATION._replace(severity_of=_success(INFO)),
        **_rows(_CONVERSATION, "user.message skill.invoked skill.invoked_ref"),
        "assistant.message": _CONVERSATION._replace(severity=DEBUG),
        **_rows(
            _CONTEXT,
            "system.message session.mode_notice_delivered skill.context_delivered skill.context_delivered_ref",
        ),
        **_rows(
            _SHOWN,
            "external_tool.requested permission.requested session.compaction_start session.context_changed"
            " session.custom_notification session.handoff session.mode_changed session.model_change"
            " session.plan_changed session.resume session.start session.task_complete session.title_changed"
            " session.truncation subagent.completed subagent.deselected subagent.selected subagent.started"
            " tool.execution_start tool.user_requested",
        ),
        **_rows(
            _SCREEN,
            "assistant.reasoning human_response.recorded session.autopilot_objective_changed session.canvas.recorded"
            " session.canvas.removed session.context_cleared session.permission_recovery session.permissions_changed"
            " session.remote_steerable_changed session.schedule_cancelled session.schedule_created"
            " session.session_limits_changed session.snapshot_rewind session.workspace_file_changed"
            " subagent.configured",
        ),
        **_rows(_MACHINE, "assistant.turn_start assistant.turn_end hook.start session.usage_record"),
        **_rows(
            _LIVE,
            "agent.interrupted assistant.fusion_phase_activity assistant.fusion_phase_started assistant.idle"
            " assistant.intent assistant.message_delta assistant.message_start assistant.reasoning_delta"
            " assistant.server_tool_progress assistant.streaming_delta assistant.tool_call_delta assistant.turn_retry"
            " auto_mode_switch.completed auto_mode_switch.requested capabilities.changed command.completed"
            " command.execute command.queued commands.changed elicitation.completed elicitation.requested"
            " exit_plan_mode.completed exit_plan_mode.requested external_tool.completed hook.progress"
            " mcp.oauth_completed mcp.oauth_required pending_messages.modified sampling.completed sampling.requested"
            " session.autopilot_stopped session.background_tasks_changed session.custom_agents_updated"
            " session.extensions_loaded session.idle session.mcp_server_status_changed session.mcp_servers_loaded"
            " session.skills_loaded session.todos_changed session.tools_updated session.usage_info"
            " tool.execution_partial_result tool.execution_progress tool.shell_output user_input.completed"
            " user_input.requested workflow.run_settled workflow.run_started workflow.run_updated"
            " mcp.headers_refresh_completed mcp.headers_refresh_required mcp.prompts.list_changed"
            " mcp.resources.list_changed mcp.tools.list_changed mcp_app.tool_call_complete"
            " session.auto_tier_recommendation session.auto_tier_switch_failed session.canvas.closed"
            " session.canvas.opened session.canvas.registry_changed session.canvas.unavailable"
            " session.extensions.attachments_pushed session.fusion_route_started session.managed_plugin_progress"
            " session.managed_settings_enforced session.mcp_server_needs_reconnect session.mcp_server_removed"
            " session.mcp_server_tools_loaded session.memory_changed session.quota_observation"
            " session_limits_exhausted.completed session_limits_exhausted.requested ui.ephemeral_query",
        ),
        **_rows(
            _RECORD,
            "assistant.fusion_phase_completed assistant.fusion_phase_failed assistant.usage"
            " mcp.oauth_recovery_completed model.call_failure model.call_final_result model.call_finished"
            " model.call_start model.log model.message"
            " model.messages_snapshot model.model_call_started model.model_call_success model.response"
            " model.tool_execution model.turn_ended model.turn_started permission.assentDetected"
            " permission.carriedForward permission.contextualAuthorization permission.messageAuthorization"
            " permission.messageAuthorizationDegraded permission.messageAuthorizationRead prompt_cache_break"
            " sandbox.decision session.auto_mode_resolved session.binary_asset session.completion_receipt"
            " session.fusion_change_checkpoint session.fusion_commit_started session.fusion_completed"
            " session.fusion_handoff session.fusion_resolved session.fusion_route_failed session.indexed_search"
            " session.managed_settings_resolved session.model_deselected session.request_body_compression_disabled"
            " session.schedule_rearmed session.usage_checkpoint tool_search.activated",
        ),
    }
)
