"""Which strings of an event are never changed: the envelope, the ids that link events, and opaque fields that only
work whole.

The rule is about places, not names: a user's own `{"id": …}` deep in a tool's arguments is text like any other.
"""

from collections.abc import Sequence

ENVELOPE = frozenset({"id", "timestamp", "parentId", "type", "ephemeral", "agentId"})
DATA = "data"
IN_DATA = frozenset(
    (
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
        "eventId",
        "upToEventId",
        "clientId",
        "parentAgentTaskId",
        "compactionAttemptId",
        "agentId",
        "toolName",
        "model",
        "selectedModel",
        "currentModel",
        "newModel",
        "firstDispatchedModel",
        "behaviorModelId",
        "hookType",
        "role",
        "kind",
        "mode",
        "version",
        "copilotVersion",
        "startTime",
        "resumeTime",
        "commit",
        "baseCommit",
        "headCommit",
        "sha",
        "traceparent",
        "spanId",
        "traceId",
        "mimeType",
    )
)
DEEPER = frozenset(
    {
        (DATA, "toolRequests", 0, "toolCallId"),
        (DATA, "toolRequests", 0, "name"),
        (DATA, "usage", "apiCallId"),
        (DATA, "usage", "model"),
        (DATA, "usage", "accounting", "sourceSessionId"),
        (DATA, "usage", "accounting", "usageId"),
    }
)
OPAQUE = frozenset({"encryptedContent", "encrypted_content", "reasoningOpaque", "signature"})
OPAQUE_SUFFIX = "Signature"
# Below these the names are a user's or a tool's, not the protocol's.
FOREIGN = frozenset({"arguments", "input", "result", "output", "content", "toolTelemetry", "metadata"})


_NAMES = ENVELOPE | IN_DATA | OPAQUE | {str(path[-1]) for path in DEEPER}


def may_be_protected(name: str) -> bool:
    """Whether there is a place where the value of a member with this name must stay as it is."""
    return name in _NAMES or name.endswith(OPAQUE_SUFFIX)


def is_opaque(path: Sequence[str | int]) -> bool:
    """Whether the string at this path is one of the fields that only work whole."""
    last = path[-1] if path else None
    return (
        isinstance(last, str)
        and path[0] == DATA
        and (last in OPAQUE or last.endswith(OPAQUE_SUFFIX))
        and FOREIGN.isdisjoint(path[1:-1])
    )


def is_protected(path: Sequence[str | int]) -> bool:
    """Whether the string at this path, or the key that ends it, must stay as it is."""
    if not path:
        return False
    last = path[-1]
    if len(path) == 1:
        return last in ENVELOPE
    if path[0] != DATA:
        return False
    if len(path) == 2 and last in IN_DATA:
        return True
    if is_opaque(path):
        return True
    return tuple(0 if isinstance(step, int) else step for step in path) in DEEPER
