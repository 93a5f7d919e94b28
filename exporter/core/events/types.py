"""The known event types, so that `doctor --schema` can name new ones; delivery does not use them."""

import re
from typing import Final

_NAMES: Final = {
    "assistant": "idle intent message message_delta message_start reasoning reasoning_delta streaming_delta"
    " tool_call_delta turn_end turn_start usage",
    "auto_mode_switch": "completed requested",
    "command": "completed execute queued",
    "commands": "changed",
    "elicitation": "completed requested",
    "exit_plan_mode": "completed requested",
    "external_tool": "completed requested",
    "hook": "end start",
    "mcp": "oauth_completed oauth_required",
    "model": "call_failure call_final_result call_finished call_start log message messages_snapshot"
    " model_call_started model_call_success response tool_execution turn_ended turn_started",
    "pending_messages": "modified",
    "permission": "completed requested",
    "sandbox": "decision",
    "session": "background_tasks_changed compaction_complete compaction_start context_changed custom_agents_updated"
    " custom_notification error extensions_loaded handoff idle indexed_search info managed_settings_resolved"
    " mcp_server_status_changed mcp_servers_loaded mode_changed model_change permissions_changed plan_changed"
    " remote_steerable_changed resume shutdown skills_loaded snapshot_rewind start task_complete title_changed"
    " tools_updated truncation usage_checkpoint usage_info usage_record warning workspace_file_changed",
    "skill": "invoked",
    "subagent": "completed configured deselected failed selected started",
    "system": "message notification",
    "tool": "execution_complete execution_partial_result execution_progress execution_start shell_output"
    " user_requested",
    "user": "message",
    "user_input": "completed requested",
}

KNOWN: Final = frozenset(("abort", *(f"{family}.{name}" for family, names in _NAMES.items() for name in names.split())))
NO_NAME: Final = "(not a name)"
# What does not look like a name may be content, and is counted only.
_TYPE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}(\.[a-z0-9_]{1,64}){0,4}")
_METHOD: Final = re.compile(r"[a-zA-Z]{1,40}(\.[a-zA-Z]{1,40}){0,4}")


def type_name(type: str) -> str:
    """Return an event's type if it may be shown, else what stands for such."""
    return type if _TYPE.fullmatch(type) else NO_NAME


def method_name(method: str) -> str:
    """Return the name of a method if it may be shown, else what stands for such."""
    return method if _METHOD.fullmatch(method) else NO_NAME
