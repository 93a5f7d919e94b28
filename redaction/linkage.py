"""Where the CLI writes ids that link events: the paths in `data`, for each type of event.

Taken from the schemas that CLI 1.0.48 to 1.0.102 bring along, and from recordings. Not among them are names that people
choose: of models, tools, providers, extensions, canvases; nor anything inside attachments, arguments and results.
"""

from collections.abc import Mapping
from typing import Final

_PATHS: Final = """
agent.interrupted: toolCallIds.*
assistant.fusion_phase_activity: fusionId phaseId toolCallId
assistant.fusion_phase_completed: fusionId phaseId stagedTerminal.phaseId stagedTerminal.toolCallId
assistant.fusion_phase_failed: degradedToPhaseId fusionId phaseId
assistant.fusion_phase_started: fusionId phaseId
assistant.message: apiCallId clientRequestId fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId
    interactionId messageId originatingMessageId parentToolCallId requestId serviceRequestId
    toolRequests.*.caller.callerId toolRequests.*.toolCallId turnId
assistant.message_delta: messageId parentToolCallId
assistant.message_start: messageId
assistant.reasoning: reasoningId
assistant.reasoning_delta: reasoningId
assistant.tool_call_delta: toolCallId
assistant.turn_end: parentToolCallId turnId
assistant.turn_retry: turnId
assistant.turn_start: interactionId parentToolCallId turnId
assistant.usage: accounting.sourceSessionId accounting.usageId apiCallId fusion.commitId fusion.fusionId
    fusion.phaseId fusion.sourcePhaseId parentToolCallId providerCallId serviceRequestId
auto_mode_switch.completed: requestId
auto_mode_switch.requested: requestId
command.completed: requestId
command.execute: requestId
command.queued: requestId
elicitation.completed: requestId
elicitation.requested: requestId toolCallId
exit_plan_mode.completed: requestId
exit_plan_mode.requested: requestId
external_tool.completed: requestId
external_tool.requested: requestId sessionId toolCallId traceparent
factory.run_settled: runId
factory.run_started: runId
factory.run_updated: runId
hook.end: hookInvocationId parentToolCallId
hook.start: hookInvocationId parentToolCallId
human_response.recorded: requestId toolCallId
mcp.headers_refresh_completed: requestId
mcp.headers_refresh_required: requestId
mcp.oauth_completed: requestId
mcp.oauth_recovery_completed: requestId
mcp.oauth_required: requestId
model.call_failure: apiCallId fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId parentToolCallId
    providerCallId serviceRequestId
model.call_finished: interactionId turnId
model.call_start: fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId parentToolCallId
    previousResponseId turnId
permission.assentDetected: requestId
permission.carriedForward: recordId requestId toolCallId
permission.completed: blocker.permissionRecovery.attempts.*.attemptId
    blocker.permissionRecovery.attempts.*.toolCallId blocker.permissionRecovery.episodeId
    blocker.permissionRecovery.ownerAgentId blocker.permissionRecovery.ownerSessionId recoveryEpisodeId requestId
    toolCallId
permission.contextualAuthorization: recordId requestId
permission.messageAuthorization: recordId
permission.requested: fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId ownerAgentId
    ownerSessionId permissionRequest.assistedApproval.evaluationId permissionRequest.toolCallId
    promptRequest.assistedApproval.evaluationId promptRequest.toolCallId recoveryEpisodeId requestId
sampling.completed: requestId
sampling.requested: mcpRequestId requestId
sandbox.decision: toolCallId
session.autopilot_stopped: requestId
session.binary_asset: assetId
session.compaction_complete: compactionAttemptId requestId serviceRequestId
session.compaction_start: compactionAttemptId
session.completion_receipt: eventRange.endEventId eventRange.startEventId finalTool.toolCallId sourceEventId
session.context_changed: baseCommit headCommit
session.error: originatingMessageId providerCallId serviceRequestId
session.fusion_commit_started: commitId fusionId sourcePhaseId toolCallId
session.fusion_completed: commitId finalSourcePhaseId fusionId turnId
session.fusion_handoff: fusionId sourcePhaseId targetPhaseId
session.fusion_resolved: critics.*.phaseId fusionId turnId
session.fusion_route_failed: attemptId
session.fusion_route_started: attemptId
session.handoff: remoteSessionId
session.permission_recovery: attempts.*.attemptId attempts.*.toolCallId episodeId ownerAgentId ownerSessionId
session.resume: context.baseCommit context.headCommit
session.shutdown: toolUsageRequestIds.*
session.snapshot_rewind: eventIds.* upToEventId
session.start: context.baseCommit context.headCommit detachedFromSpawningParentSessionId sessionId
session.task_complete: blocker.permissionRecovery.attempts.*.attemptId
    blocker.permissionRecovery.attempts.*.toolCallId blocker.permissionRecovery.episodeId
    blocker.permissionRecovery.ownerAgentId blocker.permissionRecovery.ownerSessionId
session.usage_checkpoint: toolUsageRequestIds.*
session.usage_record: usage.accounting.sourceSessionId usage.accounting.usageId usage.apiCallId
    usage.fusion.commitId usage.fusion.fusionId usage.fusion.phaseId usage.fusion.sourcePhaseId
    usage.parentToolCallId usage.providerCallId usage.serviceRequestId
session.warning: originatingMessageId
session_limits_exhausted.completed: requestId
session_limits_exhausted.requested: requestId
skill.context_delivered: interactionId
skill.context_delivered_ref: contentId interactionId
skill.invoked_ref: contentId
subagent.completed: toolCallId
subagent.failed: toolCallId
subagent.started: factoryRunId parentId toolCallId workflowRunId
system.message: interactionId
system.notification: kind.agentId kind.entryId kind.runId
tool.execution_complete: fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId interactionId
    parentToolCallId toolCallId toolUsage.accounting.sourceSessionId toolUsage.accounting.usageId
    toolUsage.requestId turnId
tool.execution_partial_result: toolCallId
tool.execution_progress: toolCallId
tool.execution_start: fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId parentToolCallId
    toolCallId turnId
tool.shell_output: fusion.commitId fusion.fusionId fusion.phaseId fusion.sourcePhaseId toolCallId
tool.user_requested: toolCallId
ui.ephemeral_query: requestId
user.message: interactionId messageId parentAgentTaskId turnId
user_input.completed: requestId
user_input.requested: requestId toolCallId
workflow.run_settled: runId
workflow.run_started: runId
workflow.run_updated: runId
"""


def _linkage() -> dict[str, frozenset[tuple[str, ...]]]:
    types: dict[str, set[tuple[str, ...]]] = {}
    event_type = ""
    for word in _PATHS.split():
        if word.endswith(":"):
            event_type = word[:-1]
            types[event_type] = set()
        else:
            types[event_type].add(("data", *word.split(".")))
    return {name: frozenset(paths) for name, paths in types.items()}


LINKAGE: Final[Mapping[str, frozenset[tuple[str, ...]]]] = _linkage()
"""By type of event the paths; `*` stands for any number of an array."""
