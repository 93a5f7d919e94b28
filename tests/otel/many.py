"""Many small sessions that overlap in time: one interaction each, a model call and a tool call in it."""

import json
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

EVENTS: Final = 8
"""How many durable events each session has."""
SPANS: Final = 3
"""How many spans each becomes: the agent, a model call, a tool call."""
_USAGE: Final = {"model": "model-x", "inputTokens": 100, "outputTokens": 10, "duration": 8, "apiCallId": "r"}
_STORY: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("session.start", {"copilotVersion": "1.0.102"}),
    ("user.message", {"delivery": "idle", "interactionId": "first", "content": "Hi."}),
    ("assistant.turn_start", {"turnId": "0", "interactionId": "first"}),
    ("session.usage_record", {"usage": _USAGE}),
    ("assistant.message", {"model": "model-x", "content": "Yes.", "apiCallId": "r", "toolRequests": []}),
    ("tool.execution_start", {"toolCallId": "call", "toolName": "bash"}),
    ("tool.execution_complete", {"toolCallId": "call", "success": True}),
    ("assistant.turn_end", {"turnId": "0"}),
)


def write_sessions(
    home: Path, count: int, *, first: float, every_seconds: float = 60.0, last_hours: Sequence[float] = (3.0,)
) -> list[str]:
    """Write sessions below a CLI's home and return their ids; each begins so long after the one before.

    They last so many hours, in turn.
    """
    names = []
    for number in range(count):
        name = str(uuid.UUID(int=number + 1))
        begins = first + number * every_seconds
        lasts_seconds = last_hours[number % len(last_hours)] * 3_600
        step = lasts_seconds / (len(_STORY) - 1)
        lines = [
            line(f"{number:08x}-{place:04x}", kind, data, begins + place * step)
            for place, (kind, data) in enumerate(_STORY)
        ]
        path = home / "session-state" / name / "events.jsonl"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"".join(lines))
        os.utime(path, (begins + lasts_seconds,) * 2)
        names.append(name)
    return names


def line(identity: str, kind: str, data: dict[str, Any], at: float) -> bytes:
    """Return an event as a line of a session file."""
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({"type": kind, "data": data, "id": identity, "timestamp": when}).encode() + b"\n"
