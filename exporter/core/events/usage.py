"""What a model call used, as a CLI server tells it: an ephemeral event, whose figures a journal keeps for telemetry.

The line in the journal is the event that the CLI writes to the session's own file beside the one it tells, and has
its id, so that telemetry is the same whichever of the two is read. It is ephemeral: delivered nowhere.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from exporter.core.events.envelope import REFUSALS, Envelope

USAGE_TOLD: Final = "assistant.usage"
USAGE_KEPT: Final = "session.usage_record"
_TEXTS: Final = ("model", "initiator", "providerType", "apiCallId", "serviceRequestId", "finishReason")
_TEXT_LENGTH_MAX: Final = 200
_AMOUNTS: Final = (
    *("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens", "cost", "duration"),
    *("timeToFirstTokenMs", "interTokenLatencyMs", "maxPromptTokens", "isByok"),
)
_PARTS: Final = (("copilotUsage", "totalNanoAiu"), ("accounting", "sourceSessionId"))


def usage_line(told: Envelope, is_known: Callable[[str], bool]) -> bytes | None:
    """Return the line to keep, not redacted; None for other events, and where the CLI's own record `is_known`."""
    if told.type != USAGE_TOLD or not told.ephemeral:
        return None
    try:
        data: Any = msgspec.json.decode(told.data)
    except REFUSALS:
        return None
    if not isinstance(data, dict):
        return None
    own = (isinstance(data.get("accounting"), dict) and told.parentId) or None  # older ones write no record
    if own is not None and is_known(own):
        return None
    usage: dict[str, Any] = {name: data[name] for name in _TEXTS if _is_text(data.get(name))}
    usage |= {name: data[name] for name in _AMOUNTS if isinstance(data.get(name), int | float)}
    for part, name in _PARTS:
        inner = data.get(part)
        if isinstance(inner, dict) and (isinstance(inner.get(name), int | float) or _is_text(inner.get(name))):
            usage[part] = {name: inner[name]}
    event = {"type": USAGE_KEPT, "data": {"usage": usage}, "id": own or told.id, "timestamp": told.timestamp}
    agent = {"agentId": told.agentId} if told.agentId else {}
    return msgspec.json.encode({**event, **agent, "ephemeral": True})


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _TEXT_LENGTH_MAX
